"""Error counters of NVLinks in a dump that does not show since when they count.

Then only numbers that no healthy link reaches in months are a finding: `nvidia-smi nvlink -e` of healthy nodes shows
zeros, and of nodes that are up for long a few errors.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.averages import median
from ...facts.gpu import Gpu
from ...facts.machine import Node
from ...facts.reason import Reason
from ...facts.records import NotChecked, Observation
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.gpus import gpu_name, latest, place_of, subject_of
from ..core.rule import Rule

# Words, and the number of errors of a GPU that is far above that of the other GPUs, as errors.py for links.
_COUNTERS = {
    "nvlink_replay": ("replays", 100),
    "nvlink_recovery": ("link recoveries", 10),
    "nvlink_recovery_failed": ("failed link recoveries", 2),
    "nvlink_effective_errors": ("errors after error correction", 100),
    "nvlink_symbol_errors": ("symbol errors", 1000),
    "nvlink_crc": ("CRC errors", 1000),
}
_FEWEST_OTHERS = 3
_ALONE = 10  # times as many errors, if there are no other GPUs to compare with
_FAR = 10  # times the median of the other GPUs


def without_time(snapshot: Snapshot, gpu: Gpu) -> bool:
    """Select GPUs of dumps with errors, if the time of the boot is not known."""
    node = snapshot.of(Node).get("node")
    counted = [one for name in _COUNTERS if (one := latest(snapshot, gpu, name)) and one.value]
    timed = node is not None and node.booted is not None
    return snapshot.origin == "dumps" and bool(counted) and not timed


def many(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding | NotChecked]:
    """More errors than a healthy link has, however long it counts."""
    counted = [one for name in _COUNTERS if (one := latest(snapshot, gpu, name)) and one.value]
    bad = [one for one in counted if _is_far_above(snapshot, gpu, one)]
    if not bad:
        texts = ", ".join(f"{one.value:,.0f} {_COUNTERS[one.quantity][0]}" for one in counted)
        yield NotChecked(
            what="Gpu.nvlink_errors",
            subject=subject_of(gpu),
            reason=Reason.OTHER,
            path=counted[0].evidence.source,
            detail=f"{texts}, and the text does not say since when",
            how="read the counters twice, a minute apart: nvidia-smi nvlink -e",
        )
        return
    texts = ", ".join(f"{one.value:,.0f} {_COUNTERS[one.quantity][0]}" for one in bad)
    links = _links(snapshot, gpu, bad)
    on = f" on link{'s' if len(links) > 1 else ''} {', '.join(links)}" if links else ""
    yield Finding(
        code="nvlink-errors",
        severity="warning",
        confidence="likely" if len(_others(snapshot, gpu, bad[0])) >= _FEWEST_OTHERS else "possible",
        subject=subject_of(gpu),
        subject_name=gpu_name(snapshot, gpu),
        message=f"{gpu_name(snapshot, gpu)} counts {texts}{on}; the text does not say since when",
        expected="0",
        observed=bad[0].value,
        unit="count",
        cause="the signal of these links: the seating of the GPU, a bridge or cable, or the other end",
        location=place_of(snapshot, gpu),
        evidence=tuple(one.evidence for one in bad),
        remedy="Read the counters again after a minute (nvidia-smi nvlink -e). If they rise, reset or reseat the GPU.",
    )


def _others(snapshot: Snapshot, gpu: Gpu, one: Observation) -> list[float]:
    """The same counter of the other GPUs."""
    others = (latest(snapshot, other, one.quantity) for other in snapshot.of(Gpu).values() if other.key != gpu.key)
    return [it.value for it in others if it is not None]


def _is_far_above(snapshot: Snapshot, gpu: Gpu, one: Observation) -> bool:
    limit, others = _COUNTERS[one.quantity][1], _others(snapshot, gpu, one)
    if len(others) >= _FEWEST_OTHERS:
        return one.value >= limit and one.value > _FAR * max(1.0, median(others))
    alone = one.quantity == "nvlink_recovery_failed"
    return one.value >= limit * (1 if alone else _ALONE)


def _links(snapshot: Snapshot, gpu: Gpu, bad: list[Observation]) -> list[str]:
    """The numbers of the links with such errors."""
    names = {one.quantity for one in bad}
    found = (
        about.partition("/nvlink")[2]
        for about, several in snapshot.observed.items()
        if isinstance(about, str) and about.startswith(f"{gpu.key}/nvlink")
        if any(one.quantity in names and one.value for one in several)
    )
    return sorted(found, key=lambda number: int(number) if number.isdecimal() else 0)


RULES = (Rule("nvlink-errors", Gpu, (), many, without_time),)
