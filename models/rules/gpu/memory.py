"""The memory of GPUs: unrepaired errors, storms of corrected errors, rows that wait for replacement."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.averages import median
from ...facts.gpu import Gpu
from ...facts.machine import Node
from ...facts.records import Observation
from ...inventory.snapshot import Snapshot
from ...report import COHORT, Finding
from ..core.counter_windows import Limit, far_above, too_many
from ..core.gpus import (
    asks_recovery,
    gpu_cohort,
    gpu_evidence,
    gpu_name,
    latest,
    oldest_in_last_hour,
    place_of,
    reports_any,
    subject_of,
)
from ..core.rule import Rule

# Corrected errors a second. One known GPU had 4,600 to 17,700 under load, its neighbours had none
# (https://github.com/NVIDIA/DCGM/issues/313). A healthy GPU has a few a day.
_STORM = 10.0
_ABOVE_COHORT = 100.0
# Corrected errors in an hour, a day or since boot, beside equal GPUs with far fewer.
_ALONE = Limit(fewest=500, per_hour=0, outlier=500)
# Corrected errors that are too many even if all GPUs have them: 10,000 a day, where a healthy GPU has a few.
_ALWAYS = Limit(fewest=500, per_hour=10_000 / 24)
_SHORTEST = 10.0  # seconds: a shorter span gives no reliable rate


def memory_errors(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding]:
    """The SRAM is worn out, uncorrected errors were not repaired, or corrected errors come in a storm.

    Lifetime counters never decrease and are not used. rows() reports a row that waits for replacement.
    """
    beside = _storm(snapshot, gpu) or _apart(snapshot, gpu)
    found = _worn(snapshot, gpu) or _sram(gpu) or _uncorrected(snapshot, gpu) or beside or _always(snapshot, gpu)
    if found is None:
        return
    text, observed, unit, fields, seen = found
    yield Finding(
        code="gpu-ecc",
        severity="warning" if unit == "count" and seen else "critical",
        confidence="likely" if seen else "certain",
        subject=subject_of(gpu),
        subject_name=gpu_name(snapshot, gpu),
        message=f"{gpu_name(snapshot, gpu)}: {text}",
        expected=0,
        observed=observed,
        unit=unit,
        basis=COHORT if beside and seen and len(gpu_cohort(snapshot, gpu)) > 1 else None,
        cause=_cause(gpu),
        case="worn out" if gpu.sram_threshold else "corrected" if seen else None,
        location=place_of(snapshot, gpu),
        evidence=(seen.evidence,) if seen else gpu_evidence(gpu, *fields),
    )


def _cause(gpu: Gpu) -> str:
    if gpu.sram_threshold:
        return "the SRAM of the GPU (its caches and registers) wears out"
    if gpu.sram_uncorrected:
        return "the SRAM of the GPU (its caches and registers)"
    return "memory of the GPU that goes bad, or is too hot"


# Text, observed value, unit, fields with the evidence, observation.
_Errors = tuple[str, float, str, tuple[str, ...], "Observation | None"]


def _worn(snapshot: Snapshot, gpu: Gpu) -> _Errors | None:
    if not gpu.sram_threshold:
        return None
    text = "its SRAM had more uncorrected errors than it may have, and it is to be replaced"
    return text, 1, "flag", ("sram_threshold", "ecc_uncorrected"), None


def unrepaired(gpu: Gpu, counted: float | None = None) -> bool:
    """Whether memory errors since the load of the driver were neither corrected nor repaired by spare rows.

    Spare rows repair DRAM only, so errors of the SRAM are never repaired. A reset replaces rows and clears the error
    count. If at least as many rows were replaced as there are errors, the errors are repaired. `counted` is a later
    reading of the count. While MIG is on, the driver hides the rows, and nothing is known about repairs.
    """
    if gpu.sram_uncorrected:
        return True
    errors = max(gpu.ecc_uncorrected or 0, counted or 0)
    if not errors or gpu.remap_pending or gpu.remap_failed:
        return False
    if asks_recovery(gpu):
        return True
    if gpu.remap_pending is None:
        return not gpu.mig
    return (gpu.remapped_uncorrectable or 0) < errors


def _sram(gpu: Gpu) -> _Errors | None:
    """Errors of the SRAM, whatever rows of the DRAM were replaced before."""
    count = gpu.sram_uncorrected
    if not count:
        return None
    errors = (
        "1 error of its SRAM that could not be corrected" if count == 1 else f"{count} uncorrected errors of its SRAM"
    )
    return f"{errors} since the driver was loaded", count, "count", ("sram_uncorrected", "sram_threshold"), None


def _uncorrected(snapshot: Snapshot, gpu: Gpu) -> _Errors | None:
    now = latest(snapshot, gpu, "ecc_uncorrected")
    if not unrepaired(gpu, now.value if now else None):
        return None
    count = int(max(gpu.ecc_uncorrected or 0, now.value if now else 0))
    errors = "1 memory error that could not be corrected" if count == 1 else f"{count} uncorrected memory errors"
    rows = gpu.remapped_uncorrectable
    text = f"{errors} since the driver was loaded" + ("" if rows is None else f", {rows} rows replaced")
    return text, count, "count", ("ecc_uncorrected", "remapped_uncorrectable"), None


def _storm(snapshot: Snapshot, gpu: Gpu) -> _Errors | None:
    """The rate of corrected errors is far above that of a healthy GPU and far above that of equal GPUs."""
    now = latest(snapshot, gpu, "ecc_corrected")
    rate = _rate(snapshot, now) if now else None
    if now is None or rate is None or rate[0] < _STORM:
        return None
    others = [latest(snapshot, other, "ecc_corrected") for other in gpu_cohort(snapshot, gpu) if other.key != gpu.key]
    rates = [known[0] for other in others if other and (known := _rate(snapshot, other))]
    if rates and rate[0] < _ABOVE_COHORT * median(rates):
        return None
    beside = f"; its equals have {median(rates):.3g}" if rates else ""
    return f"{rate[0]:,.0f} corrected memory errors a second {rate[1]}{beside}", rate[0], "per_second", (), now


def _apart(snapshot: Snapshot, gpu: Gpu) -> _Errors | None:
    """Far more corrected errors than equal GPUs have in the same time."""
    now = latest(snapshot, gpu, "ecc_corrected")
    if now is None or now.value < _ALONE.outlier:
        return None
    others = [latest(snapshot, other, "ecc_corrected") for other in gpu_cohort(snapshot, gpu) if other.key != gpu.key]
    found = far_above(snapshot, now, [one for one in others if one], _ALONE)
    if found is None:
        return None
    rise, median = found
    text = f"{rise.new:,.0f} corrected memory errors {rise.span}; its equals have {median:.3g}"
    return text, rise.new, "count", (), now


def _always(snapshot: Snapshot, gpu: Gpu) -> _Errors | None:
    """More corrected errors than any healthy GPU has."""
    now = latest(snapshot, gpu, "ecc_corrected")
    rise = too_many(snapshot, now, _ALWAYS) if now else None
    if now is None or rise is None:
        return None
    text = f"{rise.new:,.0f} corrected memory errors {rise.span}, more than {24 * _ALWAYS.per_hour:,.0f} a day"
    return text, rise.new, "count", (), now


def _rate(snapshot: Snapshot, now: Observation) -> tuple[float, str] | None:
    """Errors per second and the span as text: since the oldest reading of the last hour, else since boot.

    The rate since boot is a lower bound.
    """
    before, node = oldest_in_last_hour(snapshot, now), snapshot.of(Node).get("node")
    start = before.at if before else node.booted if node else None
    if start is None or now.at - start < _SHORTEST:
        return None
    new = now.value - before.value if before and before.value <= now.value else now.value
    span = f"in {now.at - start:.0f} s" if before else f"over {(now.at - start) / 3600:.0f} hours since boot"
    return new / (now.at - start), span


def rows(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding]:
    """A row of memory waits for a reset to be replaced, or could not be replaced. Replaced rows are repaired.

    GPUs before Ampere retire pages and have no row counters.
    """
    if not (gpu.remap_pending or gpu.remap_failed):
        yield from _spent(snapshot, gpu)
        return
    state = "failed" if gpu.remap_failed else "pending"
    meaning = {
        "failed": "a row of its memory could not be replaced: remapping failure",
        "pending": "a row of its memory waits for a reset to be replaced: remapping pending"
        if gpu.remapped_uncorrectable is not None
        else "pages of its memory wait for a reset to be retired",
    }
    errors = f", {gpu.ecc_uncorrected} uncorrected errors" if gpu.ecc_uncorrected else ""
    yield Finding(
        code="gpu-row-remap",
        severity="critical",
        subject=subject_of(gpu),
        subject_name=gpu_name(snapshot, gpu),
        fact="has a memory row that could not be replaced"
        if gpu.remap_failed
        else "has a memory row to replace at a reset",
        message=f"{gpu_name(snapshot, gpu)}: {meaning[state]}{errors}",
        expected="none",
        observed=state,
        cause="no spare rows are left in that bank, or the memory is worn out"
        if gpu.remap_failed
        else "memory errors since the last reset",
        location=place_of(snapshot, gpu),
        evidence=gpu_evidence(gpu, "remap_failed" if gpu.remap_failed else "remap_pending", "ecc_uncorrected"),
    )


def _spent(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding]:
    """Banks in which no row can be replaced any more. The memory still works."""
    if gpu.full_banks:
        yield Finding(
            code="gpu-row-remap",
            severity="warning",
            subject=subject_of(gpu),
            subject_name=gpu_name(snapshot, gpu),
            fact=f"has {gpu.full_banks} memory banks without spare rows",
            message=f"{gpu_name(snapshot, gpu)}: {gpu.full_banks} of its memory banks have no spare row left; the next "
            "memory error there cannot be repaired",
            expected=0,
            observed=gpu.full_banks,
            unit="count",
            cause="all spare rows of the bank are in use",
            location=place_of(snapshot, gpu),
            evidence=gpu_evidence(gpu, "full_banks"),
        )


def repairs(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding]:
    """A memory channel or a TPC (a group of multiprocessors) waits for a reset, or memory cannot be repaired."""
    pending = gpu.pending_repairs or ()
    if not (pending or gpu.unrepairable):
        return
    parts = " and ".join(pending)
    state = "memory that cannot be repaired" if gpu.unrepairable else f"a {parts} to repair at a reset"
    yield Finding(
        code="gpu-row-remap",
        severity="critical",
        subject=subject_of(gpu),
        subject_name=gpu_name(snapshot, gpu),
        fact=f"has {state}",
        message=f"{gpu_name(snapshot, gpu)} has {state}: "
        + ("Unrepairable Memory is Yes" if gpu.unrepairable else f"{parts} repair pending"),
        expected="none",
        observed="unrepairable" if gpu.unrepairable else "pending",
        cause="memory errors that spare rows and channels could not replace"
        if gpu.unrepairable
        else "errors since the last reset",
        location=place_of(snapshot, gpu),
        evidence=gpu_evidence(gpu, "unrepairable" if gpu.unrepairable else "pending_repairs"),
    )


_ERRORS = ("ecc_uncorrected", "ecc_corrected", "sram_threshold", "sram_uncorrected")
_REPAIRS = ("pending_repairs", "unrepairable")
_ROWS = ("remap_pending", "remap_failed", "full_banks")
RULES = (
    Rule("gpu-ecc", Gpu, tuple(f"{field}?" for field in _ERRORS), memory_errors, reports_any(*_ERRORS)),
    Rule("gpu-row-remap", Gpu, tuple(f"{field}?" for field in _ROWS), rows, reports_any(*_ROWS)),
    Rule("gpu-row-remap", Gpu, tuple(f"{field}?" for field in _REPAIRS), repairs, reports_any(*_REPAIRS)),
)
