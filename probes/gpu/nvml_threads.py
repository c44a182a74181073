"""Reading NVML although the driver may hang: one thread for each GPU, and one time limit for all of them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

from msgspec import Struct

from ...models.facts.gpu import Driver, Gpu
from ...models.facts.reason import Reason, reason_of
from ...models.facts.records import NotChecked
from ...models.facts.recovery import release_of
from ..calls.threaded_call import ThreadedCall
from ..calls.timeouts import no_answer
from ..parsing.parsers import word
from .nvml_library import (
    FUNCTION_NOT_FOUND,
    LIBRARY_NOT_FOUND,
    NO_PERMISSION,
    Library,
    NvmlError,
)
from .nvml_reader import FieldQuery, NvmlReader

T = TypeVar("T")

CONTROL = "/dev/nvidiactl"  # every program opens it to use the driver
# Without persistence mode the first client waits 1 to 3 s for each GPU, for ECC scrubbing
# (https://docs.nvidia.com/deploy/driver-persistence/overview.html): 30 s with 8 A100 (Azure/aks-gpu, install.sh).
# Only the driver knows whether GPUs stay initialized: Ubuntu starts nvidia-persistenced with --no-persistence-mode.
_SECONDS = 40.0
# A GPU hangs if no call returns for this share of the time limit. The first client waits 4 s for an A100.
_STALL = 0.2
_CONTAINER = "in a container, give it the GPUs (--gpus all)"


class Failure(Struct, frozen=True):
    """The reason why a GPU cannot be used."""

    reason: Reason
    detail: str


_DRIVER = (
    FieldQuery("library", ("SystemGetDriverVersion",), read=word),
    FieldQuery("nvml", ("SystemGetNVMLVersion",), read=word),
    FieldQuery("cuda", ("SystemGetCudaDriverVersion",), read=lambda number: f"{number // 1000}.{number % 1000 // 10}"),
)


def seconds() -> float:
    """Return the time limit for all driver calls. LINKGAUGE_NVML_SECONDS overrides the default."""
    return float(os.environ.get("LINKGAUGE_NVML_SECONDS") or _SECONDS)


def stall_seconds() -> float:
    """Return the seconds without any returned call after which a GPU counts as hung."""
    return _STALL * seconds()


def finishes(call: ThreadedCall[T], library: Library, until: float) -> bool:
    """Whether `call` finishes before the monotonic time `until`. Stops waiting earlier if the driver hangs."""
    while not call.wait(end := min(until, library.last_return + stall_seconds())):
        if min(until, library.last_return + stall_seconds()) <= end:
            return False
    return True


def open_driver(until: float) -> tuple[Library, NvmlReader] | Driver | NotChecked:
    """Initialize NVML and return the library and the driver's facts.

    On failure return a failed `Driver` if the driver is faulty, or a NotChecked if only this process cannot use it.
    """
    try:
        library = Library()
    except ImportError as missing:
        return NotChecked(
            what="Gpu",
            subject="node",
            reason=Reason.NOT_INSTALLED,
            detail=str(missing),
            how="install the package nvidia-ml-py",
        )
    opening = ThreadedCall(partial(_open, library))
    if not opening.wait(until):
        return Driver(key="nvidia", failure=no_answer(seconds()), failure_reason=Reason.NO_ANSWER)
    try:
        return library, opening.answer()
    except NvmlError as refusal:
        return _failure(refusal)


def _open(library: Library) -> NvmlReader:
    library.call("Init")
    driver = NvmlReader(library, Driver, "nvidia")
    for query in _DRIVER:
        driver.take(query)
    library.version = str(driver.fields.get("library") or "")
    library.release = release_of(library.version)
    driver.fields["gpus"] = library.call("DeviceGetCount")
    return driver


def _failure(refusal: NvmlError) -> Driver | NotChecked:
    """Return a NotChecked if only this process cannot use the driver (no library, no access), else a failed Driver."""
    if refusal.code in (LIBRARY_NOT_FOUND, FUNCTION_NOT_FOUND):
        how = f"install the driver's libnvidia-ml.so.1; {_CONTAINER}"
        return NotChecked(what="Gpu", subject="node", reason=refusal.reason, detail=str(refusal), how=how)
    denied = _access_error()
    if refusal.code == NO_PERMISSION or denied:
        reason = reason_of(denied.errno) if denied else refusal.reason
        why = f"{refusal}: {CONTROL}: {denied.strerror}" if denied else str(refusal)
        return NotChecked(what="Gpu", subject="node", reason=reason, detail=why, how=f"run as root; {_CONTAINER}")
    return Driver(key="nvidia", failure=str(refusal), failure_reason=refusal.reason)


def _access_error() -> OSError | None:
    """Return the error of opening the driver's device, if this process lacks access to it.

    In a container without the device, or without access to it, NVML returns the errors of a broken driver: "Driver
    Not Loaded", "Unknown Error" (https://github.com/NVIDIA/nvidia-container-toolkit/issues/48).
    """
    try:
        os.close(os.open(CONTROL, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
    except (FileNotFoundError, PermissionError) as error:
        return error
    except OSError:
        pass  # NVML's own error describes this case
    return None


def usable_gpus(read: Callable[[NvmlReader], None]) -> Iterator[NvmlReader]:
    """Read each GPU with `read`. Yields nothing if the driver cannot be used; nvml.py reports that."""
    until = time.monotonic() + seconds()
    opened = open_driver(until)
    if isinstance(opened, tuple):
        library, driver = opened
        yield from (reader for reader, _ in each_gpu(library, driver.fields["gpus"], read, until))


def each_gpu(
    library: Library, count: int, read: Callable[[NvmlReader], None], until: float
) -> Iterator[tuple[NvmlReader, Failure | None]]:
    """Read each GPU with `read`. Yields partial results and the failure of each GPU, in GPU order."""
    readers = [NvmlReader(library, Gpu, f"gpu{index}") for index in range(count)]
    calls = [ThreadedCall(partial(_one_gpu, reader, index, read)) for index, reader in enumerate(readers)]
    faults: list[Exception] = []
    for reader, call in zip(readers, calls, strict=True):
        failure: Failure | None = Failure(Reason.NO_ANSWER, no_answer(stall_seconds()))
        if finishes(call, library, until):
            try:
                failure = call.answer()
            except Exception as fault:  # a bug of this program: read the other GPUs, then raise it
                faults.append(fault)
                continue
        yield reader, failure
    if faults:
        raise faults[0]


def _one_gpu(reader: NvmlReader, index: int, read: Callable[[NvmlReader], None]) -> Failure | None:
    """Read one GPU. Returns the failure, or None if the GPU can be used."""
    try:
        reader.handle = reader.library.call("DeviceGetHandleByIndex", index)
        read(reader)
    except NvmlError as refusal:
        if refusal.code == NO_PERMISSION:
            reader.lost = [
                NotChecked(what="Gpu", subject=reader.key, reason=refusal.reason, detail=str(refusal), how=refusal.how)
            ]
            return None
        return Failure(refusal.reason, str(refusal))
    if not reader.fields and reader.lost:
        first, reader.lost = reader.lost[0], []
        return Failure(first.reason, first.why)
    return None
