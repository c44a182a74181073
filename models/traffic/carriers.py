"""The links of a node whose traffic is shown, with their rates and counters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from ..bandwidth.efficiency import attainable
from ..facts.counters import ERRORS
from ..graph.path_types import natural
from ..graph.topology import Link, Topology

_BUNDLED = ("nvlink", "xgmi", "c2c")
_RESTING = frozenset({"gpu", "upstream-port"})  # their drivers lower the speed of idle links (models/rules/pcie)
_PCIE_ENDS = _RESTING | {"nic", "nvme"}
ORDER = (*_BUNDLED, "port", "net", "disk", "pcie")  # kinds of carriers
# Quantities of received and sent bytes, by kind. The first one that a device counts is used: EFA has its own counters.
RECEIVED: Mapping[str, tuple[str, ...]] = {
    "nvlink": ("nvlink_rx_bytes",),
    "port": ("port_rcv_data", "rx_bytes"),
    "net": ("rx_bytes",),
    "disk": ("read_bytes",),
}
SENT: Mapping[str, tuple[str, ...]] = {
    "nvlink": ("nvlink_tx_bytes",),
    "port": ("port_xmit_data", "tx_bytes"),
    "net": ("tx_bytes",),
    "disk": ("written_bytes",),
}
_OF_NVLINK, _OF_PCIE = "nvlink_", ("aer_", "pcie_")  # begin the names of error counters


class Carrier(Struct, frozen=True, kw_only=True):
    """A link, or all links of a GPU of one kind. Rates in bytes per second in one direction; None: not known."""

    subject: str  # id of the device that counts the bytes
    kind: str  # one of ORDER
    name: str  # the driver's name of the device: "gpu0"
    product: str = ""
    rated: float | None = None
    trained: float | None = None  # of those that are active
    expected_in: float | None = None  # what good links of this grade reach
    expected_out: float | None = None
    rests: bool = False  # it runs at a lower rate while it is idle
    links: int = 1
    down: int = 0  # links that are known to be down
    counted_at: tuple[str, ...] = ()  # ids of the devices that count its errors
    errors: frozenset[str] = frozenset()  # quantities


def carriers(topology: Topology) -> tuple[Carrier, ...]:
    """All carriers, by kind and name."""
    return in_order((*_bundles(topology), *_ports(topology), *_disks(topology), *_pcie(topology)))


def in_order(found: Iterable[Carrier]) -> tuple[Carrier, ...]:
    """The carriers sorted by kind, name and id."""
    return tuple(sorted(found, key=lambda one: (ORDER.index(one.kind), natural(one.name), one.subject)))


def _bundles(topology: Topology) -> Iterator[Carrier]:
    """All NVLinks, xGMI links or C2C links of each GPU."""
    bundles: dict[tuple[str, str], list[Link]] = {}
    for link in topology.links:
        if link.kind in _BUNDLED:
            for end in dict.fromkeys((link.a, link.b)):
                if topology.kind(end) == "gpu":
                    bundles.setdefault((end, link.kind), []).append(link)
    for (gpu, kind), links in bundles.items():
        active = [link for link in links if link.trained != 0]
        rate = _sum([link.rated or link.trained for link in active])
        typical = _typical(rate, active[0].grade, "copy") if active else None
        yield Carrier(
            subject=gpu,
            kind=kind,
            name=_name(topology, gpu),
            product=_product(topology, gpu),
            rated=_sum([link.rated for link in links]),
            trained=_sum([link.trained for link in links]),
            expected_in=typical,
            expected_out=typical,
            links=len(links),
            down=len(links) - len(active),
            counted_at=(gpu,),
            errors=frozenset(one for one in ERRORS if kind == "nvlink" and one.startswith(_OF_NVLINK)),
        )


def _ports(topology: Topology) -> Iterator[Carrier]:
    """RDMA ports, and network devices with the rate of the port that they share."""
    own = {link.b: link for link in topology.links if link.kind == "port"}
    shared = {
        link.b: own[link.a]
        for link in topology.links
        if link.kind == "function" and link.a in own and link.b not in own
    }
    errors = frozenset(one for one in ERRORS if not one.startswith((_OF_NVLINK, *_OF_PCIE)))
    for name, link in (*own.items(), *shared.items()):
        typical = _typical(link.rated or link.trained, link.grade, "write")
        yield Carrier(
            subject=name,
            kind="net" if topology.kind(name) == "netdev" else "port",
            name=name,
            product=_product(topology, link.a),
            rated=link.rated,
            trained=link.trained,
            expected_in=typical,
            expected_out=typical,
            down=int(link.trained == 0),
            counted_at=(name,),
            errors=errors,
        )


def _disks(topology: Topology) -> Iterator[Carrier]:
    """Disks. The PCIe link of an NVMe controller limits its disk; for a disk below a shared controller no rate is
    expected.
    """
    controllers = {link.b: link.a for link in topology.links if link.kind == "disk"}
    for name, above in controllers.items():
        device, link = topology.find(name), topology.link_below.get(above)
        if device is None or device.kind != "disk":
            continue
        own = link if topology.kind(above) == "nvme" else None
        rate = (own.rated or own.trained) if own else None
        yield Carrier(
            subject=name,
            kind="disk",
            name=name,
            product=device.name,
            expected_in=_typical(rate, own.grade, "disk-read") if own else None,
            expected_out=_typical(rate, own.grade, "disk-write") if own else None,
        )


def _pcie(topology: Topology) -> Iterator[Carrier]:
    """The PCIe links above GPUs, NICs, NVMe controllers and switches. No counter of their bytes is cheap to read."""
    for address, link in topology.link_below.items():
        if topology.kind(address) in _PCIE_ENDS:
            typical = _typical(link.rated or link.trained, link.grade, "copy")
            yield Carrier(
                subject=address,
                kind="pcie",
                name=_name(topology, address),
                product=_product(topology, address),
                rated=link.rated,
                trained=link.trained,
                expected_in=typical,
                expected_out=typical,
                rests=topology.kind(address) in _RESTING,
                down=int(link.trained == 0),
                counted_at=(link.b, link.a),
                errors=frozenset(one for one in ERRORS if one.startswith(_OF_PCIE)),
            )


def _name(topology: Topology, name: str) -> str:
    device = topology.find(name)
    return device.aliases[0] if device and device.aliases else name


def _product(topology: Topology, name: str) -> str:
    device = topology.find(name)
    return device.name if device else ""


def _typical(rate: float | None, grade: str, op: str) -> float | None:
    reached = attainable(grade, op) if rate else None
    return reached.typical * rate if reached and rate else None


def _sum(rates: list[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known and len(known) == len(rates) else None
