"""Inventory: the hardware that a node had at one time, and the comparison of two inventories.

The state folder stores inventories. Serial numbers and GUIDs in them never appear in a report.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

ChangeKind: TypeAlias = Literal["removed", "added", "swapped", "moved", "firmware"]
_GROWN = ("width", "speed", "rate", "nvlinks", "memory", "namespaces")  # of these the greater value is the reference
UP = "ACTIVE"  # the state of a port that is up; later inventories keep it
PARTS = frozenset({"gpu", "nic", "nvme", "nvswitch"})  # devices that can be removed, added and moved


class Item(Struct, frozen=True, kw_only=True):
    """One device, port, processor or NUMA node. None: not known at that time. Rates in bytes per second."""

    kind: str  # "gpu", "nic", "nvme", "nvswitch", "bridge", "port", "package", "numa"
    key: str  # the PCI address, or the key of the fact: "mlx5_0/1", "package0", "numa1"
    alias: str | None = None  # the driver's name: "gpu3", "mlx5_0", "nvme1"
    product: str | None = None  # "10de:2330:10de:16c1"
    name: str | None = None
    driver: str | None = None  # of its PCI function
    identity: str | None = None  # UUID, GUID or serial number: the same device has the same at another address
    serial: str | None = None  # serial number, for tickets
    slot: str | None = None
    label: str | None = None
    module_id: int | None = None
    firmware: str | None = None
    part: str | None = None  # board part number of a GPU, PSID of an RDMA device: for tickets
    above: tuple[str, ...] = ()  # addresses of the PCI ports above, the nearest first
    width: int | None = None  # lanes
    speed: float | None = None  # highest speed of both ends of the link, in transfers per second and lane
    state: str | None = None
    rate: float | None = None
    nvlinks: int | None = None  # active
    memory: int | None = None  # bytes
    rdma: bool | None = None  # whether a NIC is an RDMA device
    namespaces: int | None = None  # disks of an NVMe controller; None: not known, or none
    accepted: bool = False  # an operator accepted the node with this item
    seen_at: float | None = None  # seconds since 1970, of a device that was absent at the time of its inventory


class Inventory(Struct, frozen=True, kw_only=True):
    """What was present at one time."""

    taken_at: float  # seconds since 1970
    boot_id: str | None = None
    machine: str | None = None  # vendor and product name of the machine
    devices: tuple[Item, ...] = ()
    absent: tuple[Item, ...] = ()  # devices of earlier without which an operator accepted the node

    def of(self, *kinds: str) -> tuple[Item, ...]:
        """The items of these kinds."""
        return tuple(item for item in self.devices if item.kind in kinds)

    def find(self, name: str) -> Item | None:
        """The item with this key or alias."""
        return next((item for item in self.devices if name in (item.key, item.alias)), None)


class Change(Struct, frozen=True):
    """A difference between two inventories. `before` is None for an added device, `now` for a removed one."""

    kind: ChangeKind
    before: Item | None
    now: Item | None


def same_machine(before: Inventory, now: Inventory) -> bool:
    """Whether both inventories are of one machine. A disk image can carry the inventory of another machine."""
    old, new = ({item.identity for item in one.devices if item.identity} for one in (before, now))
    return not _differ(before.machine, now.machine) and not (old and new and old.isdisjoint(new))


def differences(before: Inventory, now: Inventory) -> tuple[Change, ...]:
    """What was removed, added, swapped, moved to another address, or has other firmware."""
    return tuple(change for pair in paired(before, now) for change in _changes(*pair))


def paired(before: Inventory, now: Inventory) -> list[tuple[Item | None, Item | None]]:
    """Each item with its counterpart: the same device, else the device in the same place, else an equal device.

    Two devices of one kind without a counterpart form a pair: one was replaced by the other in another place.
    """
    old, new = list(before.of(*PARTS)), list(now.of(*PARTS))
    pairs: list[tuple[Item | None, Item | None]] = []
    steps: tuple[Callable[[Item], Hashable | None], ...] = (
        lambda item: item.identity and (item.kind, item.identity),
        lambda item: (item.kind, item.key),
        lambda item: (item.kind, item.product, item.name),
        lambda item: item.kind,
    )
    for step in steps:
        places: dict[Hashable, list[Item]] = {}
        for item in new:
            places.setdefault(step(item), []).append(item)
        for item in list(old):
            key = step(item)
            if key is not None and places.get(key):
                other = places[key].pop(0)
                pairs.append((item, other))
                old.remove(item)
                new.remove(other)
    return [*pairs, *((item, None) for item in old), *((None, item) for item in new)]


def _changes(old: Item | None, new: Item | None) -> Iterator[Change]:
    if old is None or new is None:
        yield Change("added" if old is None else "removed", old, new)
    elif _differ(old.identity, new.identity) or _differ(old.product, new.product):
        yield Change("swapped", old, new)
    else:
        if old.key != new.key:
            yield Change("moved", old, new)
        if _differ(old.firmware, new.firmware):
            yield Change("firmware", old, new)


def _differ(old: object, new: object) -> bool:
    """Whether both values are known and not equal."""
    return old is not None and new is not None and old != new


def completed(reference: Inventory, now: Inventory) -> Inventory:
    """The reference with values that were unknown at its time, as drivers load after the first cycle of a boot."""
    known = {(item.kind, item.key): item for item in now.devices}
    items = [_filled(item, known.get((item.kind, item.key))) for item in reference.devices]
    late = _missing_keys(reference.devices, (item for item in now.devices if item.kind not in PARTS))
    devices = (*items, *late)
    return reference if devices == reference.devices else replace(reference, devices=devices)


def _missing_keys(present: Iterable[Item], further: Iterable[Item]) -> list[Item]:
    keys = {(item.kind, item.key) for item in present}
    return [item for item in further if (item.kind, item.key) not in keys]


def _filled(old: Item, new: Item | None) -> Item:
    if new is None or _differ(old.product, new.product) or _differ(old.identity, new.identity):
        return old
    values = {name: value for name in _unknown(old) if (value := getattr(new, name)) not in (None, ())}
    return replace(old, **values) if values else old


def _unknown(item: Item) -> list[str]:
    """The fields without a value."""
    return [name for name in item.__struct_fields__ if getattr(item, name) in (None, ())]


def advanced(reference: Inventory, last: Inventory) -> Inventory:
    """The reference for a new boot: the state of the boot before. What was absent or lower then stays expected.

    An operator's acceptance replaces the reference, and so ends the search for an absent device.
    """
    if not same_machine(reference, last):
        return last
    items = [_later(old, new, reference.taken_at) for old, new in paired(reference, last)]
    rest = [item for item in reference.devices if item.kind not in PARTS]
    others = {(item.kind, item.key): item for item in last.devices}
    rest = [_grown(item, others.get((item.kind, item.key), item)) for item in rest]
    late = _missing_keys(rest, (item for item in last.devices if item.kind not in PARTS))
    kept = (item for item in items if item)
    taken_at = max(reference.taken_at, last.taken_at)
    return replace(last, taken_at=taken_at, devices=(*kept, *rest, *late), absent=reference.absent)


def _later(old: Item | None, new: Item | None, taken_at: float) -> Item | None:
    """The item of the next reference. An absent device keeps the time at which it was seen last."""
    if old and new:
        return replace(_grown(old, new), seen_at=None)
    return replace(old, seen_at=old.seen_at or taken_at) if old else new


def _grown(old: Item, new: Item) -> Item:
    """The newer item. An equal device keeps its greater width, speed, rate, memory and number of NVLinks."""
    if _differ(old.product, new.product):
        return new
    known: dict[str, Any] = {name: getattr(old, name) for name in _unknown(new)}
    if old.key == new.key:
        pairs = {name: (getattr(old, name), getattr(new, name)) for name in _GROWN}
        known |= {name: max(pair) for name, pair in pairs.items() if None not in pair}
        known["accepted"] = old.accepted and not _differ(old.identity, new.identity)
        known["state"] = old.state if old.accepted or old.state == UP else new.state or old.state
    return replace(new, **known)


def last_seen(inventory: Inventory, item: Item) -> float:
    """A time at which the item of this inventory was present, in seconds since 1970."""
    return inventory.taken_at if item.seen_at is None else item.seen_at


def accepted_now(inventory: Inventory, absent: Iterable[Item] = ()) -> Inventory:
    """The inventory of a node that an operator accepts without the `absent` devices."""
    devices = tuple(replace(item, accepted=True) for item in inventory.devices)
    return replace(inventory, devices=devices, absent=tuple(absent))


def equal(old: Inventory, new: Inventory) -> bool:
    """Whether both have the same devices. States and rates of ports change too often to count."""
    return old.devices == new.devices or [*map(_lasting, old.devices)] == [*map(_lasting, new.devices)]


def _lasting(item: Item) -> Item:
    return replace(item, state=None, rate=None, nvlinks=None)
