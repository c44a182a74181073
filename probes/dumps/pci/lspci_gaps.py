"""What the lines of a function in lspci say of a device that cannot work, without the cause.

ls-kernel.c prints the bound driver before the modules that could be bound. lspci.c marks the regions of a function
whose memory decoding is off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....models.facts.machine import Pci
from ....models.facts.pci_classes import kind_of
from ....models.facts.reason import Reason
from ....models.facts.records import NotChecked

_OF_JOBS = ("gpu", "nic", "nvme", "nvswitch")
# Drivers that use the memory of their device all the time. Drivers of guests switch it on when a guest starts.
_USERS = ("nvidia", "nouveau", "amdgpu", "mlx5_core", "bnxt_en", "ice", "efa", "nvme")
_MODULES = re.compile(r"^[ \t]+Kernel modules: ", re.MULTILINE)
_SUBSYSTEM = re.compile(r"^[ \t]+(?:Subsystem|Control|Flags): ", re.MULTILINE)
_NO_LANES = re.compile(r"LnkSta:\s+Speed[ =][^\n,]{1,30},? Width[ =]x0(?=[ ,(\n]|$)")
_OFF = re.compile(
    r"^[ \t]*(?:Control: I/O[+-] Mem-|(?:Region [0-9]: )?Memory at [^\n]{1,60} \[disabled\])", re.MULTILINE
)
_IDLE = re.compile(r"^[ \t]+(?:Control: [^\n]{1,40}\bBusMaster-|Flags: (?![^\n]*bus master))", re.MULTILINE)
_OCCUPIED = "PresDet+"  # SltSta of a port: a device is in the slot
_PORT = re.compile(r"Express \(v\d\) (?:Root|Downstream) Port \([^\n)]{0,20}Slot\+\)")


def is_unbound(text: str) -> int:
    """The position of the line with the modules, if the lines of the function show that no driver is bound; else 0.

    A missing line of the driver alone shows nothing: it may be lost. The drivers of GPUs and NICs switch bus mastering
    on, and the kernel switches it off when none is bound (pci_disable_device).
    """
    return _unnamed(text) if _IDLE.search(text) else 0


def _unnamed(text: str) -> int:
    """The position of the line with the modules, if the line of the driver before it is missing; else 0.

    A search for a few words may have dropped it: then the other lines are missing, too.
    """
    modules, subsystem = _MODULES.search(text), _SUBSYSTEM.search(text)
    listed = modules and subsystem and subsystem.start() < modules.start()
    return modules.start() if modules and listed and "Kernel driver in use:" not in text else 0


def gaps(function: Pci, text: str, file: str) -> Iterator[NotChecked]:
    """A line of a driver that is missing, a link without lanes, and memory that is off below a driver that uses it."""
    kind = kind_of(function)
    if kind in _OF_JOBS and function.driver is None and _unnamed(text):
        why = "the modules for the device are listed, and the line of its driver is missing: no driver, or a lost line"
        yield _gap("Pci.driver", function, file, why, f"lspci -k -s {function.key}; dmesg of the driver")
    if _NO_LANES.search(text) and "Virtual Function" not in text:
        occupied = kind == "bridge" and _OCCUPIED in text and _PORT.search(text)
        if occupied:
            why = "the port has a device in its slot (PresDet+) and no lane (LnkSta Width x0): the link is down"
            yield _gap("Pci.width", function, file, why, "sudo dmesg | grep -i pcie; seat the device again")
        elif kind in _OF_JOBS:
            why = "the device shows no lane (LnkSta Width x0): its link is down, or a hypervisor emulates it"
            yield _gap("Pci.width", function, file, why, "sudo lspci -vv of the host, with the port above the device")
    if kind in _OF_JOBS and function.driver in _USERS and _OFF.search(text):
        why = f"the memory of the device is switched off (Mem-, [disabled]) though {function.driver} is bound to it"
        yield _gap("Pci.bar1", function, file, why, "dmesg of the driver; reset the device or reboot")


def without_state(function: Pci, text: str, file: str) -> Iterator[NotChecked]:
    """A link whose capability is in the text and whose state is not."""
    if "LnkCap:" in text and "LnkSta:" not in text and function.width is None:
        why = f"{file} has the link capability (LnkCap) but not the trained link state (LnkSta)"
        how = f"sudo lspci -vv -s {function.key}"
        yield NotChecked(what="Pci.width", subject=function.key, reason=Reason.OTHER, detail=why, how=how)


def _gap(what: str, function: Pci, file: str, why: str, how: str) -> NotChecked:
    return NotChecked(what=what, subject=function.key, reason=Reason.INCOMPLETE, path=file, detail=why, how=how)
