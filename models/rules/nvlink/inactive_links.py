"""Inactive NVLinks: fewer are active than the product has on its board."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct

from ...facts.gpu import Gpu, GpuLink
from ...facts.machine import Setting
from ...facts.records import Evidence
from ...facts.units import as_gigabytes
from ...graph.topology import Link
from ...inventory.gpu_links import gpu_links
from ...inventory.present import earlier_item
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ...report import COHORT, Basis, Finding, Severity
from ..core.gpus import gpu_cohort, gpu_evidence, gpu_name, gpu_product, majority, place_of, subject_of
from ..core.machine_expectations import profile
from ..core.rule import Rule
from .fabric_manager import cut_off, explained
from .interconnect_kind import is_alone, is_guest, is_part, nvlinks, switched, switches

_NUMBERS = 4  # numbers of links in a short text
_BOARD = 8  # GPUs of a whole board: a virtual machine with fewer has a part of a board


class Normal(Struct, frozen=True):
    """The number of NVLinks that should be active, and the rate of one link in bytes per second."""

    count: int
    rate: float | None
    basis: Basis
    source: str
    bridged: bool = False


def may_have(snapshot: Snapshot, gpu: Gpu) -> bool:
    """Select GPUs with NVLinks, and GPUs of an unknown product."""
    known = gpu_product(snapshot, gpu)
    return not is_part(gpu) and (known is None or (known.link_kind == "nvlink" and known.links > 0))


def may_be_wanted(snapshot: Snapshot, gpu: Gpu) -> bool:
    """Select GPUs that may have NVLinks.

    A text with one GPU and no active link does not show if it has peers. A text without names of GPUs does not show if
    links that are switched off should be on.
    """
    none = snapshot.origin == "dumps" and gpu.nvlinks == 0
    nameless = none and gpu_product(snapshot, gpu) is None and normal(snapshot, gpu) is None
    return may_have(snapshot, gpu) and not nameless and not (none and is_alone(snapshot))


def normal(snapshot: Snapshot, gpu: Gpu) -> Normal | None:
    """From the machine type, the product, or equal GPUs. None: not known, or the GPU needs no active link.

    A card without a bridge has no active link. That is normal, even if its neighbours have bridges.
    """
    known = gpu_product(snapshot, gpu)
    type_ = profile(snapshot)
    if type_ and type_.machine.links is not None:
        rate = (known.link_rate if known else None) or gpu.nvlink_rate
        source = f"{type_.machine.name}: {type_.source}"
        return Normal(type_.machine.links, rate, type_.basis, source, known is not None and known.bridged)
    if known:
        if known.bridged and not gpu.nvlinks:
            return _before(snapshot, gpu, known.link_rate)
        source = f"{known.name} has {known.links} NVLinks ({known.source})"
        return Normal(known.links, known.link_rate or gpu.nvlink_rate, "capability", source, known.bridged)
    nameless = [other for other in snapshot.of(Gpu).values() if other.name is None]  # only a topology matrix is known
    counts = [other.nvlinks for other in gpu_cohort(snapshot, gpu) or nameless]
    most = majority(counts)
    if listed := _listed(snapshot, gpu, most):
        return listed
    # A bridge joins two cards. Several cards without links, or one left over, have no bridge.
    if most is None or (not gpu.nvlinks and (counts.count(0) > 1 or len(counts) % 2)):
        return None
    return Normal(most, gpu.nvlink_rate, COHORT, f"{counts.count(most)} of {len(counts)} equal GPUs have {most}")


def _listed(snapshot: Snapshot, gpu: Gpu, most: int | None) -> Normal | None:
    """The links that a text lists for a GPU without a name, if all or a few of them are down. DCGM prints no names.

    A card with one of several bridges has as many links down as up, or more.
    """
    present, active = gpu.nvlinks_present or 0, gpu.nvlinks or 0
    few = most is None and present < 1.5 * active
    if snapshot.origin != "dumps" or gpu.name is not None or active >= present or (active and not few):
        return None
    return Normal(present, None, "capability", f"the text lists {present} NVLinks of the GPU")


def _before(snapshot: Snapshot, gpu: Gpu, rate: float | None) -> Normal | None:
    """What a card with a bridge had before. None: it had no active link."""
    item = earlier_item(snapshot, "gpu", subject_of(gpu))
    if item is None or not item.nvlinks or gpu.mig:
        return None
    return Normal(item.nvlinks, rate, "baseline", "the inventory of the node before", bridged=True)


def inactive(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding]:
    """Fewer NVLinks are active than should be."""
    active = gpu.nvlinks or 0
    wanted = None if active == 0 and is_alone(snapshot) else normal(snapshot, gpu)
    if wanted is None or active >= wanted.count or f"nvlink-inactive:{subject_of(gpu)}" in explained(snapshot):
        return
    lost = wanted.count - active
    down = _down(snapshot, gpu, lost)
    holders = _holders(snapshot, gpu, down)
    if len(down) == lost and down and gpu.key not in holders and None not in holders:
        return  # the findings of the GPUs at the other ends cover these links
    severity, confidence = _grade(snapshot, gpu, wanted)
    numbers = f": link{'s' if len(down) > 1 else ''} {', '.join(map(str, down))}" if down and active else ""
    rate = wanted.rate or 0.0
    ends = _other_ends(snapshot, gpu, down)
    numbers += f"; their other ends are at {', '.join(ends)}" if ends else ""
    carried = f"; {as_gigabytes(lost * rate)} of {as_gigabytes(wanted.count * rate)} each way are lost" if rate else ""
    yield Finding(
        code="nvlink-inactive",
        severity=severity,
        confidence=confidence,
        subject=subject_of(gpu),
        subject_name=gpu_name(snapshot, gpu),
        fact=f"has {lost} of {wanted.count} NVLinks inactive{_numbered(down) if active else ''}",
        message=f"{gpu_name(snapshot, gpu)} has {lost} of {wanted.count} NVLinks inactive{numbers}{carried}",
        expected=wanted.count,
        observed=active,
        unit="links",
        basis=wanted.basis,
        expected_source=wanted.source,
        cause=_cause(snapshot, gpu, wanted),
        case=_case(snapshot, gpu, wanted, severity),
        limits={_link_id(snapshot, f"{gpu.key}/nvlink{number}"): 0.0 for number in down},
        explains=(f"nvlink-fabric-incomplete:{subject_of(gpu)}",) if cut_off(snapshot, gpu) else (),
        location=place_of(snapshot, gpu),
        evidence=(*gpu_evidence(gpu, "nvlinks"), *_evidence(snapshot, gpu, down)),
    )


def _case(snapshot: Snapshot, gpu: Gpu, wanted: Normal, severity: Severity) -> str | None:
    if _is_disabled(snapshot, gpu):
        return "disabled"
    return "bridge" if wanted.bridged else "part of a board" if severity == "info" else None


def _numbered(links: list[int]) -> str:
    return f" ({', '.join(map(str, links[:_NUMBERS]))}{' ...' if links[_NUMBERS:] else ''})" if links else ""


def _grade(snapshot: Snapshot, gpu: Gpu, wanted: Normal) -> tuple[Severity, Literal["certain", "likely", "possible"]]:
    """Severity and confidence. If all equal GPUs have as many links, the machine may be built or divided that way."""
    others = [
        other.nvlinks
        for other in gpu_cohort(snapshot, gpu)
        if other is not gpu and (other.nvlinks or not wanted.bridged)
    ]
    alike = bool(others) and all(count == gpu.nvlinks for count in others)
    if wanted.basis in ("profile", "site"):
        return "critical", "certain"
    if gpu.name is None and gpu_product(snapshot, gpu) is None and wanted.basis == "capability":
        return "warning", "possible" if alike and not gpu.nvlinks else "likely"
    if wanted.basis == COHORT or (wanted.bridged and alike):
        return "warning", "likely"
    if is_guest(snapshot) and len(others) + 1 < _BOARD:
        if _part_of_mesh(snapshot, gpu, wanted):
            return "info", "possible"
        if alike:
            return "warning", "possible"
    return "critical", "certain"


def _part_of_mesh(snapshot: Snapshot, gpu: Gpu, wanted: Normal) -> bool:
    """Whether a guest has some GPUs of a board without switches. The other links lead to GPUs of other guests.

    In half a cube mesh of eight V100, two GPUs keep four links and two keep five (nvidia-smi topo -m of a DGX-1).
    """
    known = gpu_product(snapshot, gpu)
    joined = [other.nvlinks for other in gpu_cohort(snapshot, gpu) or [gpu]]
    cut = all(count is not None and 0 < count < wanted.count for count in joined)
    return len(joined) > 1 and cut and not (known and known.fabric) and not switched(snapshot, gpu)


def _down(snapshot: Snapshot, gpu: Gpu, missing: int) -> list[int]:
    """The numbers of the inactive links. If more are inactive than missing, only those that equal GPUs use."""
    down = {number for number, link in nvlinks(snapshot, gpu).items() if link.active is False}
    used = {n for other in gpu_cohort(snapshot, gpu) for n, link in nvlinks(snapshot, other).items() if link.active}
    return sorted(down & used if len(down) > missing and len(down & used) == missing else down)


def _holders(snapshot: Snapshot, gpu: Gpu, down: list[int]) -> list[str | None]:
    """For each inactive link, the GPU whose finding reports it. None: the link does not lead to another GPU."""
    holders = _holders_of_links(snapshot)
    return [holders.get(_link_id(snapshot, f"{gpu.key}/nvlink{number}")) for number in down]


@once_per_snapshot
def _holders_of_links(snapshot: Snapshot) -> Mapping[str, str]:
    """For each inactive link between GPUs, the GPU that reports it.

    The reporting GPUs are as few as possible (greedy cover). So a GPU that lost all its links reports them, not its
    peers.
    """
    found: dict[str, str] = {}
    left = {key: link for key, link in _between(snapshot).items() if snapshot.of(GpuLink)[key].active is False}
    while left:
        most = Counter(key.partition("/")[0] for key in left)
        first = max(sorted(most), key=lambda one: most[one])
        own = {link.id for key, link in left.items() if key.startswith(f"{first}/")}
        found |= dict.fromkeys(own, first)
        left = {key: link for key, link in left.items() if link.id not in own}
    return found


def _between(snapshot: Snapshot) -> dict[str, Link]:
    """The NVLinks between two known GPUs, by the key of each end."""
    links = {key: _link(snapshot, key) for key, end in snapshot.of(GpuLink).items() if end.kind == "nvlink"}
    ends = Counter(link.id for link in links.values() if link)
    return {key: link for key, link in links.items() if link and ends[link.id] > 1}


def _other_ends(snapshot: Snapshot, gpu: Gpu, down: list[int]) -> list[str]:
    """The GPUs at the other ends of the inactive links."""
    own = {_link_id(snapshot, f"{gpu.key}/nvlink{number}") for number in down}
    owners = {key.partition("/")[0] for key, link in _between(snapshot).items() if link.id in own}
    return sorted(owners - {gpu.key})


def _is_disabled(snapshot: Snapshot, gpu: Gpu) -> bool:
    """Whether an option of the driver switches NVLink off."""
    setting = snapshot.of(Setting).get("nvlink_disable")
    return not gpu.nvlinks and setting is not None and setting.value == "1"


def _cause(snapshot: Snapshot, gpu: Gpu, wanted: Normal) -> str:
    if _is_disabled(snapshot, gpu):
        return "the driver's option NvLinkDisable is 1, so it starts no NVLink"
    if wanted.bridged:
        return "the bridge between two cards: its seating, one bridge of several that is missing, or the card"
    for switch in lost_switches(snapshot, gpu):
        others = [
            other.key
            for other in gpu_cohort(snapshot, gpu)
            if other is not gpu and switch in lost_switches(snapshot, other)
        ]
        also = f", as are those of {', '.join(others)}: the switch itself" if others else ""
        return f"all its links to NVSwitch {switch} are gone{also}"
    if not gpu.nvlinks and gpu.name is None and wanted.basis == "capability":
        return "the driver or the fabric manager did not start them, or the GPUs are cards without a bridge"
    if not gpu.nvlinks and switched(snapshot, gpu):
        return "it is cut off from its switches: not trained since a reset, a failed GPU, or its place on the board"
    if is_guest(snapshot):
        return "the link failed, or it leads to a GPU that was given to another virtual machine"
    return "the link did not train, or was shut down after errors: the GPU, the board, or the other end"


def lost_switches(snapshot: Snapshot, gpu: Gpu) -> list[str]:
    """NVSwitches without an active link to this GPU, although equal GPUs reach them or they are in the machine."""
    mine, others = _reached(snapshot, gpu), (_reached(snapshot, other) for other in gpu_cohort(snapshot, gpu))
    return sorted(set(switches(snapshot)).union(*others) - mine) if mine else []


def _reached(snapshot: Snapshot, gpu: Gpu) -> set[str]:
    ends = nvlinks(snapshot, gpu).values()
    return {link.remote for link in ends if link.active and link.remote and link.remote_kind == "switch"}


def _link_id(snapshot: Snapshot, key: str) -> str:
    """The ID of the link in the topology. The two ends of a link between GPUs have the same ID."""
    link = _link(snapshot, key)
    return link.id if link else key


def _link(snapshot: Snapshot, key: str) -> Link | None:
    return _gpu_links(snapshot).get(key)


@once_per_snapshot
def _gpu_links(snapshot: Snapshot) -> Mapping[str, Link]:
    return gpu_links(snapshot.facts)


def _evidence(snapshot: Snapshot, gpu: Gpu, numbers: list[int]) -> list[Evidence]:
    links = nvlinks(snapshot, gpu)
    return [links[number].cites["active"] for number in numbers if "active" in links[number].cites]


RULES = (Rule("nvlink-inactive", Gpu, ("nvlinks",), inactive, may_be_wanted),)
