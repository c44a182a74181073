"""The GPUs on which a probe may make contexts, opened; and why others are left alone."""

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
from ...gpu.nvml_library import Library
from ...gpu.nvml_library import Refused as NvmlRefused
from ...parsing.nvml_enums import COMPUTE_MODES, meaning, pci_address
from ...parsing.parsers import PCI_ADDRESS
from .copy_request import CopyRequest
from .cuda_driver import Cuda, Device, Refused

# Where nothing keeps GPUs initialized, whoever opens the first waits seconds for each (probes/gpu/nvml_threads.py).
OPENING = 30.0
STARTING, EACH = 0.7, 0.2  # seconds that are planned for a process with the driver, and for the context of a GPU
NUMBERED: Mapping[str, str] = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}  # as the driver numbers GPUs: else the fastest is 0
_SHARE = 20  # one part of so many of what is free, at most
_MIG = "it is cut into MIG instances: CUDA shows a process one of them, and links are shared by all"
_ALONE = "on GPUs of others no context is made"


def opened(cuda: Cuda, request: CopyRequest, what: str) -> tuple[dict[str, Device], list[NotChecked]]:
    """The GPUs of a request that may be used, each with a context; and why the others are not measured.

    All are asked at once, and none of them holds up the others.
    """
    asked = {
        name: ThreadedCall(partial(_open, cuda, name, address, request.owned)) for name, address in request.gpus.items()
    }
    until = time.monotonic() + OPENING
    ready: dict[str, Device] = {}
    lost: list[NotChecked] = []
    for name, question in asked.items():
        try:
            if not question.wait(until):
                raise Refused(no_answer(OPENING), reason=Reason.NO_ANSWER)
            ready[name] = question.answer()
        except Refused as refusal:
            lost.append(
                NotChecked(what=what, subject=name, reason=refusal.reason, detail=str(refusal), how=refusal.how)
            )
    return ready, lost


def _open(cuda: Cuda, name: str, address: str, owned: bool) -> Device:
    address = address or address_of(name)
    try:
        device = Device(cuda, name, address)
    except Refused:
        check(address, owned)  # of one that is cut into instances NVML says more
        raise
    check(address, owned, device.reserved)
    try:
        device.open()
    except Refused as refusal:
        raise Refused(f"no context: {refusal}", "look into dmesg", refusal.code, refusal.reason) from None
    return device


def fitting(free: int, size: int, buffers: int, least: int) -> int | None:
    """`size` bytes, halved until so many buffers are 5 % of what is free; None where they would be below `least`."""
    while size * buffers > free // _SHARE:
        size //= 2
    return size if size >= least else None


def check(address: str, owned: bool, mode: str | None = None) -> None:
    """Raises Refused where no context may be made on a GPU; `mode` is its compute mode where NVML does not say it."""
    mig = False
    with suppress(ImportError, ValueError, NvmlRefused):  # GPUs before Ampere have no MIG; CUDA says the mode as well
        library = Library()
        library.call("Init")
        handle = library.call("DeviceGetHandleByPciBusId", address)
        mode = meaning(COMPUTE_MODES, library.call("DeviceGetComputeMode", handle))
        mig = library.call("DeviceGetMigMode", handle)[0] == 1
    if mig:
        raise Refused(_MIG, "measure it while MIG is off", reason=Reason.NOT_SUPPORTED)
    if mode not in (None, "default") and not (owned and mode == "exclusive process"):
        how = f"sudo nvidia-smi -i {address} -c DEFAULT"
        raise Refused(f"its compute mode is {mode}: {_ALONE}", how, reason=Reason.PERMISSION)


def tool_may_use(name: str, address: str, owned: bool) -> str:
    """The number by which a program, started with NUMBERED, knows a GPU of which it makes a context. Raises Refused."""
    check(address if PCI_ADDRESS.fullmatch(address) else address_of(name), owned)
    if os.environ.get("CUDA_VISIBLE_DEVICES"):
        raise Refused(
            "the tool would count those in CUDA_VISIBLE_DEVICES alone", "run it without", reason=Reason.OTHER_CONTEXT
        )
    return name.removeprefix("gpu")


def address_of(name: str) -> str:
    """Of "gpu3", which sysfs does not have, as the driver that numbered it says. Raises Refused."""
    with suppress(ImportError, ValueError, NvmlRefused):
        library = Library()
        library.call("Init")
        handle = library.call("DeviceGetHandleByIndex", int(name.removeprefix("gpu")))
        if address := pci_address(library.call("DeviceGetPciInfo", handle).busId):
            return address
    raise Refused("nobody says at which PCI address it is")


def starting(gpus: int) -> float:
    """Seconds that are planned until a process can copy on so many GPUs."""
    return STARTING + EACH * gpus


def closing(devices: Mapping[str, Device]) -> None:
    """Give all of them back."""
    for device in devices.values():
        device.close()
