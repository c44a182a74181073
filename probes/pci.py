"""PCI functions from sysfs (kernel documentation, ABI/testing/sysfs-bus-pci)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress

from ..models.facts import HostBridge, Pci
from ..models.pci_classes import kind_of
from ..models.said import Evidence, NotChecked, Observation, Said
from .host import Host, Unreadable
from .parsers import count, hexadecimal, is_lost, known, pcie_speed, pcie_width, word
from .pci_ids import read_names
from .reading import Reading

DEVICES = "sys/bus/pci/devices"
SLOTS = "sys/bus/pci/slots"
ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_ROOT = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}")
_LINK = {"speed": "current_link_speed", "width": "current_link_width",
         "max_speed": "max_link_speed", "max_width": "max_link_width"}  # fmt: skip
# pci_uevent of drivers/pci/pci-driver.c.
_UEVENT = re.compile(
    r"^PCI_CLASS=(?P<pci_class>[0-9A-F]{1,6})\nPCI_ID=(?P<vendor>[0-9A-F]{4}):(?P<device>[0-9A-F]{4})\n"
    r"PCI_SUBSYS_ID=(?P<subvendor>[0-9A-F]{4}):(?P<subdevice>[0-9A-F]{4})$",
    re.MULTILINE,
)
# Unsupported requests are left out of the sums: looking for devices that are not there causes them on healthy machines.
_EXPRESS = frozenset({"gpu", "nvme", "nvswitch"})
_HARMLESS = frozenset({"UnsupReq"})


def read_pci(host: Host) -> Iterator[Said]:
    """Every function, the roots above them, and what their AER counters stand at."""
    try:
        addresses = [name for name in host.list(DEVICES) if ADDRESS.fullmatch(name)]
    except Unreadable as refusal:
        yield NotChecked(what="Pci", subject="node", why=f"{DEVICES}: {refusal.why}", how=refusal.how)
        return
    slots = _slots(host)
    roots: dict[str, HostBridge] = {}
    functions: list[Pci] = []
    listed = frozenset(addresses)
    for address in addresses:
        try:
            folder = host.resolve(f"{DEVICES}/{address}") or f"{DEVICES}/{address}"
        except Unreadable as refusal:
            yield NotChecked(what="Pci", subject=address, why=f"{DEVICES}/{address}: {refusal.why}", how=refusal.how)
            continue
        for said in _function(host, address, folder, _parent(folder, listed), slots.get(address.rpartition(".")[0])):
            if isinstance(said, Pci):
                functions.append(said)
            yield said
        for root in _roots(folder):
            roots.setdefault(root.key, root)
    yield from roots.values()
    if functions:
        yield from read_names(host, functions)


def _function(host: Host, address: str, folder: str, parent: str | None, slot: str | None) -> Iterator[Said]:
    reading = Reading(host, Pci, address, folder)
    _identity(reading)
    reading.take("numa", "numa_node", known)
    if kind_of(reading.fact()) != "bridge":  # firmware gives labels to devices
        reading.take("label", "label", word)
    physfn = reading.target("physfn", "physfn")
    on_link = parent is not None and ADDRESS.fullmatch(parent) and address.endswith(".0") and not physfn
    _link(reading, bool(on_link))
    reading.set(
        parent=parent,
        driver=reading.target("driver", "driver"),
        iommu_group=reading.target("iommu_group", "iommu_group", count),
        physfn=physfn,
        slot=slot,
    )
    yield from reading.said()
    if not reading.absent.issuperset(_LINK):  # conventional PCI has no AER
        yield from _aer(host, address, folder)


def _identity(reading: Reading) -> None:
    """What the function is: from its uevent, one file for five numbers; where that does not have them, one by one."""
    if found := _UEVENT.search(reading.peek("uevent") or ""):
        numbers = {name: int(number, 16) for name, number in found.groupdict().items()}
        reading.cite("uevent", found[0].replace("\n", " "), **numbers)
        return
    reading.take("pci_class", "class", hexadecimal, required=True)
    reading.take("vendor", "vendor", hexadecimal, required=True)
    reading.take("device", "device", hexadecimal, required=True)
    reading.take("subvendor", "subsystem_vendor", hexadecimal)
    reading.take("subdevice", "subsystem_device", hexadecimal)


def _link(reading: Reading, on_link: bool) -> None:
    """The four link attributes. The kernel gives all or none of them, so one that is absent beside others is missed.

    All are absent of conventional PCI, before Linux 4.13, and in sandboxes. Of what exists as PCI Express alone, and is
    `on_link` as function 0 below a bridge, they are missed too.
    """
    for field, name in _LINK.items():
        reading.take(field, name, pcie_width if field.endswith("width") else pcie_speed)
    if is_lost(reading.text("speed"), reading.text("width")):
        # A function that sleeps in D3cold has no power: before Linux 6.18, reading its link did not wake it.
        asleep = reading.peek("power_state") == "D3cold"
        reading.set(lost=not asleep, speed=None, width=None, max_speed=None, max_width=None)
        if asleep:
            reading.miss("link", "it sleeps without power (D3cold)", "wake it: use the device")
    elif absent := [field for field in _LINK if field in reading.absent]:
        if len(absent) < len(_LINK):
            for field in absent:
                reading.miss(field, f"{_LINK[field]} is not there, though other link attributes are")
        elif on_link and kind_of(reading.fact()) in _EXPRESS:
            reading.miss("width", "the kernel shows no link attributes", "Linux 4.13 or later, with all of sysfs")
    else:
        reading.set(lost=False)


def _parent(folder: str, listed: Collection[str]) -> str | None:
    """The bridge or root above: the nearest folder that is one. A copy of sysfs may have a bridge as a mere folder."""
    above = folder.split("/")[:-1]
    return next((name for name in reversed(above) if name in listed or _ROOT.fullmatch(name)), None)


def _roots(folder: str) -> Iterator[HostBridge]:
    """The PCI roots on the path; behind a function (Intel VMD) there is another one."""
    above: str | None = None
    for name in folder.split("/"):
        if ADDRESS.fullmatch(name):
            above = name
        elif _ROOT.fullmatch(name):
            yield HostBridge(key=name, parent=above)


def _slots(host: Host) -> Mapping[str, str]:
    """The slot of a device without its function, "0000:53:00": names are printed on the board."""
    slots: dict[str, str] = {}
    with suppress(Unreadable):  # a convenience for the technician: nothing is judged by it
        for name in filter(str.isprintable, host.list(SLOTS)):
            with suppress(Unreadable):
                if address := host.read(f"{SLOTS}/{name}/address"):
                    slots[address] = name
    return slots


def _aer(host: Host, address: str, folder: str) -> Iterator[Said]:
    """Errors since boot by severity (ABI/testing/sysfs-bus-pci-devices-aer_stats): a name and a number a line."""
    for severity in ("correctable", "nonfatal", "fatal"):
        path = f"{folder}/aer_dev_{severity}"
        try:
            text = host.read(path)
            if text is None:
                continue
            counts = {name: count(number) for name, number in (line.rsplit(None, 1) for line in text.splitlines())}
        except Unreadable as refusal:
            yield NotChecked(what=f"Pci.aer_{severity}", subject=address, why=f"{path}: {refusal.why}", how=refusal.how)
            continue
        except ValueError:
            why = f"{path} does not hold a name and a number a line"
            yield NotChecked(what=f"Pci.aer_{severity}", subject=address, why=why)
            continue
        seen = {name: n for name, n in counts.items() if n and not name.startswith("TOTAL") and name not in _HARMLESS}
        text = ", ".join(f"{name} {number}" for name, number in seen.items()) or "no errors"
        yield Observation(
            about=address, quantity=f"aer_{severity}", unit="count", value=float(sum(seen.values())), at=host.now(),
            evidence=Evidence(path, text),
        )  # fmt: skip
