"""The devices in a folder below sys/class, and the PCI functions above them."""

from __future__ import annotations

from collections.abc import Generator

from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked
from ..host.host import Host, Unreadable
from ..parsing.parsers import PCI_ADDRESS, shown


def devices(host: Host, folder: str, what: str) -> Generator[NotChecked, None, list[tuple[str, str]]]:
    """Name and resolved folder of each device. Yields a NotChecked of `what` for an unreadable folder or link.

    A driver chooses the names. Names that are not printable are skipped, with a NotChecked.
    """
    try:
        names = host.list(folder)
    except Unreadable as refusal:
        yield refusal.missed(what, "node", folder)
        return []
    found: list[tuple[str, str]] = []
    for name in names:
        if not name.isprintable():
            yield NotChecked(
                what=what,
                subject="node",
                reason=Reason.UNREADABLE,
                path=folder,
                detail=f"{shown(name)} is not a printable name",
            )
            continue
        try:
            target = host.resolve(f"{folder}/{name}")
        except Unreadable as refusal:
            yield refusal.missed(what, name, f"{folder}/{name}")
            continue
        if target is not None:
            found.append((name, target))
    return found


def pci_function(folder: str) -> str | None:
    """The nearest PCI function above a device's folder. None: the device is virtual or not on PCI."""
    above = folder.split("/")[:-1]
    return next((part for part in reversed(above) if PCI_ADDRESS.fullmatch(part)), None)


def is_virtual(folder: str) -> bool:
    """Whether a device has no hardware: a network bridge, a bond, a tunnel, a software RDMA device."""
    return folder.startswith("sys/devices/virtual/")
