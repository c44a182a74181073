"""Current speed, width and errors of PCIe links, from sysfs (kernel documentation, ABI/testing/sysfs-bus-pci).

pci.py reads the constant attributes less often, because a machine with eight GPUs has five hundred functions.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache

from ...models.facts.machine import Pci
from ...models.facts.reason import Reason
from ...models.facts.records import Evidence, NotChecked, Observation, Record
from ..host.host import Host, Unreadable
from ..parsing.parsers import PCI_ADDRESS, count, is_lost, pcie_speed, pcie_width
from ..sysfs.fact_reader import FactReader

DEVICES = "sys/bus/pci/devices"
ROOT = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}")
NO_ATTRIBUTES = "the kernel shows no link attributes"
NEEDS_ATTRIBUTES = "Linux 4.13 or later, with all of sysfs"
_BUILT = {"max_speed": "max_link_speed", "max_width": "max_link_width"}
_NOW = {"speed": "current_link_speed", "width": "current_link_width"}
# Unsupported requests are left out of the sums: probing for missing devices causes them on healthy machines.
_HARMLESS = frozenset({"UnsupReq"})


def read_pci_links(host: Host) -> Iterator[Record]:
    """Yield the link state and the AER counters of each function at the end of a link."""
    placed, refused = function_folders(host)
    yield from refused
    parents = {address: parent_of(folder, placed) for address, folder in placed.items()}
    below = {address for address, parent in parents.items() if parent and PCI_ADDRESS.fullmatch(parent)}
    ends = below | {str(parents[address]) for address in below}
    for address in (each for each in placed if each in ends):
        reading = FactReader(host, Pci, address, placed[address])
        link_now(reading)
        yield from reading.records()
        if not reading.absent.issuperset(_NOW):  # conventional PCI has neither link attributes nor AER
            yield from _aer(host, address, placed[address])


def function_folders(host: Host) -> tuple[Mapping[str, str], list[NotChecked]]:
    """Return the sysfs folder of each function, by address, and a NotChecked for each unresolved one."""
    try:
        addresses = [name for name in host.list(DEVICES) if PCI_ADDRESS.fullmatch(name)]
    except Unreadable as refusal:
        return {}, [refusal.missed("Pci", "node", DEVICES)]
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


def link_now(reading: FactReader) -> None:
    """Read the trained speed and width, or set `lost` if the function does not respond.

    A function in D3cold has no power and is not read: since Linux 6.18 reading wakes it (drivers/pci/pci-sysfs.c);
    older kernels show it like a lost one.
    """
    if reading.peek("power_state") == "D3cold":
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


def _aer(host: Host, address: str, folder: str) -> Iterator[Record]:
    """Yield errors since boot by severity (ABI/testing/sysfs-bus-pci-devices-aer_stats; lines of name and count)."""
    for severity in ("correctable", "nonfatal", "fatal"):
        path = f"{folder}/aer_dev_{severity}"
        try:
            text = host.read(path)
            if text is None:
                continue
            number, shown = _errors(text)
        except Unreadable as refusal:
            yield refusal.missed(f"Pci.aer_{severity}", address, path)
            continue
        except ValueError:
            why = f"{path} does not hold a name and a number a line"
            yield NotChecked(what=f"Pci.aer_{severity}", subject=address, reason=Reason.UNREADABLE, detail=why)
            continue
        yield Observation(
            about=address,
            quantity=f"aer_{severity}",
            unit="count",
            value=number,
            at=host.now(),
            evidence=Evidence(path, shown),
        )


@lru_cache(maxsize=256)  # nearly all files have the same text: no errors
def _errors(text: str) -> tuple[float, str]:
    """Return the number of errors and a text with their names. Raises ValueError."""
    counts = {name: count(number) for name, number in (line.rsplit(None, 1) for line in text.splitlines())}
    seen = {name: n for name, n in counts.items() if n and not name.startswith("TOTAL") and name not in _HARMLESS}
    return float(sum(seen.values())), ", ".join(f"{name} {n}" for name, n in seen.items()) or "no errors"
