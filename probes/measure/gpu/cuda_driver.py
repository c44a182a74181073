"""The CUDA driver as probes ask it: devices by their PCI addresses, memory, copies on streams, errors as sentences.

The one importer of cuda.bindings (the package cuda-bindings, extra "cuda"). Its release need not be that of the driver:
functions are looked up by name, and one that the driver lacks is refused like any other (CUDA Driver API,
cuGetProcAddress). What is opened here is given back by close(), and by the kernel where the process dies.
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
_MODES = {2: "prohibited", 3: "exclusive process"}  # CUcomputemode: those in which not everybody may make contexts
_NOT_READY, _ALREADY = 600, 704  # CUresult: still running; peer access is on
_REASONS = {800: Reason.PERMISSION, 801: Reason.NOT_SUPPORTED}  # CUresult
_SHOWN_LESS = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")


class Refused(Exception):
    """The driver gave an error, or is not there. `how` says what would help, where that is known."""

    def __init__(
        self, why: str, how: str | None = None, code: int | None = None, reason: Reason = Reason.DRIVER
    ) -> None:
        super().__init__(why)
        self.how, self.code, self.reason = how, code, reason


class Cuda:
    """libcuda.so.1, ready. Raises Refused where it, its package or a GPU is missing."""

    def __init__(self) -> None:
        os.environ.pop("CUDA_LAUNCH_BLOCKING", None)  # with it no copy runs beside another
        try:
            from cuda.bindings import driver
        except (ImportError, OSError, RuntimeError) as missing:
            raise Refused(
                f"the package cuda-bindings does not load: {_first_line(missing)}", EXTRA, reason=Reason.NOT_INSTALLED
            ) from None
        self._driver: Any = driver
        try:
            self.call("Init", 0)
        except Refused as refusal:
            how = f"load NVIDIA's driver; {_CONTAINER}"
            raise Refused(f"no CUDA driver that works: {refusal}", how, refusal.code, refusal.reason) from None

    def call(self, name: str, *arguments: Any) -> Any:
        """What cu`name` answers: nothing, a value, or several. Raises Refused."""
        try:
            code, *values = getattr(self._driver, f"cu{name}")(*arguments)
        except (AttributeError, OSError, RuntimeError) as missing:  # a package, a library or a driver without it
            raise Refused(f"cu{name}: {_first_line(missing)}") from None
        if code.value:
            raise Refused(f"cu{name}: {code.name}", code=code.value, reason=_REASONS.get(code.value, Reason.DRIVER))
        return values[0] if len(values) == 1 else tuple(values)

    def seconds(self, begin: Any, end: Any) -> float:
        """Between two marks of one GPU that were passed. Raises Refused."""
        return float(self.call("EventElapsedTime", begin, end)) / 1e3

    def pinned(self, address: int, size: int) -> None:
        """Lock memory of the host in its place, for the copy engines of all GPUs. Raises Refused."""
        self.call("MemHostRegister", address, size, _PORTABLE)

    def unpinned(self, address: int) -> None:
        """Let go of it. What the driver says to that is of no use to anybody."""
        with suppress(Refused):
            self.call("MemHostUnregister", address)


class Device:
    """A GPU. Nothing is made on it before open(). Raises Refused where CUDA does not show it."""

    def __init__(self, cuda: Cuda, name: str, address: str) -> None:
        self.cuda, self.name, self.address, self._opened = cuda, name, address, ExitStack()
        try:
            self.handle = cuda.call("DeviceGetByPCIBusId", address.encode())
        except Refused as refusal:
            named = next((variable for variable in _SHOWN_LESS if os.environ.get(variable)), None)
            how = f"run it without {named}" if named else f"look into dmesg; {_CONTAINER}"
            raise Refused(f"CUDA does not show it: {refusal}", how, refusal.code, refusal.reason) from None
        self.context: Any = None

    @property
    def reserved(self) -> str | None:
        """The compute mode, where it lets one process alone or none use the GPU; no context is needed to see it."""
        return _MODES.get(self.cuda.call("DeviceGetAttribute", _attribute(_COMPUTE_MODE), self.handle))

    @property
    def cache(self) -> int:
        """Bytes of its last cache."""
        return int(self.cuda.call("DeviceGetAttribute", _attribute(_L2_CACHE), self.handle))

    def open(self) -> None:
        """Take its primary context, which others in this process share. Raises Refused."""
        self.context = self.cuda.call("DevicePrimaryCtxRetain", self.handle)
        self._later("DevicePrimaryCtxRelease", self.handle)
        self.use()

    def close(self) -> None:
        """Give everything back, the last first."""
        if self.context is not None:
            with suppress(Refused):
                self.use()
        self._opened.close()

    def use(self) -> None:
        """Make its context that of this thread: what is launched or taken next is on this GPU."""
        self.cuda.call("CtxSetCurrent", self.context)

    def free(self) -> int:
        """Bytes of memory that nobody has taken."""
        self.use()
        return int(self.cuda.call("MemGetInfo")[0])

    def take(self, size: int) -> int:
        """The address of `size` bytes of its memory. Raises Refused."""
        self.use()
        address = int(self.cuda.call("MemAlloc", size))
        self._later("MemFree", address)
        return address

    def reaches(self, peer: Device) -> bool:
        """Whether its copies go straight to the peer's memory; else the driver leads them through that of the host."""
        if not self.cuda.call("DeviceCanAccessPeer", self.handle, peer.handle):
            return False
        self.use()
        try:
            self.cuda.call("CtxEnablePeerAccess", peer.context, 0)
        except Refused as refusal:
            return refusal.code == _ALREADY
        return True

    def stream(self) -> Stream:
        """A queue of copies that waits for no other."""
        self.use()
        stream = self.cuda.call("StreamCreate", 1)  # CU_STREAM_NON_BLOCKING
        self._later("StreamDestroy", stream)
        return Stream(self, stream)

    def event(self) -> Any:
        """A mark that a stream passes at some time."""
        self.use()
        event = self.cuda.call("EventCreate", 0)
        self._later("EventDestroy", event)
        return event

    def _later(self, name: str, thing: Any) -> None:
        """Something that close() asks for; of a GPU that is gone it is refused, and nothing is lost by that."""

        def give_back() -> None:
            with suppress(Refused):
                self.cuda.call(name, thing)

        self._opened.callback(give_back)


class Stream:
    """Copies one after the other, and the seconds that they took by the GPU's own clock.

    It is kept a few copies ahead, so that the engine never waits for the next. Where it may have waited, because this
    process got no processor, the clock starts anew, with more ahead: what it shows is the engine's time alone.
    """

    _AHEAD, _MOST_AHEAD = 4, 32

    def __init__(self, device: Device, handle: Any) -> None:
        self._device, self._cuda, self.handle = device, device.cuda, handle
        self._begin, *marks = (device.event() for _ in range(1 + self._AHEAD))
        self._unused, self._waiting = deque(marks), deque[Any]()
        self.queued = 0  # copies in all
        self.copies, self.seconds = 0, 0.0  # that have ended since the clock started, and when the last of them did

    def begin(self, target: int, source: int, size: int) -> None:
        """Start the clock behind a first copy that does not count, and queue some. Raises Refused."""
        self.queued = 0
        self._device.use()
        self._copy(target, source, size)
        self._start()
        self.queue(target, source, size)

    def count(self) -> None:
        """Count what has ended. Raises Refused."""
        while self._waiting and self._passed(self._waiting[0]):
            mark = self._waiting.popleft()
            self.copies += 1
            self.seconds = self._cuda.seconds(self._begin, mark)
            self._unused.append(mark)

    def queue(self, target: int, source: int, size: int) -> None:
        """Queue as much again as has been counted. Raises Refused."""
        if self._unused:
            self._device.use()
        for _ in range(len(self._unused)):
            before = self._waiting[-1] if self._waiting else self._begin
            self._copy(target, source, size)
            if self._passed(before):
                self._start()
                if len(self._unused) < self._MOST_AHEAD:
                    self._unused += [self._device.event() for _ in self._unused]
            else:
                self._waiting.append(self._unused.popleft())
                self._mark(self._waiting[-1])

    def end(self) -> None:
        """Wait for what is queued, which does not count. Raises Refused."""
        self._cuda.call("StreamSynchronize", self.handle)
        self._forget()

    def small(self, target: int, source: int, behind: tuple[int, int, int], count: int, size: int) -> float | None:
        """Seconds that the engine takes for one copy of a few bytes.

        They are queued behind a long copy: else it is the time that the program takes to ask for them, as it is where
        the long one ends too soon; then None. Raises Refused.
        """
        self._device.use()
        last = self._unused[0]
        self._copy(*behind)
        self._mark(self._begin)
        for _ in range(count):
            self._copy(target, source, size)
        self._mark(last)
        late = self._passed(self._begin)
        self.end()
        return None if late else self._cuda.seconds(self._begin, last) / count

    def _start(self) -> None:
        """The clock, behind what is queued."""
        self._forget()
        self.copies, self.seconds = 0, 0.0
        self._mark(self._begin)

    def _forget(self) -> None:
        self._unused += self._waiting
        self._waiting.clear()

    def _copy(self, target: int, source: int, size: int) -> None:
        self._cuda.call("MemcpyAsync", target, source, size, self.handle)
        self.queued += 1

    def _mark(self, event: Any) -> None:
        self._cuda.call("EventRecord", event, self.handle)

    def _passed(self, event: Any) -> bool:
        try:
            self._cuda.call("EventQuery", event)
        except Refused as refusal:
            if refusal.code == _NOT_READY:
                return False
            raise
        return True


def _attribute(number: int) -> Any:
    from cuda.bindings import driver

    return driver.CUdevice_attribute(number)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
