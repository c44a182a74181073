"""Path types between GPUs and NICs, named as in `nvidia-smi topo -m`, and the NICs nearest to a GPU."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping

from msgspec import Struct

from .routes import PATH_TYPES, Route, active, path_type, routes
from .topology import Device, Topology


class DevicePath(Struct, frozen=True):
    """The path between two devices: its type ("NV18", "XGMI", "PIX" ...) and the rate of its narrowest hop.

    Links between processors do not count: the catalog has only the smallest rate of all boards, and other traffic
    shares them.
    """

    type: str
    rate: float | None  # bytes per second in one direction, over the links that are up; None: unknown


class Nic(Struct, frozen=True):
    """An RDMA device and its PCI function."""

    name: str  # "mlx5_0"
    device: Device


def nics(topology: Topology) -> tuple[Nic, ...]:
    """The RDMA devices, in the order of their names: mlx5_2 before mlx5_10."""
    found = [Nic(name, device) for device in topology.devices if device.kind == "nic" for name in device.aliases]
    return tuple(sorted(found, key=lambda nic: natural(nic.name)))


def paths(topology: Topology, source: str, targets: Iterable[str]) -> Mapping[str, DevicePath]:
    """The paths from a device to others, by id. Devices that cannot be reached are left out.

    NVLinks and xGMI links that are up come first. Any other path has the type of the PCIe path, even if the bytes take
    C2C: nvidia-smi has no such type. The types come from the kernel's PCI tree, not from the driver. The driver reports
    NODE for two GPUs in different partitions of one switch; in a virtual machine it sees the same tree as the kernel.
    """
    by_pcie, nearer = routes(topology, source, via="pcie"), routes(topology, source, rate=active)
    found: dict[str, DevicePath] = {}
    for name in targets:
        route = nearer.get(name)
        if route is None:
            continue
        joined = _direct_type(route)
        if joined is None and name not in by_pcie:
            continue
        rate = min((active(hop) for hop in route if hop.links[0].kind != "interconnect"), default=float("inf"))
        found[name] = DevicePath(joined or _over_pcie(topology, by_pcie[name]), None if rate == float("inf") else rate)
    return found


def _direct_type(route: Route) -> str | None:
    """ "NV4" for a path over four NVLinks that are up; "XGMI"; None for any other path."""
    if {hop.links[0].kind for hop in route} == {"nvlink"}:
        return f"NV{min(sum(1 for link in hop.links if link.trained != 0) for hop in route)}"
    return "XGMI" if len(route) == 1 and route[0].links[0].kind == "xgmi" else None


def _over_pcie(topology: Topology, route: Route) -> str:
    """ "PIX" also for two functions of one card: nvidia-smi has no type for them."""
    kind = path_type(topology, route)
    return "PIX" if kind == "LOC" else kind


def nearest(topology: Topology, gpu: str, without: Container[str] = ()) -> Iterator[tuple[Nic, DevicePath]]:
    """The NICs nearest to a GPU: by path type, then by rate. Empty if there is no NIC. `without`: devices to skip."""
    every = [nic for nic in nics(topology) if nic.device.id not in without]
    near = paths(topology, gpu, {nic.device.id for nic in every})
    known = [(nic, near[nic.device.id]) for nic in every if nic.device.id in near]
    best = min((_distance(path) for _, path in known), default=None)
    yield from ((nic, path) for nic, path in known if _distance(path) == best)


def _distance(path: DevicePath) -> tuple[int, float]:
    nearness = PATH_TYPES.index(path.type) if path.type in PATH_TYPES else 0  # over NVLink or xGMI
    return nearness, -(path.rate or 0.0)


def natural(name: str) -> list[tuple[int, str]]:
    """A sort key that orders the numbers inside names by value."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split("([0-9]+)", name)]
