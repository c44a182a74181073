"""Disks, arrays and mounts of a synthetic node (ABI/stable/sysfs-block, admin-guide/md, drivers/nvme/host/sysfs.c)."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping

from ...models.facts.machine import Mount, Nvme
from ..host.entries import Link
from .pci import Function
from .schema import Array, Node
from .tree_writer import TreeWriter

_SECTOR = 512
# Redundant levels; the others have no file `degraded` (md_redundancy_group of drivers/md/md.c).
_REDUNDANT = ("raid1", "raid4", "raid5", "raid6", "raid10")


def write_storage(tree: TreeWriter, node: Node, functions: Iterable[Function]) -> None:
    """Write disks with partitions, arrays and mounts. Raises ValueError for a missing array member."""
    for function in functions:
        if function.model.kind == "nvme":
            _nvme(tree, function)
        elif function.model.kind == "sata":
            _sata(tree, function)
    for name, array in node.array.items():
        _array(tree, name, array)
    mounts = "\n".join(f"{mount.device} {mount.at} {mount.fstype} {mount.options} 0 0" for mount in node.mount)
    tree.put("proc/self/mounts", mounts)
    tree.put("proc/1/mounts", mounts)
    tree.link("proc/mounts", "proc/self/mounts")


def free_space(node: Node, *requested: str) -> Iterator[Mount]:
    """Yield the results of the call `statvfs`."""
    for mount in node.mount:
        if mount.at in requested:
            yield Mount(key=mount.at, size=mount.size, free=mount.free)


def new_drives(*requested: str) -> Iterator[Nvme]:
    """Yield the results of the call `nvme_health`: drives without a fault."""
    for name in requested:
        yield Nvme(key=name, critical_warning=0, spare=100, spare_threshold=10, used=0, media_errors=0)


def _nvme(tree: TreeWriter, function: Function) -> None:
    model, name = function.model, function.names[0]
    folder = f"{function.folder}/nvme/{name}"
    tree.files(
        folder,
        model=model.product,
        firmware_rev=model.firmware,
        serial=f"SERIAL{int(name[4:]) + 1:04}",
        state=function.change.state or "live",
        transport="pcie",
        address=function.address,
        cntlid=1,
        numa_node=function.numa,
    )
    tree.link(f"{folder}/device", function.folder)
    tree.link(f"sys/class/nvme/{name}", folder)
    _disk(tree, function, f"{folder}/{name}n1", folder)


def _sata(tree: TreeWriter, function: Function) -> None:
    number = int(function.names[0].removeprefix("sata"))
    folder = f"{function.folder}/ata{number + 1}/host{number}/target{number}:0:0/{number}:0:0:0"
    tree.files(folder, vendor="ATA", model=function.model.product[:16], state="running")
    _disk(tree, function, f"{folder}/block/{function.disks[0]}", folder)


def _disk(tree: TreeWriter, function: Function, folder: str, device: str) -> None:
    size = function.model.size if function.change.size is None else function.change.size
    _block(tree, folder, size)
    tree.link(f"{folder}/device", device)
    tree.link(f"sys/block/{folder.rpartition('/')[2]}", folder)
    disk = function.disks[0]
    for number, part in enumerate(function.change.partitions, 1):
        name = f"{disk}p{number}" if disk[-1].isdigit() else f"{disk}{number}"
        tree.files(f"{folder}/{name}", partition=number, size=part // _SECTOR, ro=0)
        tree.link(f"sys/class/block/{name}", f"{folder}/{name}")


def _block(tree: TreeWriter, folder: str, size: int) -> None:
    tree.files(folder, size=size // _SECTOR, ro=0, removable=0, stat=" ".join(["0"] * 17))
    tree.files(f"{folder}/queue", rotational=0, logical_block_size=_SECTOR)
    tree.link(f"sys/class/block/{folder.rpartition('/')[2]}", folder)


def _array(tree: TreeWriter, name: str, array: Array) -> None:
    folder, folders = f"sys/devices/virtual/block/{name}", _folders(tree)
    _block(tree, folder, array.size)
    tree.link(f"sys/block/{name}", folder)
    tree.files(
        f"{folder}/md", level=array.level, array_state=array.state, raid_disks=len(array.members) + array.missing
    )
    if array.level in _REDUNDANT:
        tree.put(f"{folder}/md/degraded", array.missing + len(array.faulty))
    for slot, member in enumerate(array.members):
        if member not in folders:
            raise ValueError(f"array {name!r}: there is no disk {member!r}; there are {', '.join(folders) or 'none'}")
        tree.files(f"{folder}/md/dev-{member}", state="faulty" if member in array.faulty else "in_sync", slot=slot)
        tree.link(f"{folder}/md/dev-{member}/block", folders[member])
        tree.link(f"{folder}/slaves/{member}", folders[member])


def _folders(tree: TreeWriter) -> Mapping[str, str]:
    """Return the folders of all disks and partitions, by name."""
    links = {path: entry.target for path, entry in tree.entries.items() if isinstance(entry, Link)}
    return {
        path.rpartition("/")[2]: posixpath.normpath(f"sys/class/block/{target}")
        for path, target in links.items()
        if path.startswith("sys/class/block/")
    }
