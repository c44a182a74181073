"""Devices on the bus whose driver does not use them any more, by comparison with the inventory of earlier."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..facts.machine import Pci
from ..facts.pci_classes import NVIDIA
from .inventory import Item
from .present import comparable, present
from .snapshot import Snapshot

# These drivers hand a device to a virtual machine or to a program, at an operator's request (kernel documentation,
# driver-api/vfio and driver-api/uio-howto; Xen's pciback).
_LENDS = re.compile(r"vfio|uio|pci-?stub|pciback")
_READ_BY = {"nvme": "Nvme", "gpu": "Gpu"}  # kind of device -> facts that show whether a driver uses it


def lends(driver: str | None) -> bool:
    """Whether the driver hands devices to a guest or to a program."""
    return driver is not None and _LENDS.search(driver) is not None


def without_driver(snapshot: Snapshot, kind: str) -> tuple[tuple[Item, Item], ...]:
    """The devices of a kind that a driver used before and none uses now, each as it was and as it is.

    Devices that another driver has now are left out. The driver of NVIDIA's GPUs is compared in rules/gpu/driver.py,
    and RDMA devices are counted (rules/host/counts.py).
    """
    pairs = _pairs(snapshot, kind)
    return tuple((old, new) for old, new in pairs if _was_used(old) and _is_unused(snapshot, old, new))


def lent(snapshot: Snapshot, kind: str) -> tuple[Item, ...]:
    """The devices of a kind that a driver used before and that are handed to a guest or to a program now."""
    return tuple(old for old, new in _pairs(snapshot, kind) if _was_used(old) and lends(new.driver))


def _pairs(snapshot: Snapshot, kind: str) -> Iterator[tuple[Item, Item]]:
    """The devices of a kind that are in the place where they were before. A lost device has other findings."""
    before = comparable(snapshot)
    now = {item.key: item for item in present(snapshot).of(kind)} if before else {}
    for old in before.of(kind) if before else ():
        new, function = now.get(old.key), snapshot.of(Pci).get(old.key)
        if new and function and not function.lost and (old.product is None or old.product == new.product):
            yield old, new


def _was_used(item: Item) -> bool:
    return bool(item.alias or item.driver) and not lends(item.driver)


def _is_unused(snapshot: Snapshot, old: Item, new: Item) -> bool:
    unread = {one.what for one in snapshot.not_checked if one.subject in (new.key, "node", new.alias)}
    nvidia = (old.product or "").startswith(f"{NVIDIA:04x}:")
    if not unread.isdisjoint({"Pci.driver", _READ_BY.get(old.kind)}) or old.rdma or (old.kind == "gpu" and nvidia):
        return False
    if new.driver and (new.driver != (old.driver or new.driver) or lends(new.driver)):
        return False
    is_unbound = old.driver is not None and new.driver is None
    return is_unbound or (old.kind in _READ_BY and old.alias is not None and new.alias is None)
