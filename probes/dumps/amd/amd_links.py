"""xGMI links of AMD GPUs in the output of AMD's tools. The numbers are those of the driver (probes/gpu/amd_kfd.py)."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from ....models.facts.gpu import Gpu, GpuLink, GpuPair
from ....models.facts.records import Evidence, Record
from ....models.facts.units import from_gigabytes
from ..core.fields import FactCollector
from ..core.part import Part

XGMI = "XGMI"
_ONE_HOP = 15  # the weight of a direct xGMI link (drivers/gpu/drm/amd/amdkfd/kfd_topology.h)
_MOST_LINKS = 32  # between two GPUs; real ones have four


class Connection(Struct, frozen=True):
    """The connection from one GPU to another. None: the output does not state the value."""

    where: Evidence
    kind: str | None = None  # "XGMI", "PCIE"
    hops: int | None = None
    weight: int | None = None
    min_bandwidth: int | None = None  # MB/s of one link and of all links: the kernel's min_bandwidth and max_bandwidth
    max_bandwidth: int | None = None
    access: bool | None = None
    rate: float | None = None  # of one link, bytes per second

    @property
    def links(self) -> int:
        """The number of direct links to the peer; 0 if the output has neither a hop count, a weight nor a bandwidth.

        Only xGMI has a bandwidth: the driver gives none for a path over PCIe.
        """
        spans = self.min_bandwidth and self.max_bandwidth and self.min_bandwidth <= self.max_bandwidth
        if self.kind != XGMI and not (self.kind is None and spans):
            return 0
        if self.min_bandwidth and self.max_bandwidth and spans:
            return min(self.max_bandwidth // self.min_bandwidth, _MOST_LINKS)
        if self.hops is not None:
            return int(self.hops == 1)
        return int(self.weight is not None and 0 < self.weight <= _ONE_HOP)


class AmdReading(Struct):
    """The values read so far: GPUs, their PCI addresses, and the connections by GPU and peer."""

    part: Part
    found: FactCollector = field(default_factory=FactCollector)
    addresses: dict[int, str] = field(default_factory=dict)
    peers: dict[int, dict[int, Connection]] = field(default_factory=dict)
    other_records: list[Record] = field(default_factory=list)


def add_links(found: FactCollector, gpu: int, peers: Mapping[int, Connection], addresses: Mapping[int, str]) -> None:
    """Collect the links of a GPU in the order of its peers, and its pairs."""
    number = 0
    for peer, connection in sorted(peers.items()):
        if peer == gpu:
            continue
        for key in (gpu, peer):
            found.add(Gpu, f"gpu{key}", connection.where)
        _add_pair(found, min(gpu, peer), max(gpu, peer), connection)
        rate = (
            from_gigabytes(connection.min_bandwidth / 1000)
            if connection.min_bandwidth and connection.max_bandwidth
            else connection.rate
        )
        for _ in range(connection.links):
            found.add(
                GpuLink,
                f"gpu{gpu}/xgmi{number}",
                connection.where,
                gpu=f"gpu{gpu}",
                kind="xgmi",
                active=True,
                speed=rate,
                remote=addresses.get(peer),
                remote_kind="gpu",
            )
            number += 1


def _add_pair(found: FactCollector, a: int, b: int, connection: Connection) -> None:
    """Collect what the output says of the pair: the kind of its connection, over however many hops, and its access."""
    known: dict[str, str] = {}
    if connection.kind in (XGMI, "PCIE"):
        known["kind"] = connection.kind.lower()
    if connection.access is not None:
        known["read"] = known["write"] = "ok" if connection.access else "not supported"
    if known:
        found.add(GpuPair, f"gpu{a}-gpu{b}", connection.where, a=f"gpu{a}", b=f"gpu{b}", **known)
