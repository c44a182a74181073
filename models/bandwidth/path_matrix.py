"""The matrix of `nvidia-smi topo -m`: the path type between each two GPUs and NICs."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ..catalog.nics import nic_of
from ..facts.gpu import Gpu, GpuPair
from ..facts.machine import Numa, Pci
from ..facts.network_paths import NicPath
from ..graph.path_types import DevicePath, natural, nearest, nics, paths
from ..graph.topology import Device
from ..inventory.snapshot import Snapshot
from .all_pairs import pairs

_RDMA_CLASSES = (0x0207, 0x0208, 0x0C06)  # InfiniBand, fabric, and the first InfiniBand adapters


class Row(Struct, frozen=True):
    """A GPU or a NIC: its label, its identity, and its nearest devices."""

    label: str  # "GPU3", "NIC0"; the PCI address of a GPU without a driver
    device: str  # id in the topology
    name: str = ""  # "mlx5_0"
    cpus: tuple[int, ...] | None = None
    numa: int | None = None
    nearest: tuple[tuple[str, DevicePath], ...] = ()  # the NICs of a GPU, by name


class Matrix(Struct, frozen=True):
    """The rows, which are also the columns, and the path for each pair of labels."""

    gpus: tuple[Row, ...]
    nics: tuple[Row, ...]
    paths: Mapping[tuple[str, str], DevicePath]


def matrix(snapshot: Snapshot) -> Matrix:
    """From a snapshot. NVML's path types are used only without a PCI tree, as in dumps."""
    gpus = tuple(sorted((_gpu(snapshot, d) for d in snapshot.topology.devices if d.kind == "gpu"), key=_place))
    listed = [(nic.device.id, nic.name) for nic in nics(snapshot.topology)]
    listed = listed or _named(snapshot) or _unnamed(snapshot)
    label = "NIC" if listed else "PCI"
    listed = listed or ([] if gpus else _leaves(snapshot))
    adapters = tuple(Row(f"{label}{n}", device, name) for n, (device, name) in enumerate(listed))
    found: dict[tuple[str, str], DevicePath] = {}
    known = {device.id for device in snapshot.topology.devices}
    columns = {row.device for row in (*gpus, *adapters)} & known
    for row in (*gpus, *adapters):
        reached = paths(snapshot.topology, row.device, columns) if row.device in known else {}
        for column in (*gpus, *adapters):
            path = reached.get(column.device) or _from_nvml(snapshot, row, column) or _to_nic(snapshot, row, column)
            if row is not column and path:
                found[row.label, column.label] = path
    return Matrix(gpus, adapters, found)


def copies(snapshot: Snapshot) -> Matrix:
    """The same with the typical rate of a long copy without other traffic, over links at their rated rate."""
    whole, reached = matrix(snapshot), pairs(snapshot.topology)
    at = {row.label: row.device for row in (*whole.gpus, *whole.nics)}
    found: dict[tuple[str, str], DevicePath] = {}
    for (row, column), path in whole.paths.items():
        pair = reached.get(at[row], {}).get(at[column])
        found[row, column] = DevicePath(path.type, pair.typical if pair else None)
    return Matrix(whole.gpus, whole.nics, found)


def _gpu(snapshot: Snapshot, device: Device) -> Row:
    names = [name for name in (device.id, *device.aliases) if name in snapshot.of(Gpu)]
    fact = snapshot.of(Gpu)[names[0]] if names else None
    label = names[0].upper() if names else device.id.removeprefix("0000:")
    number = device.numa_node if device.numa_node is not None else fact.numa if fact else None
    near = snapshot.of(Numa).get(f"numa{number}")
    cpus = fact.cpus if fact and fact.cpus else near.cpus if near else None
    return Row(
        label,
        device.id,
        device.name,
        cpus,
        number,
        tuple((n.name, w) for n, w in nearest(snapshot.topology, device.id)),
    )


def _place(row: Row) -> tuple[bool, list[tuple[int, str]]]:
    """Sort key: GPUs with a driver's number first."""
    return not row.label.startswith(("GPU", "AMD")), natural(row.label)


def _named(snapshot: Snapshot) -> list[tuple[str, str]]:
    """The RDMA devices that only `nvidia-smi topo -m` shows, whose PCI functions are not known, with their names."""
    found = {one.b: one.name or one.b for one in snapshot.of(NicPath).values() if one.b}
    return sorted(found.items(), key=lambda one: natural(one[0]))


def _unnamed(snapshot: Snapshot) -> list[tuple[str, str]]:
    """The NICs of a dump that names no RDMA device, with their PCI addresses: those of RDMA networks by their class or
    their ids.
    """
    functions = snapshot.of(Pci) if snapshot.origin == "dumps" else {}
    found = [
        key for key, one in functions.items() if (one.pci_class or 0) >> 8 in _RDMA_CLASSES or nic_of(one) is not None
    ]
    known = {device.id for device in snapshot.topology.devices}
    return [(key, key) for key in sorted(found) if key in known]


def _leaves(snapshot: Snapshot) -> list[tuple[str, str]]:
    """The functions of a topology file that says neither class nor product: GPUs and NICs of a cloud's machine."""
    functions = snapshot.of(Pci) if snapshot.origin == "dumps" else {}
    above = {one.parent for one in functions.values()}
    bare = (key for key, one in functions.items() if one.pci_class is None and one.device is None and key not in above)
    known = {device.id for device in snapshot.topology.devices}
    return [(key, key) for key in sorted(bare) if key in known]


def _to_nic(snapshot: Snapshot, row: Row, column: Row) -> DevicePath | None:
    ends = [one.device if one.label.startswith("NIC") else one.label.lower() for one in (row, column)]
    path = snapshot.of(NicPath).get("-".join(ends)) or snapshot.of(NicPath).get("-".join(reversed(ends)))
    return DevicePath(path.path, None) if path and path.path else None


def _from_nvml(snapshot: Snapshot, row: Row, column: Row) -> DevicePath | None:
    names = sorted((row.label.lower(), column.label.lower()), key=natural)
    pair = snapshot.of(GpuPair).get("-".join(names))
    if pair and pair.path is None and pair.nvlinks:
        return DevicePath(f"NV{pair.nvlinks}", None)
    if pair is None or pair.path is None:
        return None
    return DevicePath(
        "PIX" if pair.path == "INTERNAL" else pair.path, None
    )  # both GPUs of one board are behind its switch
