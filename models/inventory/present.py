"""The inventory of a snapshot, and its comparison with the inventory of earlier."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from ..facts.gpu import Gpu
from ..facts.machine import Disk, Net, Node, Numa, Nvme, Package, Pci, Port, Rdma, Serial
from ..facts.pci_classes import kind_of
from .cohorts import carried
from .inventory import UP, Change, Inventory, Item, differences, same_machine
from .pci_tree import functions_above, is_emulated_port
from .snapshot import Snapshot, once_per_snapshot

_KINDS = frozenset({"gpu", "nic", "nvme", "nvswitch"})
_NVME_DISK = re.compile(r"nvme[0-9]+n[0-9]+")
_WRONG_MAXIMUM = 5e9  # transfers per second


def is_complete(snapshot: Snapshot) -> bool:
    """Whether all PCI functions were read. Dumps show parts of a machine."""
    unread = any(one.what in ("Pci", "Pci.pci_class", "Pci.vendor") for one in snapshot.not_checked)
    return snapshot.origin != "dumps" and bool(snapshot.of(Pci)) and not unread


@once_per_snapshot
def present(snapshot: Snapshot) -> Inventory:
    """What is present. A device that does not answer is present."""
    node = snapshot.of(Node).get("node")
    machine = " ".join(filter(None, (node.vendor, node.product))) if node else ""
    devices = (*_functions(snapshot), *_ports(snapshot), *_processors(snapshot))
    boot_id = node.boot_id if node else None
    return Inventory(taken_at=snapshot.now, boot_id=boot_id, machine=machine or None, devices=devices)


@once_per_snapshot
def comparable(snapshot: Snapshot) -> Inventory | None:
    """The earlier inventory. None: there is none, it is of another machine, or the PCI functions were not read."""
    before = snapshot.inventory
    return before if before and is_complete(snapshot) and same_machine(before, present(snapshot)) else None


@once_per_snapshot
def changes(snapshot: Snapshot) -> tuple[Change, ...]:
    """The differences from the earlier inventory. Empty if there is none to compare with."""
    before = comparable(snapshot)
    return differences(before, present(snapshot)) if before else ()


def removed(snapshot: Snapshot, *kinds: str) -> tuple[Item, ...]:
    """The devices of these kinds that were there before and are not there now."""
    items = (change.before for change in changes(snapshot) if change.kind == "removed")
    return tuple(item for item in items if item and item.kind in kinds)


def known_absent(snapshot: Snapshot, *kinds: str) -> tuple[Item, ...]:
    """The absent devices of these kinds that need no further finding: removed ones, and those accepted as absent."""
    before = comparable(snapshot)
    if before is None:
        return ()
    here = {item.key for item in present(snapshot).devices} if before.absent else ()
    return (*removed(snapshot, *kinds), *(one for one in before.absent if one.kind in kinds and one.key not in here))


def earlier_item(snapshot: Snapshot, kind: str, key: str) -> Item | None:
    """The item that was in this place before, if the same product is there now."""
    if comparable(snapshot) is None:
        return None
    now, found = _by_place(snapshot).get((kind, key)), _by_earlier_place(snapshot).get((kind, key))
    return found if found and now and (found.product is None or found.product == now.product) else None


@once_per_snapshot
def able_speeds(snapshot: Snapshot) -> Mapping[str, float | None]:
    """The highest speed of both ends of the link above each function, by PCI address. None: not known."""
    functions = snapshot.of(Pci)
    links = snapshot.topology.link_below.items()
    return {address: _able_speed(snapshot, functions[address], functions[link.a]) for address, link in links}


def _able_speed(snapshot: Snapshot, function: Pci, port: Pci) -> float | None:
    """As `able_speed`. A dump of NCCL's topology has one speed for both ends."""
    if snapshot.origin == "dumps" and function.max_speed is None and function.speed is None and port.speed is None:
        return port.max_speed
    return able_speed(function, port)


def able_speed(function: Pci, port: Pci) -> float | None:
    """The lower maximum of both ends of a PCIe link, but at least the present speed. None: not known.

    A port that a hypervisor made up does not limit the link: at rest nothing shows what the real slot supports. Some
    switches report a maximum of 5 GT/s and run at 32 (Oracle's H100 machines): at rest their maximum is not known.
    """
    if function.max_speed is None or port.max_speed is None or function.speed is None:
        return None
    if is_emulated_port(port):
        return function.max_speed if function.speed >= function.max_speed else None
    wrong = kind_of(function) == "bridge" and function.max_speed == _WRONG_MAXIMUM < port.max_speed
    if wrong and function.speed <= function.max_speed:
        return None
    return max(min(function.max_speed, port.max_speed), function.speed)


@once_per_snapshot
def _by_place(snapshot: Snapshot) -> Mapping[tuple[str, str], Item]:
    return {(item.kind, item.key): item for item in present(snapshot).devices}


@once_per_snapshot
def _by_earlier_place(snapshot: Snapshot) -> Mapping[tuple[str, str], Item]:
    before = snapshot.inventory
    return {(item.kind, item.key): item for item in before.devices} if before else {}


def _functions(snapshot: Snapshot) -> Iterator[Item]:
    """GPUs, NICs, disks and NVSwitches on PCI, and the ports above them. Virtual functions are left out."""
    functions, speeds = snapshot.of(Pci), able_speeds(snapshot)
    carriers = carried(snapshot).keys()
    drivers = _by_address(snapshot)
    for function in functions.values():
        if not (kind_of(function) in _KINDS or function.key in carriers) or function.physfn:
            continue
        item = Item(
            kind=kind_of(function),
            key=function.key,
            product=_product(function),
            name=function.name,
            driver=function.driver or None,
            slot=function.slot,
            label=function.label,
            above=tuple(functions_above(function.key, functions)),
            width=function.width if not function.lost else None,
            speed=speeds.get(function.key) if not function.lost else None,
        )
        driver = drivers.get(function.key)
        yield _with_driver(snapshot, item, driver) if driver else item


def _product(function: Pci) -> str | None:
    if function.vendor is None or function.device is None:
        return function.name
    ids = (function.vendor, function.device, function.subvendor, function.subdevice)
    return ":".join(f"{number:04x}" for number in ids if number is not None)


@once_per_snapshot
def _by_address(snapshot: Snapshot) -> Mapping[str, Gpu | Rdma | Nvme]:
    """What the drivers report, by PCI address."""
    found: dict[str, Gpu | Rdma | Nvme] = {}
    for kind in (Nvme, Rdma, Gpu):
        for fact in snapshot.of(kind).values():
            if fact.address:  # type: ignore[attr-defined]
                found[fact.address] = fact  # type: ignore[attr-defined, assignment]
    return found


def _with_driver(snapshot: Snapshot, item: Item, driver: Gpu | Rdma | Nvme) -> Item:
    serial = snapshot.of(Serial).get(driver.key)
    number = serial.number if serial else None
    item = replace(item, alias=driver.key, serial=number)
    if isinstance(driver, Gpu):
        return replace(
            item,
            identity=driver.uuid,
            firmware=driver.vbios,
            part=driver.board_part,
            module_id=driver.module_id,
            nvlinks=driver.nvlinks,
            memory=driver.memory,
        )
    if isinstance(driver, Rdma):
        identity = serial.guid if serial else None
        return replace(item, identity=identity, firmware=driver.firmware, part=driver.board_id, rdma=True)
    return replace(
        item,
        identity=number,
        firmware=driver.firmware,
        name=driver.model or item.name,
        namespaces=namespaces(snapshot, driver.key) or None,
    )


def namespaces(snapshot: Snapshot, controller: str) -> int | None:
    """The number of disks of an NVMe controller. None: they were not read, or one belongs to several controllers."""
    disks = [one for key, one in snapshot.of(Disk).items() if _NVME_DISK.fullmatch(key)]
    unread = any(one.what in ("Disk", "Disk.controller") for one in snapshot.not_checked)
    if unread or any(one.controller is None for one in disks):
        return None
    return sum(1 for one in disks if one.controller == controller)


def _ports(snapshot: Snapshot) -> Iterator[Item]:
    """RDMA ports, and the ports of Ethernet cards without RDMA."""
    for port in snapshot.of(Port).values():
        yield Item(kind="port", key=port.key, state=port.state, rate=port.rate)
    shared = {port.netdev for port in snapshot.of(Port).values()}
    for net in snapshot.of(Net).values():
        function = snapshot.of(Pci).get(net.address or "")
        if function and not function.physfn and net.link_type == "ethernet" and net.key not in shared:
            yield Item(kind="port", key=net.key, state=UP if net.enabled and net.carrier else None, rate=net.speed)


def _processors(snapshot: Snapshot) -> Iterator[Item]:
    for package in snapshot.of(Package).values():
        yield Item(kind="package", key=package.key, product=package.model, name=package.model)
    for numa in snapshot.of(Numa).values():
        if numa.cpus:  # nodes with memory only come and go with drivers
            yield Item(kind="numa", key=numa.key, memory=numa.memory)
