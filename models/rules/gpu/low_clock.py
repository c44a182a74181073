"""GPUs that work at a low clock without a known reason: a locked clock, or firmware that does not report why."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.gpu import Gpu
from ...facts.reason import Reason
from ...facts.records import NotChecked
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.gpus import gpu_evidence, gpu_name, gpu_product, place_of, scrubs, subject_of
from ..core.rule import Rule
from .clocks import LOWERED, SLOW, limit_of

_FULL = 0.95  # utilization: the GPU is not between two kernels
_AT_LIMIT = 0.9  # of the power limit
_CAPPED = 0.33  # of the highest clock: the power cap holds a Tesla T4 at 585 of 1590 MHz


def shows_work(snapshot: Snapshot, gpu: Gpu) -> bool:
    """Select GPUs of which a dump shows whether they work."""
    return (
        snapshot.origin != "dumps" or gpu.clock_reasons is not None or (gpu.utilization is not None and not scrubs(gpu))
    )


def unexplained(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding | NotChecked]:
    """The GPU is in its fastest state and not idle, its clock is far below the highest, and the driver has no reason.

    A clock that an operator locked (nvidia-smi -lgc) can look the same. In a text without reasons, the power cap can be
    the reason: a gap, if the text does not show the power either.
    """
    if not _is_low(snapshot, gpu):
        return
    if gpu.clock_reasons is not None or not _may_be_capped(gpu):
        yield _finding(snapshot, gpu)
    elif not (gpu.power and gpu.power_limit):
        yield NotChecked(
            what="Gpu.clock_reasons",
            subject=subject_of(gpu),
            reason=Reason.INCOMPLETE,
            detail=f"it works at {_clock(gpu)}, and the text shows neither a reason nor its power",
            how="nvidia-smi -q -d PERFORMANCE,CLOCK,POWER",
        )


def _is_low(snapshot: Snapshot, gpu: Gpu) -> bool:
    """Whether the GPU works at less than half of its highest clock, and neither a reason nor a setting is known.

    An application clock can be that low by default (585 of 1590 MHz on a Tesla T4): such a GPU keeps it while a process
    holds the GPU without any work. Recent drivers hide the application clock. Then only GPUs of a baseboard are
    checked, which report that they idle, and those whose utilization shows that they work.
    """
    clock, most, state = gpu.clock, gpu.clock_max, gpu.performance_state
    product = gpu_product(snapshot, gpu)
    full = (gpu.utilization or 0) >= _FULL and not scrubs(gpu)
    hidden = gpu.application_clock is None and not (product and product.fabric) and not full
    if not clock or not most or hidden or (gpu.application_clock and clock >= LOWERED * gpu.application_clock):
        return False
    unnamed = gpu.clock_reasons == () or (gpu.clock_reasons is None and full)
    working = (state == 0 or (state is None and full)) and unnamed and gpu.virtualization != "vGPU"
    return working and clock < SLOW * most and limit_of(snapshot, gpu) is None


def _may_be_capped(gpu: Gpu) -> bool:
    """Whether the power cap may explain the clock."""
    if gpu.power and gpu.power_limit:
        return gpu.power >= _AT_LIMIT * gpu.power_limit
    return (gpu.clock or 0.0) >= _CAPPED * (gpu.clock_max or 0.0)


def _clock(gpu: Gpu) -> str:
    return f"{(gpu.clock or 0.0) / 1e6:,.0f} MHz of {(gpu.clock_max or 0.0) / 1e6:,.0f} MHz"


def _finding(snapshot: Snapshot, gpu: Gpu) -> Finding:
    return Finding(
        code="gpu-clocks-limited",
        severity="warning",
        confidence="likely",
        subject=subject_of(gpu),
        subject_name=gpu_name(snapshot, gpu),
        message=f"{gpu_name(snapshot, gpu)} works at {_clock(gpu)}, "
        f"and {'its driver' if gpu.clock_reasons is not None else 'the text'} names no reason",
        expected=gpu.clock_max,
        observed=gpu.clock,
        unit="hertz",
        basis="capability",
        expected_source="the highest clock of the GPU",
        cause="a locked clock, or firmware that lowers the clock and does not report it",
        case="no reason",
        location=place_of(snapshot, gpu),
        evidence=gpu_evidence(gpu, "clock", "clock_max", "performance_state", "clock_reasons", "utilization"),
    )


_NEEDS = ("clock", "clock_max", "clock_reasons?", "utilization?", "performance_state?")
RULES = (Rule("gpu-clocks-limited", Gpu, _NEEDS, unexplained, shows_work),)
