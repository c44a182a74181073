"""Names of devices as users write them, for all commands, options and files.

Accepted, in upper or lower case: an address with or without domain ("0000:1e:00.0", "1e:00.0"), the name of a driver or
of the kernel ("gpu1", "mlx5_3", "mlx5_3/1", "ib0", "nvme0n1", "numa1"), the number of a NIC in the matrix ("nic3"), a
UUID, a serial number, a slot ("slot 4") and the position of a GPU on its baseboard ("module 2").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..facts.gpu import Gpu
from ..facts.machine import Pci, Serial
from ..graph.path_types import natural, nics
from ..graph.topology import Device, Topology
from .inventory import Item
from .snapshot import Snapshot, once_per_snapshot

_MOST = 3  # suggested names
_INSIDE = frozenset({"port", "disk", "function"})  # links between the parts of one device
_WHOLE = frozenset({"nic", "nvme", "port"})  # a storage controller is another part than its disk
_LIST = "'linkgauge topology' lists all names"


def devices_called(snapshot: Snapshot, text: str) -> tuple[str, ...]:
    """The ids of the devices with this name, in natural order. A slot holds all functions of its card.

    An id is a PCI address or a key of the topology, else the key of a fact. Empty: no present device has this name.
    """
    exact = snapshot.topology.find(text)
    if exact:
        return (exact.id,)
    if _has_facts(snapshot, text):
        return (text,)
    return tuple(sorted(_known(snapshot).get(_folded(text), ()), key=natural))


def names_of(snapshot: Snapshot, text: str) -> frozenset[str]:
    """All names of the device that `text` names, and of its ports, network devices and disks. Empty: no such device.

    A port, network device or disk that is the only one of its device has the names of this device, too. An absent
    device has its names of earlier that no present device has: drivers number devices anew.
    """
    ids = devices_called(snapshot, text)
    if ids:
        return frozenset(name for one in ids for name in _names_of_part(snapshot, one))
    absent = absent_item(snapshot, text)
    names = filter(None, (absent.key, absent.alias)) if absent else ()
    return frozenset(name for name in names if name == text or not is_present(snapshot, name))


def absent_item(snapshot: Snapshot, text: str) -> Item | None:
    """The device of an earlier time that has this name and is absent now."""
    for item in snapshot.inventory.devices if snapshot.inventory else ():
        if _folded(text) in map(_folded, _names_of_item(item)) and not is_present(snapshot, item.key):
            return item
    return None


def is_present(snapshot: Snapshot, name: str) -> bool:
    """Whether a present device has this name of the kernel or of its driver."""
    return snapshot.topology.find(name) is not None or _has_facts(snapshot, name)


def unknown(snapshot: Snapshot, text: str, further: tuple[str, ...] = ()) -> str:
    """The message for a name that no device has, with the nearest names. `further`: names that are valid, too."""
    names = {name.lower(): name for name in (*further, *_plain_names(snapshot.topology))}
    from difflib import get_close_matches  # imported only on an error: the import is slow

    near = sorted(get_close_matches(text.lower(), names, _MOST, 0.6), key=natural)
    hint = f"did you mean {' or '.join(names[one] for one in near)}? " if near else ""
    return f"this node has no device {text!r}; {hint}{_LIST}"


def names_of_kernel(device: Device) -> Iterator[str]:
    """The names of the kernel and of the driver, and the address without the domain if that is 0."""
    yield from (*_with_short_address(device.id), *device.aliases)


def _with_short_address(key: str) -> Iterator[str]:
    """The key, and a PCI address without its domain if that is 0."""
    yield key
    domain, colon, rest = key.partition(":")
    if colon and ":" in rest and set(domain) == {"0"}:
        yield rest


def _has_facts(snapshot: Snapshot, name: str) -> bool:
    return any(name in facts for facts in snapshot.facts.values())


def _plain_names(topology: Topology) -> Iterator[str]:
    """The names of the kernel and of the drivers: no serial numbers, which stay secret."""
    for device in topology.devices:
        yield from (device.id, *device.aliases)


def _folded(text: str) -> str:
    """The text without differences of case and spaces: "Module 2" and "module2" are one name."""
    return "".join(text.lower().split())


@once_per_snapshot
def _known(snapshot: Snapshot) -> Mapping[str, frozenset[str]]:
    """The ids by folded name. A name of the kernel or of a driver takes precedence over the other names."""
    known: dict[str, frozenset[str]] = {}
    for names in (_kernel_names(snapshot), _numbers(snapshot.topology), _printed_names(snapshot)):
        found: dict[str, set[str]] = {}
        for name, one in names:
            found.setdefault(_folded(name), set()).add(one)
        known = {**{name: frozenset(ids) for name, ids in found.items()}, **known}
    return known


def _kernel_names(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    for device in snapshot.topology.devices:
        yield from ((name, device.id) for name in names_of_kernel(device))
    for facts in snapshot.facts.values():
        yield from ((key, key) for key in facts if not snapshot.topology.find(key))


def _numbers(topology: Topology) -> Iterator[tuple[str, str]]:
    """The numbers of the GPU and NIC matrix."""
    for number, nic in enumerate(nics(topology)):
        yield f"nic{number}", nic.device.id


def _printed_names(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """UUIDs, serial numbers, GUIDs, positions and slots."""
    for gpu in snapshot.of(Gpu).values():
        device = snapshot.topology.find(gpu.key)
        for name in (gpu.uuid, gpu.module_id and f"module {gpu.module_id}"):
            if name:
                yield name, device.id if device else gpu.key
    for one in snapshot.of(Serial).values():
        device = snapshot.topology.find(one.key)
        for name in filter(None, (one.number, one.guid)):
            yield name, device.id if device else one.key
    for item in snapshot.inventory.devices if snapshot.inventory else ():
        device = snapshot.topology.find(item.key)
        if item.serial and device and device.uuid and device.uuid == item.identity:  # not swapped since
            yield item.serial, item.key
    for function in snapshot.of(Pci).values():
        for word, name in (("slot", function.slot), ("slot", function.label), ("label", function.label)):
            if name:
                yield from ((name, function.key), (f"{word} {name}", function.key))


def _names_of_item(item: Item) -> Iterator[str]:
    yield from _with_short_address(item.key)
    yield from filter(None, (item.alias, item.serial, item.identity, item.slot, item.label))
    if item.slot:
        yield f"slot {item.slot}"
    if item.module_id:
        yield f"module {item.module_id}"


def _names_of_part(snapshot: Snapshot, name: str) -> Iterator[str]:
    """The names of a device, of its parts, and of the device that has only this part."""
    topology = snapshot.topology
    device = topology.find(name)
    if device is None:
        yield name
        return
    below, above = _parts(snapshot)
    top = device.id
    while len(below.get(above.get(top, ""), ())) == 1 and topology.by_name[above[top]].kind in _WHOLE:
        top = above[top]
    waiting = [top]
    while waiting:
        one = topology.by_name[waiting.pop()]
        yield from (one.id, *one.aliases)
        waiting += below.get(one.id, ())


@once_per_snapshot
def _parts(snapshot: Snapshot) -> tuple[Mapping[str, list[str]], Mapping[str, str]]:
    """The ports, network devices and disks of each device, and the device of each. Functions of a card are devices."""
    below: dict[str, list[str]] = {}
    kinds = {device.id: device.kind for device in snapshot.topology.devices}
    for link in snapshot.topology.links:
        if link.kind in _INSIDE and kinds.get(link.b) in ("port", "netdev", "disk"):
            below.setdefault(link.a, []).append(link.b)
    return below, {one: above for above, several in below.items() for one in several}
