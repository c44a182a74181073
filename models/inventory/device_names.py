"""Names and places of the devices of a node, for people: "gpu1 (module 2, 1e:00.0)".

A subject is any name that a finding uses: a PCI address, "gpu3", "mlx5_3/1", "ib0", "nvme0n1", a group of them
("gpu0-gpu3"), or a part without an address ("numa0", "md0", "node").
"""

from __future__ import annotations

from collections.abc import Mapping

from ..facts.gpu import Gpu
from ..facts.machine import Disk, Net, Nvme, Pci, Port, Rdma
from .inventory import PARTS, Item
from .pci_tree import functions_above
from .snapshot import Snapshot

_WORDS = {
    "gpu": "GPU",
    "nic": "NIC",
    "nvme": "NVMe disk",
    "nvswitch": "NVSwitch",
    "upstream-port": "switch uplink",
    "downstream-port": "switch port",
    "root-port": "root port",
}
_FUNCTIONS = PARTS | {"bridge"}
_BELOW = 4  # names of devices below a port
_DOMAIN = "0000:"


def address_of(snapshot: Snapshot, subject: str) -> str | None:
    """The PCI address of the device with this name, also of a device that is absent. None: it has none."""
    if subject in snapshot.of(Pci) or _absent(snapshot, subject):
        return subject
    port = snapshot.of(Port).get(subject)
    name = port.device if port and port.device else subject
    disk = snapshot.of(Disk).get(name)
    name = (disk.controller or disk.partition_of or name) if disk and not disk.address else name
    for kind in (Gpu, Rdma, Nvme, Net, Disk):
        fact = snapshot.of(kind).get(name)
        if isinstance(fact, Gpu | Rdma | Nvme | Net | Disk) and fact.address:
            return fact.address
    device = snapshot.topology.find(name)
    return device.id if device and device.id in snapshot.of(Pci) else None


def short_address(address: str) -> str:
    """The address as lspci prints it: without the domain 0000."""
    return address.removeprefix(_DOMAIN)


def place(snapshot: Snapshot, subject: str) -> dict[str, str | int | None]:
    """Where a technician finds the device: slot, label, position on the baseboard; else the port or slot above it.

    For a port of a switch or of a processor: the devices below it. Empty if nothing is known.
    """
    address = address_of(snapshot, subject)
    function = snapshot.of(Pci).get(address or "")
    if function is None:
        item = _absent(snapshot, address or subject)
        known = {"slot": item.slot, "label": item.label, "module_id": item.module_id} if item else {}
        return {name: value for name, value in known.items() if value}
    modules = [gpu.module_id for gpu in snapshot.of(Gpu).values() if gpu.address == function.key and gpu.module_id]
    before = None if modules else _earlier(snapshot, function.key)  # the driver of a GPU that fails does not say it
    module = modules[0] if modules else before.module_id if before and before.kind == "gpu" else None
    own = {"slot": function.slot, "label": function.label, "module_id": module}
    found: dict[str, str | int | None] = {name: value for name, value in own.items() if value}
    device = snapshot.topology.find(function.key)
    if device and device.kind.endswith("-port"):
        below = devices_below(snapshot, function.key)
        more = f" and {len(below) - _BELOW} more" if len(below) > _BELOW else ""
        found |= {"below_it": ", ".join(below[:_BELOW]) + more} if below else {}
    return found or _above(snapshot, function)


def _above(snapshot: Snapshot, function: Pci) -> dict[str, str | int | None]:
    """The nearest slot above a function; without one the port above it."""
    functions = snapshot.of(Pci)
    above = functions_above(function.key, functions)
    slots = (functions[address].slot for address in above)
    if slot := next(filter(None, slots), None):
        return {"slot_above": slot}
    return {"port_above": above[0]} if above else {}


def devices_below(snapshot: Snapshot, address: str) -> list[str]:
    """The short names of the GPUs, NICs and disks below a port, in the order of the topology."""
    functions = snapshot.of(Pci)
    found = []
    for device in snapshot.topology.devices:
        if device.id not in functions or device.kind not in ("gpu", "nic", "nvme", "nvswitch", "storage"):
            continue
        if address in functions_above(device.id, functions):
            found.append(device.aliases[0] if device.aliases else short_address(device.id))
    return found


def short_name(snapshot: Snapshot, subject: str) -> str:
    """The name that the driver or the kernel uses: "gpu1" for 0000:1e:00.0, "mlx5_3/1"; else kind and address."""
    if subject == "node":
        return "this node"
    device = snapshot.topology.find(subject)
    absent = _absent(snapshot, subject)
    if device and subject in snapshot.of(Pci):
        return device.aliases[0] if device.aliases else _WORDS.get(device.kind, "device")
    if subject in snapshot.of(Pci) or device is None and absent:
        return (absent.alias or _WORDS.get(absent.kind, "device")) if absent else "device"
    return subject


def described(snapshot: Snapshot, subject: str, location: Mapping[str, str | int | None] | None = None) -> str:
    """Name, place and address: "gpu1 (module 2, 1e:00.0)"."""
    address = address_of(snapshot, subject)
    known = place(snapshot, subject) if location is None else location
    where = place_in_words({name: value for name, value in known.items() if name != "port_above"})
    about = [*where[:1], *([short_address(address)] if address else [])]
    name = short_name(snapshot, subject)
    return f"{name} ({', '.join(about)})" if about and name != "this node" else name


def place_in_words(location: Mapping[str, str | int | None]) -> list[str]:
    """Each known part of a place as text, the best one first: "module 2", "slot PCIE-5", "above gpu0, gpu1"."""
    words = {
        "module_id": "module {}",
        "slot": "slot {}",
        "label": "label {}",
        "port_label": "port label {}",
        "below_it": "above {}",
        "slot_above": "below slot {}",
        "port_above": "below {}",
    }
    known = [words[name].format(location[name]) for name in words if location.get(name)]
    others = [f"{name.replace('_', ' ')} {value}" for name, value in location.items() if value and name not in words]
    return [*known, *others]


def _absent(snapshot: Snapshot, name: str) -> Item | None:
    """The PCI function of the earlier inventory with this address, if none has it now."""
    item = None if name in snapshot.of(Pci) else _earlier(snapshot, name)
    return item if item and item.kind in _FUNCTIONS else None


def _earlier(snapshot: Snapshot, address: str) -> Item | None:
    devices = snapshot.inventory.devices if snapshot.inventory else ()
    return next((item for item in devices if item.key == address), None)
