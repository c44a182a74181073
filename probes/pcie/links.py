"""Current speed, width and errors of PCIe links, from sysfs (kernel documentation, ABI/testing/sysfs-bus-pci).

pci.py reads the constant attributes less often, because a machine with eight GPUs has five hundred functions.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from ...models.facts.machine import Pci
from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked, Record
from ..host.host import Host, Unreadable
from ..parsing.parsers import PCI_ADDRESS, is_lost, pcie_speed, pcie_width
from ..sysfs.fact_reader import FactReader
from .aer import read_errors
from .power import is_asleep

DEVICES = "sys/bus/pci/devices"
ROOT = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}")
NO_ATTRIBUTES = "the kernel shows no link attributes"
NEEDS_ATTRIBUTES = "Linux 4.13 or later, with all of sysfs"
_MOUNT = "mount sysfs at /sys; for --root, at sys below the root of the host"
_BUILT = {"max_speed": "max_link_speed", "max_width": "max_link_width"}
_NOW = {"speed": "current_link_speed", "width": "current_link_width"}


def read_pci_links(host: Host) -> Iterator[Record]:
    """Yield the link state and the AER counters of each function at the end of a link."""
    placed, refused = function_folders(host)
    yield from refused
    parents = {address: parent_of(folder, placed) for address, folder in placed.items()}
    below = {address for address, parent in parents.items() if parent and PCI_ADDRESS.fullmatch(parent)}
    ends = below | {str(parents[address]) for address in below}
    counting: dict[str, str] = {}
    for address in (each for each in placed if each in ends):
        reading = FactReader(host, Pci, address, placed[address])
        link_now(reading, is_asleep(host, placed[address]))
        yield from reading.records()
        if not reading.absent.issuperset(_NOW):  # conventional PCI has neither link attributes nor AER
            counting[address] = placed[address]
    yield from read_errors(host, counting)


def function_folders(host: Host) -> tuple[Mapping[str, str], list[NotChecked]]:
    """Return the sysfs folder of each function, by address, and a NotChecked for each unresolved one.

    Without any function nothing says whether the machine has links: /sys may not be mounted. Dumps have other sources.
    """
    try:
        addresses = [name for name in host.list(DEVICES) if PCI_ADDRESS.fullmatch(name)]
    except Unreadable as refusal:
        return {}, [refusal.missed("Pci", "node", DEVICES)]
    if not addresses and host.origin != "dumps":
        why = "no PCI function is there: /sys is not mounted, or the machine has no PCI bus"
        missing = NotChecked(
            what="Pci", subject="node", reason=Reason.NOT_INSTALLED, path=DEVICES, detail=why, how=_MOUNT
        )
        return {}, [missing]
    folders: dict[str, str] = {}
    refused: list[NotChecked] = []
    for address in addresses:
        path = f"{DEVICES}/{address}"
        try:
            folders[address] = host.resolve(path) or path
        except Unreadable as refusal:
            refused.append(refusal.missed("Pci", address, path))
    return folders, refused


def parent_of(folder: str, listed: Collection[str]) -> str | None:
    """Return the nearest bridge or root above a folder. In a copy of sysfs a bridge may be a plain folder."""
    above = folder.split("/")[:-1]
    return next((name for name in reversed(above) if name in listed or ROOT.fullmatch(name)), None)


def link_built(reading: FactReader, required: bool) -> None:
    """Read the maximum speed and width of the function's end of its link.

    The kernel shows all link attributes or none, so a single missing one is recorded as missed. All are missing for
    conventional PCI, before Linux 4.13 and in sandboxes; they are recorded as missed if `required`.
    """
    reading.take("max_speed", _BUILT["max_speed"], pcie_speed)
    reading.take("max_width", _BUILT["max_width"], pcie_width)
    if not reading.absent.issuperset(_BUILT):
        _miss_absent(reading, _BUILT)
    elif required:
        reading.miss(
            "width",
            Reason.NOT_SUPPORTED,
            NO_ATTRIBUTES,
            NEEDS_ATTRIBUTES,
        )


def link_now(reading: FactReader, asleep: bool) -> None:
    """Read the trained speed and width, or set `lost` if the function does not respond."""
    if asleep:
        reading.set(lost=False)
        reading.miss("link", Reason.AT_REST, "it sleeps without power (D3cold)", "wake it: use the device")
        return
    reading.take("speed", _NOW["speed"], pcie_speed)
    reading.take("width", _NOW["width"], pcie_width)
    if is_lost(reading.text("speed"), reading.text("width")):
        reading.set(lost=True, speed=None, width=None)
    elif not reading.absent & set(_NOW):
        reading.set(lost=False)
    elif not reading.absent.issuperset(_NOW):
        _miss_absent(reading, _NOW)


def _miss_absent(reading: FactReader, files: Mapping[str, str]) -> None:
    """Record attributes as missed that are absent although others are present."""
    for field, name in files.items():
        if field in reading.absent:
            reading.miss(field, Reason.NOT_INSTALLED, f"{name} is not there, though other link attributes are")
