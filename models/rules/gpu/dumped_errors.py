"""Error counters of NVLinks and PCIe links in a dump that does not show since when they count.

Then only numbers that no healthy link reaches in months are a finding: `nvidia-smi nvlink -e` of healthy nodes shows
zeros, and of nodes that are up for long a few errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from ...facts.averages import median
from ...facts.gpu import Gpu
from ...facts.machine import Node
from ...facts.reason import Reason
from ...facts.records import NotChecked, Observation
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.gpus import gpu_evidence, gpu_name, latest, place_of, subject_of
from ..core.rule import Rule

_FEWEST_OTHERS = 2  # three GPUs show which of them differs
_ALONE = 10  # times as many errors, if there are no other GPUs to compare with
_FAR = 10  # times the median of the other GPUs


class _Counter(Struct, frozen=True):
    """A counter in words, the number of errors far above that of other GPUs, and the number without a comparison."""

    words: str
    limit: float
    alone: float = float("inf")


class _Links(Struct, frozen=True):
    """A kind of link: its counters, what they belong to, the cause of errors, and the next step."""

    code: str
    what: str
    counters: Mapping[str, _Counter]
    cause: str
    how: str
    remedy: str


# The limits of NVLinks are those of a single link in nvlink/errors.py. Some healthy PCIe links repeat packets, so their
# counter alone shows nothing.
_NVLINK = _Links(
    code="nvlink-errors",
    what="Gpu.nvlink_errors",
    counters={
        "nvlink_replay": _Counter("replays", 100, 100 * _ALONE),
        "nvlink_recovery": _Counter("link recoveries", 10, 10 * _ALONE),
        "nvlink_recovery_failed": _Counter("failed link recoveries", 2, 2),
        "nvlink_effective_errors": _Counter("errors after error correction", 100, 100 * _ALONE),
        "nvlink_symbol_errors": _Counter("symbol errors", 1000, 1000 * _ALONE),
        "nvlink_crc": _Counter("CRC errors", 1000, 1000 * _ALONE),
    },
    cause="the signal of these links: the seating of the GPU, a bridge or cable, or the other end",
    how="read the counters twice, a minute apart: nvidia-smi nvlink -e",
    remedy="Read the counters again after a minute (nvidia-smi nvlink -e). If they rise, reset or reseat the GPU.",
)
_PCIE = _Links(
    code="pcie-errors",
    what="Gpu.pcie_replay",
    counters={"pcie_replay": _Counter("PCIe replays", 1000)},
    cause="the link's signal: seating, riser, retimer or cable; then the device",
    how="read the counter twice, a minute apart: nvidia-smi -q (Replays Since Reset)",
    remedy="Read the counter again after a minute (nvidia-smi -q). If it rises, reseat the GPU and its riser.",
)


def _rule(links: _Links) -> Rule:

    def without_time(snapshot: Snapshot, gpu: Gpu) -> bool:
        node = snapshot.of(Node).get("node")
        timed = node is not None and node.booted is not None
        return snapshot.origin == "dumps" and not timed and bool(_counted(snapshot, gpu, links))

    def many(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding | NotChecked]:
        counted = _counted(snapshot, gpu, links)
        bad = [one for one in counted if _is_far_above(snapshot, gpu, one, links.counters[one.quantity])]
        yield _finding(snapshot, gpu, bad, links) if bad else _gap(gpu, counted, links)

    return Rule(links.code, Gpu, (), many, without_time)


def _counted(snapshot: Snapshot, gpu: Gpu, links: _Links) -> list[Observation]:
    return [one for name in links.counters if (one := latest(snapshot, gpu, name)) and one.value]


def _text(counted: list[Observation], links: _Links) -> str:
    return ", ".join(f"{one.value:,.0f} {links.counters[one.quantity].words}" for one in counted)


def _gap(gpu: Gpu, counted: list[Observation], links: _Links) -> NotChecked:
    return NotChecked(
        what=links.what,
        subject=subject_of(gpu),
        reason=Reason.OTHER,
        path=counted[0].evidence.source,
        detail=f"{_text(counted, links)}, and the text does not say since when",
        how=links.how,
    )


def _finding(snapshot: Snapshot, gpu: Gpu, bad: list[Observation], links: _Links) -> Finding:
    numbers = _numbers(snapshot, gpu, bad)
    on = f" on link{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}" if numbers else ""
    return Finding(
        code=links.code,
        severity="warning",
        confidence="likely" if len(_others(snapshot, gpu, bad[0])) >= _FEWEST_OTHERS else "possible",
        subject=subject_of(gpu),
        subject_name=gpu_name(snapshot, gpu),
        message=f"{gpu_name(snapshot, gpu)} counts {_text(bad, links)}{on}; the text does not say since when",
        expected="0",
        observed=bad[0].value,
        unit="count",
        cause=links.cause,
        location=place_of(snapshot, gpu),
        evidence=tuple(one.evidence for one in bad),
        remedy=links.remedy,
    )


def _others(snapshot: Snapshot, gpu: Gpu, one: Observation) -> list[float]:
    """The same counter of the other GPUs."""
    others = (latest(snapshot, other, one.quantity) for other in snapshot.of(Gpu).values() if other.key != gpu.key)
    return [it.value for it in others if it is not None]


def _is_far_above(snapshot: Snapshot, gpu: Gpu, one: Observation, counter: _Counter) -> bool:
    others = _others(snapshot, gpu, one)
    if len(others) >= _FEWEST_OTHERS:
        return one.value >= counter.limit and one.value > _FAR * max(1.0, median(others))
    return one.value >= counter.alone


def _numbers(snapshot: Snapshot, gpu: Gpu, bad: list[Observation]) -> list[str]:
    """The numbers of the NVLinks with such errors."""
    names = {one.quantity for one in bad}
    found = (
        about.partition("/nvlink")[2]
        for about, several in snapshot.observed.items()
        if isinstance(about, str) and about.startswith(f"{gpu.key}/nvlink")
        if any(one.quantity in names and one.value for one in several)
    )
    return sorted(found, key=lambda number: int(number) if number.isdecimal() else 0)


def has_lifetime_alone(snapshot: Snapshot, gpu: Gpu) -> bool:
    """Select GPUs of dumps with uncorrected errors over the lifetime, and without those since the driver was loaded."""
    return snapshot.origin == "dumps" and bool(gpu.ecc_uncorrected_lifetime) and gpu.ecc_uncorrected is None


def lifetime(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding | NotChecked]:
    """Information and a gap: the errors can be old and repaired, or of this hour."""
    count = gpu.ecc_uncorrected_lifetime or 0
    name = gpu_name(snapshot, gpu)
    yield Finding(
        code="gpu-ecc",
        severity="info",
        confidence="possible",
        subject=subject_of(gpu),
        subject_name=name,
        message=f"{name} counted {count:,} uncorrected memory errors in its lifetime",
        expected=0,
        observed=count,
        unit="count",
        cause="memory of the GPU, now or in the past",
        location=place_of(snapshot, gpu),
        evidence=gpu_evidence(gpu, "ecc_uncorrected_lifetime"),
        remedy="Read the errors since the driver was loaded: nvidia-smi -q (ECC Errors, Volatile; Remapped Rows).",
    )
    yield NotChecked(
        what="Gpu.ecc_uncorrected",
        subject=subject_of(gpu),
        reason=Reason.INCOMPLETE,
        detail=f"{count:,} uncorrected errors in the lifetime of the GPU, and nothing says when",
        how="nvidia-smi -q: ECC Errors, Volatile",
    )


RULES = (Rule("gpu-ecc", Gpu, (), lifetime, has_lifetime_alone), _rule(_NVLINK), _rule(_PCIE))
