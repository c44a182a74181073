"""A wrapper of the CUDA driver API: devices by PCI address, memory, copies on streams, errors as text.

Only this module imports cuda.bindings (package cuda-bindings, extra "cuda"). Its release may differ from the driver's:
functions are resolved by name, and a missing function raises CudaError (CUDA Driver API, cuGetProcAddress). close()
releases all resources; the kernel does so if the process dies.
"""

from __future__ import annotations

import os
from collections import deque
from contextlib import ExitStack, suppress
from typing import Any

from ....models.facts.reason import Reason

EXTRA = "pip install 'linkgauge[cuda]'"
_CONTAINER = "in a container, give it the GPUs with the capability `compute` (--gpus all)"
_PORTABLE = 1  # CU_MEMHOSTREGISTER_PORTABLE: pinned for all contexts
_COMPUTE_MODE, _L2_CACHE = 20, 38  # CUdevice_attribute
_MODES = {2: "prohibited", 3: "exclusive process"}  # CUcomputemode: modes that restrict the creation of contexts
_NOT_READY, _ALREADY = 600, 704  # CUresult: not finished; peer access is already enabled
_REASONS = {800: Reason.PERMISSION, 801: Reason.NOT_SUPPORTED}  # CUresult
_GPU_FILTERS = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")


class CudaError(Exception):
    """The driver returned an error or is missing. `how` is the remedy, if known."""

    def __init__(
        self, why: str, how: str | None = None, code: int | None = None, reason: Reason = Reason.DRIVER
    ) -> None:
        super().__init__(why)
        self.how, self.code, self.reason = how, code, reason


class Cuda:
    """An initialized libcuda.so.1. Raises CudaError if the library, its package or a GPU is missing."""

    def __init__(self) -> None:
        os.environ.pop("CUDA_LAUNCH_BLOCKING", None)  # it would prevent concurrent copies
        try:
            from cuda.bindings import driver
        except (ImportError, OSError, RuntimeError) as missing:
            raise CudaError(
                f"the package cuda-bindings does not load: {first_line(missing)}", EXTRA, reason=Reason.NOT_INSTALLED
            ) from None
        self._driver: Any = driver
        try:
            self.call("Init", 0)
        except CudaError as refusal:
            how = f"load NVIDIA's driver; {_CONTAINER}"
            raise CudaError(f"the CUDA driver is not usable: {refusal}", how, refusal.code, refusal.reason) from None

    def call(self, name: str, *arguments: Any) -> Any:
        """Return the results of cu`name`: an empty tuple, a value, or a tuple. Raises CudaError."""
        try:
            code, *values = getattr(self._driver, f"cu{name}")(*arguments)
        except (AttributeError, OSError, RuntimeError) as missing:  # missing in the package, the library or the driver
            raise CudaError(f"cu{name}: {first_line(missing)}", reason=Reason.NOT_INSTALLED) from None
        if code.value:
            raise CudaError(f"cu{name}: {code.name}", code=code.value, reason=_REASONS.get(code.value, Reason.DRIVER))
        return values[0] if len(values) == 1 else tuple(values)

    def seconds(self, begin: Any, end: Any) -> float:
        """Return the seconds between two recorded events of one GPU. Raises CudaError."""
        return float(self.call("EventElapsedTime", begin, end)) / 1e3

    def pinned(self, address: int, size: int) -> None:
        """Pin host memory for the copy engines of all GPUs. Raises CudaError."""
        self.call("MemHostRegister", address, size, _PORTABLE)

    def unpinned(self, address: int) -> None:
        """Unpin host memory. Errors are ignored."""
        with suppress(CudaError):
            self.call("MemHostUnregister", address)


class Device:
    """A GPU. No context is created before open(). Raises CudaError if CUDA does not show the GPU."""

    def __init__(self, cuda: Cuda, name: str, address: str) -> None:
        self.cuda, self.name, self.address, self._cleanup = cuda, name, address, ExitStack()
        try:
            self.handle = cuda.call("DeviceGetByPCIBusId", address.encode())
        except CudaError as refusal:
            named = next((variable for variable in _GPU_FILTERS if os.environ.get(variable)), None)
            how = f"run it without {named}" if named else f"look into dmesg; {_CONTAINER}"
            raise CudaError(f"CUDA does not show it: {refusal}", how, refusal.code, refusal.reason) from None
        self.context: Any = None

    @property
    def reserved(self) -> str | None:
        """The compute mode if it is exclusive or prohibited, else None. This needs no context."""
        return _MODES.get(self.cuda.call("DeviceGetAttribute", _attribute(_COMPUTE_MODE), self.handle))

    @property
    def cache(self) -> int:
        """Bytes of the last-level cache."""
        return int(self.cuda.call("DeviceGetAttribute", _attribute(_L2_CACHE), self.handle))

    def open(self) -> None:
        """Retain the primary context, which this process shares. Raises CudaError."""
        self.context = self.cuda.call("DevicePrimaryCtxRetain", self.handle)
        self._on_close("DevicePrimaryCtxRelease", self.handle)
        self.use()

    def close(self) -> None:
        """Release all resources in reverse order."""
        if self.context is not None:
            with suppress(CudaError):
                self.use()
        self._cleanup.close()

    def use(self) -> None:
        """Make the GPU's context current in this thread, so that the next calls use this GPU."""
        self.cuda.call("CtxSetCurrent", self.context)

    def free(self) -> int:
        """Return the bytes of free memory."""
        self.use()
        return int(self.cuda.call("MemGetInfo")[0])

    def take(self, size: int) -> int:
        """Allocate `size` bytes of GPU memory and return the address. Raises CudaError."""
        self.use()
        address = int(self.cuda.call("MemAlloc", size))
        self._on_close("MemFree", address)
        return address

    def reaches(self, peer: Device) -> bool:
        """Enable peer access and return whether copies to the peer are direct. Else they go through host memory."""
        if not self.cuda.call("DeviceCanAccessPeer", self.handle, peer.handle):
            return False
        self.use()
        try:
            self.cuda.call("CtxEnablePeerAccess", peer.context, 0)
        except CudaError as refusal:
            return refusal.code == _ALREADY
        return True

    def stream(self) -> Stream:
        """Create a queue of copies that is independent of others."""
        self.use()
        stream = self.cuda.call("StreamCreate", 1)  # CU_STREAM_NON_BLOCKING
        self._on_close("StreamDestroy", stream)
        return Stream(self, stream)

    def event(self) -> Any:
        """Create an event."""
        self.use()
        event = self.cuda.call("EventCreate", 0)
        self._on_close("EventDestroy", event)
        return event

    def _on_close(self, name: str, thing: Any) -> None:
        """Register a call for close(). Errors, for example of a lost GPU, are ignored."""

        def release() -> None:
            with suppress(CudaError):
                self.cuda.call(name, thing)

        self._cleanup.callback(release)


class Stream:
    """Sequential copies, timed by the GPU's own clock.

    Several copies are queued ahead, so that the copy engine never waits. If the queue ran empty, because this process
    was not scheduled, the clock restarts with a longer queue, so that it measures only the engine's time.
    """

    _AHEAD, _MOST_AHEAD = 4, 32

    def __init__(self, device: Device, handle: Any) -> None:
        self._device, self._cuda, self.handle = device, device.cuda, handle
        self._begin, *marks = (device.event() for _ in range(1 + self._AHEAD))
        self._unused, self._pending = deque(marks), deque[Any]()
        self.queued = 0  # all queued copies
        self.copies, self.seconds = 0, 0.0  # ended copies and seconds since the start of the clock

    def begin(self, target: int, source: int, size: int) -> None:
        """Queue a first copy that does not count, start the clock after it, and queue more copies. Raises CudaError."""
        self.queued = 0
        self._device.use()
        self._copy(target, source, size)
        self._start()
        self.queue(target, source, size)

    def count(self) -> None:
        """Count the copies that have ended. Raises CudaError."""
        while self._pending and self._is_done(self._pending[0]):
            mark = self._pending.popleft()
            self.copies += 1
            self.seconds = self._cuda.seconds(self._begin, mark)
            self._unused.append(mark)

    def queue(self, target: int, source: int, size: int) -> None:
        """Queue a new copy for each counted one. Raises CudaError."""
        if self._unused:
            self._device.use()
        for _ in range(len(self._unused)):
            before = self._pending[-1] if self._pending else self._begin
            self._copy(target, source, size)
            if self._is_done(before):
                self._start()
                if len(self._unused) < self._MOST_AHEAD:
                    self._unused += [self._device.event() for _ in self._unused]
            else:
                self._pending.append(self._unused.popleft())
                self._mark(self._pending[-1])

    def end(self) -> None:
        """Wait for the queued copies, without counting them. Raises CudaError."""
        self._cuda.call("StreamSynchronize", self.handle)
        self._forget()

    def small(self, target: int, source: int, behind: tuple[int, int, int], count: int, size: int) -> float | None:
        """Return the engine's seconds for one small copy, or None.

        The small copies are queued behind a long copy. Else the result would be the time to queue them. Returns None if
        the long copy ended before they were queued. Raises CudaError.
        """
        self._device.use()
        last = self._unused[0]
        self._copy(*behind)
        self._mark(self._begin)
        for _ in range(count):
            self._copy(target, source, size)
        self._mark(last)
        ended_early = self._is_done(self._begin)
        self.end()
        return None if ended_early else self._cuda.seconds(self._begin, last) / count

    def _start(self) -> None:
        """Restart the clock after the queued copies."""
        self._forget()
        self.copies, self.seconds = 0, 0.0
        self._mark(self._begin)

    def _forget(self) -> None:
        self._unused += self._pending
        self._pending.clear()

    def _copy(self, target: int, source: int, size: int) -> None:
        self._cuda.call("MemcpyAsync", target, source, size, self.handle)
        self.queued += 1

    def _mark(self, event: Any) -> None:
        self._cuda.call("EventRecord", event, self.handle)

    def _is_done(self, event: Any) -> bool:
        try:
            self._cuda.call("EventQuery", event)
        except CudaError as refusal:
            if refusal.code == _NOT_READY:
                return False
            raise
        return True


def _attribute(number: int) -> Any:
    from cuda.bindings import driver

    return driver.CUdevice_attribute(number)


def first_line(error: Exception) -> str:
    """The first line of the error's text; without a text its type."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
