"""xGMI links of AMD GPUs as their tools list them, numbered as by the driver (probes/gpu/amd_kfd.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ....models.facts.gpu import Gpu, GpuLink, GpuPair
from ....models.facts.records import Evidence, Record
from ....models.facts.units import from_gigabytes
from ..core.fields import Fields
from ..core.part import Part

XGMI = "XGMI"
_ONE_HOP = 15  # the weight of a direct xGMI link (drivers/gpu/drm/amd/amdkfd/kfd_topology.h)
_MOST_LINKS = 32  # between two GPUs; real ones have four


@dataclass(frozen=True, slots=True)
class Reach:
    """What is said of the way from a GPU to another; None where it is not."""

    where: Evidence
    kind: str | None = None  # "XGMI", "PCIE"
    hops: int | None = None
    weight: int | None = None
    one: int | None = None  # MB/s of one link, and of all of them: the kernel's min_bandwidth and max_bandwidth
    all_of_them: int | None = None
    access: bool | None = None
    rate: float | None = None  # of a link, bytes per second

    @property
    def links(self) -> int:
        """How many links lead there directly: none if the hops are not said, and no bandwidth."""
        if self.kind != XGMI:
            return 0
        if self.one and self.all_of_them and self.one <= self.all_of_them:
            return min(self.all_of_them // self.one, _MOST_LINKS)
        if self.hops is not None:
            return int(self.hops == 1)
        return int(self.weight is not None and 0 < self.weight <= _ONE_HOP)


@dataclass(slots=True)
class AmdReading:
    """What was read so far of the GPUs, their addresses, and what leads from each to each."""

    part: Part
    found: Fields = field(default_factory=Fields)
    addresses: dict[int, str] = field(default_factory=dict)
    peers: dict[int, dict[int, Reach]] = field(default_factory=dict)
    rest: list[Record] = field(default_factory=list)


def say(found: Fields, gpu: int, peers: Mapping[int, Reach], addresses: Mapping[int, str]) -> None:
    """The links from a GPU in the order of its peers, and the pairs."""
    number = 0
    for peer, reach in sorted(peers.items()):
        if peer == gpu:
            continue
        for key in (gpu, peer):
            found.say(Gpu, f"gpu{key}", reach.where)
        if reach.access is not None:
            a, b = sorted((gpu, peer))
            allowed = "ok" if reach.access else "not supported"
            pair = {"a": f"gpu{a}", "b": f"gpu{b}", "read": allowed, "write": allowed}
            found.say(GpuPair, f"gpu{a}-gpu{b}", reach.where, **pair)
        rate = from_gigabytes(reach.one / 1000) if reach.one and reach.all_of_them else reach.rate
        for _ in range(reach.links):
            found.say(
                GpuLink,
                f"gpu{gpu}/xgmi{number}",
                reach.where,
                gpu=f"gpu{gpu}",
                kind="xgmi",
                active=True,
                speed=rate,
                remote=addresses.get(peer),
                remote_kind="gpu",
            )
            number += 1
