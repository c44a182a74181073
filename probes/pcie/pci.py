"""Constant attributes of PCI functions, from sysfs (kernel documentation, ABI/testing/sysfs-bus-pci)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from ...models.facts.machine import HostBridge, Pci
from ...models.facts.pci_classes import kind_of
from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked, Record
from ..host.host import Host, Unreadable
from ..parsing.parsers import PCI_ADDRESS, count, hexadecimal, known, word
from ..sysfs.fact_reader import FactReader
from .links import NEEDS_ATTRIBUTES, NO_ATTRIBUTES, ROOT, function_folders, link_built, link_now, parent_of
from .pci_ids import read_names
from .power import is_asleep

SLOTS = "sys/bus/pci/slots"
# Format: pci_uevent of drivers/pci/pci-driver.c.
_UEVENT = re.compile(
    r"^PCI_CLASS=(?P<pci_class>[0-9A-F]{1,6})\nPCI_ID=(?P<vendor>[0-9A-F]{4}):(?P<device>[0-9A-F]{4})\n"
    r"PCI_SUBSYS_ID=(?P<subvendor>[0-9A-F]{4}):(?P<subdevice>[0-9A-F]{4})$",
    re.MULTILINE,
)
_EXPRESS = frozenset({"gpu", "nvme", "nvswitch"})


def read_pci(host: Host) -> Iterator[Record]:
    """Yield a `Pci` for each function, and the PCI roots above them. links.py reads the state of links."""
    folders, refused = function_folders(host)
    yield from refused
    slots = _slots(host)
    roots: dict[str, HostBridge] = {}
    functions: list[Pci] = []
    for address, folder in folders.items():
        slot = slots.get(address.rpartition(".")[0])
        for record in _function(host, address, folder, parent_of(folder, folders), slot):
            if isinstance(record, Pci):
                functions.append(record)
            yield record
        for root in _roots(folder):
            roots.setdefault(root.key, root)
    yield from roots.values()
    yield from _unread_nics(host, functions, folders)
    if functions:
        yield from read_names(host, functions)


def _function(host: Host, address: str, folder: str, parent: str | None, slot: str | None) -> Iterator[Record]:
    reading = FactReader(host, Pci, address, folder)
    _identity(reading)
    kind = kind_of(reading.fact())
    physfn = reading.target("physfn", "physfn")
    below = parent is not None and PCI_ADDRESS.fullmatch(parent) is not None
    # A large processor has hundreds of internal functions without links, which no rule evaluates.
    if below or kind != "pci":
        reading.take("numa", "numa_node", known)
    if kind != "bridge" and below:  # firmware labels removable devices
        reading.take("label", "label", word)
    asleep = (below or kind != "pci") and is_asleep(host, folder)
    if not asleep and (below or kind != "pci"):
        express = below and kind in _EXPRESS and address.endswith(".0") and not physfn
        link_built(reading, required=express)
    if not below and kind not in ("bridge", "pci"):  # a hypervisor may pass through the function with its link
        link_now(reading, asleep)
    reading.set(
        parent=parent,
        driver=reading.target("driver", "driver"),
        iommu_group=reading.target("iommu_group", "iommu_group", count),
        physfn=physfn,
        slot=slot,
    )
    yield from reading.records()


def _unread_nics(host: Host, functions: Sequence[Pci], folders: Mapping[str, str]) -> Iterator[NotChecked]:
    """Yield a NotChecked for each NIC below a port if the kernel shows no link attributes of it.

    If it shows those of other products only, a NIC without them is a conventional PCI card.
    """
    shown = {(function.vendor, function.device) for function in functions if function.max_width is not None}
    nics = [one for one in functions if kind_of(one) == "nic" and one.max_width is None and one.max_speed is None]
    for nic in nics:
        known = not shown or (nic.vendor, nic.device) in shown
        below = nic.parent in folders and nic.key.endswith(".0") and not nic.physfn
        if known and below and not is_asleep(host, folders[nic.key]):
            yield NotChecked(
                what="Pci.width",
                subject=nic.key,
                reason=Reason.NOT_SUPPORTED,
                detail=NO_ATTRIBUTES,
                how=NEEDS_ATTRIBUTES,
            )


def _identity(reading: FactReader) -> None:
    """Read class and IDs: five numbers from the uevent file, or each from its own file if uevent lacks them."""
    if found := _UEVENT.search(reading.peek("uevent") or ""):
        numbers = {name: int(number, 16) for name, number in found.groupdict().items()}
        reading.cite("uevent", found[0].replace("\n", " "), **numbers)
        return
    reading.take("pci_class", "class", hexadecimal, required=True)
    reading.take("vendor", "vendor", hexadecimal, required=True)
    reading.take("device", "device", hexadecimal, required=True)
    reading.take("subvendor", "subsystem_vendor", hexadecimal)
    reading.take("subdevice", "subsystem_device", hexadecimal)


def _roots(folder: str) -> Iterator[HostBridge]:
    """Yield the PCI roots on the path. Intel VMD has another root below a function."""
    above: str | None = None
    for name in folder.split("/"):
        if PCI_ADDRESS.fullmatch(name):
            above = name
        elif ROOT.fullmatch(name):
            yield HostBridge(key=name, parent=above)


def _slots(host: Host) -> Mapping[str, str]:
    """Return the slot names printed on the board, by device address without function ("0000:53:00")."""
    slots: dict[str, str] = {}
    with suppress(Unreadable):  # only for display: no rule uses the slot
        for name in filter(str.isprintable, host.list(SLOTS)):
            with suppress(Unreadable):
                if address := host.read(f"{SLOTS}/{name}/address"):
                    slots[address] = name
    return slots
