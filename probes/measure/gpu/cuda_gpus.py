"""Opening the GPUs on which a probe may create contexts, and the reasons for skipping others."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial

from ....models.facts.reason import Reason
from ....models.facts.records import NotChecked
from ...calls.threaded_call import ThreadedCall
from ...calls.timeouts import no_answer
from ...gpu.nvml_library import Library, NvmlError
from ...parsing.nvml_enums import COMPUTE_MODES, meaning, pci_address
from ...parsing.parsers import PCI_ADDRESS
from .copy_request import CopyRequest
from .cuda_driver import Cuda, CudaError, Device

# Without persistence mode the first client waits seconds for each GPU (probes/gpu/nvml_threads.py).
OPENING = 30.0
STARTING, EACH = 0.7, 0.2  # planned seconds for the start of a process with the driver, and for each GPU's context
NUMBERED: Mapping[str, str] = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}  # the driver's numbering; else the fastest GPU is 0
_SHARE = 20  # at most one twentieth of the free memory is used
_MIG = "it is cut into MIG instances: CUDA shows a process one of them, and links are shared by all"
_ALONE = "no context is created on GPUs of others"


def open_gpus(cuda: Cuda, request: CopyRequest, what: str) -> tuple[dict[str, Device], list[NotChecked]]:
    """Open the GPUs of a request in parallel; return usable GPUs by name, and a NotChecked for each other GPU."""
    openings = {
        name: ThreadedCall(partial(_open, cuda, name, address, request.owned)) for name, address in request.gpus.items()
    }
    until = time.monotonic() + OPENING
    usable: dict[str, Device] = {}
    lost: list[NotChecked] = []
    for name, call in openings.items():
        try:
            if not call.wait(until):
                raise CudaError(no_answer(OPENING), reason=Reason.NO_ANSWER)
            usable[name] = call.answer()
        except CudaError as refusal:
            lost.append(
                NotChecked(what=what, subject=name, reason=refusal.reason, detail=str(refusal), how=refusal.how)
            )
    return usable, lost


def _open(cuda: Cuda, name: str, address: str, owned: bool) -> Device:
    address = address or address_of(name)
    try:
        device = Device(cuda, name, address)
    except CudaError:
        check(address, owned)  # NVML gives a better reason for a GPU with MIG instances
        raise
    check(address, owned, device.reserved)
    try:
        device.open()
    except CudaError as refusal:
        raise CudaError(f"no context: {refusal}", "look into dmesg", refusal.code, refusal.reason) from None
    return device


def fitting(free: int, size: int, buffers: int, least: int) -> int | None:
    """Halve `size` until all `buffers` fit into 5 % of the `free` bytes; None if the result is below `least`."""
    while size * buffers > free // _SHARE:
        size //= 2
    return size if size >= least else None


def check(address: str, owned: bool, mode: str | None = None) -> None:
    """Raise CudaError if no context may be created on a GPU. `mode` is its compute mode if NVML does not report it."""
    mig = False
    with suppress(ImportError, ValueError, NvmlError):  # GPUs before Ampere have no MIG; `mode` comes from CUDA
        library = Library()
        library.call("Init")
        handle = library.call("DeviceGetHandleByPciBusId", address)
        mode = meaning(COMPUTE_MODES, library.call("DeviceGetComputeMode", handle))
        mig = library.call("DeviceGetMigMode", handle)[0] == 1
    if mig:
        raise CudaError(_MIG, "measure it while MIG is off", reason=Reason.NOT_SUPPORTED)
    if mode not in (None, "default") and not (owned and mode == "exclusive process"):
        how = f"sudo nvidia-smi -i {address} -c DEFAULT"
        raise CudaError(f"its compute mode is {mode}: {_ALONE}", how, reason=Reason.PERMISSION)


def tool_may_use(name: str, address: str, owned: bool) -> str:
    """Return the number of a GPU for a program started with the environment NUMBERED. Raises CudaError."""
    check(address if PCI_ADDRESS.fullmatch(address) else address_of(name), owned)
    if os.environ.get("CUDA_VISIBLE_DEVICES"):
        raise CudaError(
            "the tool would number only the GPUs in CUDA_VISIBLE_DEVICES",
            "unset CUDA_VISIBLE_DEVICES",
            reason=Reason.OTHER_CONTEXT,
        )
    return name.removeprefix("gpu")


def address_of(name: str) -> str:
    """Return the PCI address of "gpu3" from the driver, if sysfs does not have it. Raises CudaError."""
    with suppress(ImportError, ValueError, NvmlError):
        library = Library()
        library.call("Init")
        handle = library.call("DeviceGetHandleByIndex", int(name.removeprefix("gpu")))
        if address := pci_address(library.call("DeviceGetPciInfo", handle).busId):
            return address
    raise CudaError("its PCI address is unknown", reason=Reason.OTHER)


def starting(gpus: int) -> float:
    """Return the planned seconds until a process can copy on this many GPUs."""
    return STARTING + EACH * gpus


def close_gpus(devices: Mapping[str, Device]) -> None:
    """Close all GPUs."""
    for device in devices.values():
        device.close()
