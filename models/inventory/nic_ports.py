"""Ports of NICs: RDMA ports and network devices, with rated and trained rates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..catalog.nics import nic_of
from ..facts.machine import Net, Pci, Port, Rdma
from ..facts.merge import Facts, of
from ..graph.topology import Device, Link
from ..site.schema import Machine


def nic_ports(facts: Facts, machine: Machine | None) -> Iterator[tuple[Device, Link | None]]:
    """RDMA ports and network devices, below their functions or ports.

    The network device reports what both ends can do; this is the rated rate of a port. Otherwise the catalog's rate for
    the PCI ids applies, then the rate in the machine type.
    """
    adapters, networks = of(facts, Rdma), of(facts, Net)
    built = _as_built(adapters, machine)
    shared: dict[str, str] = {}
    for key, port in of(facts, Port).items():
        adapter, network = adapters.get(port.device or ""), networks.get(port.netdev or "")
        device = Device(key, "port")
        if adapter and adapter.address:
            shared.update({port.netdev: key} if port.netdev else {})
            grade, able = _kind(facts, adapter.address, _GRADES.get(port.link_layer or "", ""))
            rated = both_ends(network) or able or built
            yield device, _link(adapter.address, device, "port", rated, _runs_at(port, network), grade)
        else:  # a software device (rxe, siw) belongs to a network device
            yield device, _link(port.netdev, device, "function", None, _runs_at(port, None), "")
    for key, net in networks.items():
        device = Device(key, "netdev")
        if key in shared:
            yield device, _link(shared[key], device, "function", None, None, "")
        else:
            grade, able = _kind(facts, net.address, "ethernet" if net.link_type in (None, "ethernet") else "")
            yield device, _link(net.address, device, "port", both_ends(net) or able, net.speed, grade)


_OLD_MODES = 12.5e9  # bytes per second
_GRADES: Mapping[str, str] = {"InfiniBand": "infiniband", "Ethernet": "roce"}


def _link(
    parent: str | None, device: Device, kind: str, rated: float | None, now: float | None, grade: str
) -> Link | None:
    return Link(f"{parent}>{device.id}", parent, device.id, kind, rated, now, grade=grade) if parent else None


def _kind(facts: Facts, address: str | None, usual: str) -> tuple[str, float | None]:
    """The grade of a function's ports, and their rate if the PCI ids determine it."""
    function = of(facts, Pci).get(address or "")
    nic = nic_of(function) if function else None
    return (nic.grade, nic.rate) if nic else (usual, None)


def both_ends(net: Net | None) -> float | None:
    """The fastest mode that both ends of an Ethernet link support; None if one end does not report its modes.

    mlx5 reads the partner's modes from a field of old modes, up to 100 Gb/s, and decodes it with the table of new ones
    (mlx5e_ethtool_get_link_ksettings of en_ethtool.c: eth_proto_lp_advertise). Then the 10 Gb/s of a partner are shown
    as 200 Gb/s. So the result is None for ports above 100 Gb/s, which have new modes, for a partner above the port's
    own maximum, and for one below the running speed.
    """
    if net is None or net.max_speed is None or net.partner_speed is None:
        return None
    if net.driver == "mlx5_core" and (net.max_speed > _OLD_MODES or net.partner_speed > net.max_speed):
        return None
    if net.speed is not None and net.partner_speed < net.speed:
        return None
    return min(net.max_speed, net.partner_speed)


def _runs_at(port: Port, network: Net | None) -> float | None:
    """The trained rate. A port that is down has none: the kernel shows its maximum instead. A text that has a rate and
    no state, such as a topology file of NCCL, shows a port that is in use. For RoCE the network device is more
    reliable: some kernels report at most 100 Gb/s for RDMA.
    """
    if port.state not in ("ACTIVE", None):
        return None
    ethernet = network if port.link_layer == "Ethernet" else None
    return ethernet.speed if ethernet and ethernet.speed else port.rate


def _as_built(adapters: Mapping[str, Rdma], machine: Machine | None) -> float | None:
    """The rate of each RDMA device in the machine type; None if there are further devices (storage, management)."""
    if machine is None or machine.rdma is None:
        return None
    return machine.rdma_rate if sum(1 for one in adapters.values() if one.address) <= machine.rdma else None
