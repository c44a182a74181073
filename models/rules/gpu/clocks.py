"""The clocks of GPUs: limited by heat, by the power supply, or by a setting."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.gpu import Gpu
from ...facts.machine import Node
from ...facts.reason import Reason
from ...facts.records import Evidence, NotChecked, Observation
from ...inventory.snapshot import Snapshot
from ...report import COHORT, Basis, Finding
from ..core.gpus import (
    gpu_cohort,
    gpu_evidence,
    gpu_name,
    latest,
    majority,
    oldest_in_last_hour,
    place_of,
    subject_of,
)
from ..core.rule import Rule

# "hardware slowdown" is set together with each of these two. It is set alone while clocks change, or for a moment of
# too much current (NVML, clocks event reasons). The software power cap is normal under load. The others are settings.
# "thermal violation" is the word of nvidia-smi dmon, which does not tell hardware from software.
_HARDWARE = ("hardware thermal slowdown", "hardware power brake", "thermal violation")
_BARE = "hardware slowdown"
_SOFTWARE = "software thermal slowdown"  # common for a moment: it counts if it takes half of the clock
# Counter, reason, and the share of time above which it counts: a tenth of the work, or more than a moment.
_TIMES = (
    ("clocks_hw_thermal", "hardware thermal slowdown", 0.01),
    ("clocks_hw_power_brake", "hardware power brake", 0.01),
    ("clocks_sw_thermal", "software thermal slowdown", 0.1),
)
_SHORTEST = 10.0  # seconds: a shorter span gives no reliable share
LOWERED = 0.99  # of the default: a lower value is not rounding
SLOW = 0.5  # of the highest clock: a busy GPU without a reason runs near it (L40S 1.0, A100 0.9; nvidia-smi -q)


def slowed(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding | NotChecked]:
    """throttled(), and a gap: a text with the reason alone does not show how much of the clock it takes."""
    found = list(throttled(snapshot, gpu))
    yield from found
    if snapshot.origin == "dumps" and any(one.severity == "info" for one in found) and _is_slow(gpu) is None:
        yield NotChecked(
            what="Gpu.clock",
            subject=subject_of(gpu),
            reason=Reason.INCOMPLETE,
            detail=f"{_SOFTWARE}, and the text does not show the clock of the GPU",
            how="nvidia-smi -q -d PERFORMANCE,CLOCK,TEMPERATURE",
        )


def throttled(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding]:
    """Heat or the power supply slows the GPU down, now or for a relevant share of the time.

    Without a reading in the last hour the share is since boot. The cause may then be over, so the confidence is
    "likely".
    """
    reasons = gpu.clock_reasons or ()
    now = [reason for reason in _HARDWARE if reason in reasons]
    bare = [_BARE] if not now and _BARE in reasons and "idle" not in reasons else []
    bare = bare or ([_SOFTWARE] if not now and _SOFTWARE in reasons and _may_matter(snapshot, gpu) else [])
    spent = [share for row in _TIMES if (share := _share(snapshot, gpu, *row))]
    if not (now or bare or spent) or (bare == [_SOFTWARE] and snapshot.origin != "dumps" and not spent):
        return
    what = now or bare or [spent[0][0]]
    cause, case = _cause(what)
    state = f"{_clock(gpu)}{f' at {gpu.temperature:.0f} °C' if gpu.temperature is not None else ''}"
    texts = [" and ".join(now or bare) + f" now{state}"] if now or bare else []
    yield Finding(
        code="gpu-throttled",
        severity="info" if bare == [_SOFTWARE] and not spent and not _is_slow(gpu) else "warning",
        confidence="certain" if now else "likely",
        subject=subject_of(gpu),
        subject_name=gpu_name(snapshot, gpu),
        message=f"{gpu_name(snapshot, gpu)} is slowed down: " + "; ".join([*texts, *(text for _, text, _ in spent)]),
        expected="none",
        observed=", ".join(what),
        cause=cause,
        case=case,
        location=place_of(snapshot, gpu),
        evidence=(*gpu_evidence(gpu, "clock_reasons"), *(evidence for _, _, evidence in spent)),
    )


def hot(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding]:
    """The GPU is as hot as its hardware allows, and its clock reasons do not show a slowdown, or are missing."""
    margin = gpu.temperature_margin
    if margin is None or margin > 0 or any(throttled(snapshot, gpu)):
        return
    now = f" at {gpu.temperature:.0f} °C" if gpu.temperature is not None else ""
    yield Finding(
        code="gpu-throttled",
        severity="warning",
        confidence="likely",
        subject=subject_of(gpu),
        subject_name=gpu_name(snapshot, gpu),
        fact="is too hot",
        message=f"{gpu_name(snapshot, gpu)}{now} is {f'{-margin:.0f} °C above' if margin else 'at'} the "
        "temperature at which its hardware lowers the clocks",
        expected=0,
        observed=-margin,
        cause="heat: fans, filters, coolant, the heat sink, or the room",
        case="heat",
        location=place_of(snapshot, gpu),
        evidence=gpu_evidence(gpu, "temperature_margin"),
    )


def _may_matter(snapshot: Snapshot, gpu: Gpu) -> bool:
    """Whether a slowdown by software is told: it takes half of the clock, or a text has only this moment."""
    return _is_slow(gpu) is not False or (snapshot.origin == "dumps" and "idle" not in (gpu.clock_reasons or ()))


def _cause(reasons: list[str]) -> tuple[str, str | None]:
    """The likely cause as text, and as the case of the finding."""
    if "hardware power brake" in reasons:
        return "the board's power supply or its limit", "power brake"
    if any("thermal" in one for one in reasons):
        return "heat: fans, filters, coolant, the heat sink, or the room", "heat"
    return "heat, the power supply, or too much current at once", None


def _is_slow(gpu: Gpu) -> bool | None:
    """Whether the GPU works at less than half of its highest clock. None: not known."""
    if gpu.clock is None or gpu.clock_max is None:
        return None
    return gpu.clock < SLOW * gpu.clock_max and "idle" not in (gpu.clock_reasons or ())


def _clock(gpu: Gpu) -> str:
    if gpu.clock is None or gpu.clock_max is None:
        return ""
    return f", {gpu.clock / 1e6:,.0f} of {gpu.clock_max / 1e6:,.0f} MHz"


def _share(snapshot: Snapshot, gpu: Gpu, quantity: str, reason: str, most: float) -> tuple[str, str, Evidence] | None:
    """The reason, its share of time as text, and the evidence. None: not above the share `most`."""
    now = latest(snapshot, gpu, quantity)
    since = _since(snapshot, now) if now else None
    if now is None or since is None or since[1] < _SHORTEST or since[0] / since[1] <= most:
        return None
    seconds, span, words = since
    return reason, f"{reason} for {seconds:,.0f} of {span:,.0f} s{words}", now.evidence


def _since(snapshot: Snapshot, now: Observation) -> tuple[float, float, str] | None:
    """Seconds throttled, seconds passed, and a suffix: since the oldest reading of the last hour, else since boot."""
    before, node = oldest_in_last_hour(snapshot, now), snapshot.of(Node).get("node")
    if before and before.value <= now.value:
        return now.value - before.value, now.at - before.at, ""
    if before or node is None or node.booted is None:  # the counter was reset since the earlier reading
        return None
    return now.value, now.at - node.booted, " since boot"


def limited(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding]:
    """The power limit is below its default, or an application clock is below its default or that of equal GPUs.

    Locked clocks cannot be read. Limits that an operator lowered on purpose belong in the site file. A limit that is
    the same on all GPUs of the node gives one finding.
    """
    limit = limit_of(snapshot, gpu)
    if limit is None:
        return
    text, expected, observed, unit, fields, basis = limit
    gpus = list(snapshot.of(Gpu).values())
    everyone = len(gpus) > 1 and all(limit_of(snapshot, other) == limit for other in gpus)
    if everyone and gpu is not gpus[0]:
        return
    whom = f"each of the {len(gpus)} GPUs" if everyone else gpu_name(snapshot, gpu)
    yield Finding(
        code="gpu-clocks-limited",
        severity="warning",
        confidence="likely" if basis == COHORT else "certain",
        subject="node" if everyone else subject_of(gpu),
        subject_name=None if everyone else gpu_name(snapshot, gpu),
        message=f"{whom}: {text}",
        expected=expected,
        observed=observed,
        unit=unit,
        basis=basis,
        expected_source="equal GPUs of this node" if basis == COHORT else "the board's default",
        cause="an operator or the management controller set it, or it was not set again after a reset",
        case="power limit" if unit == "watts" else "application clock",
        location={} if everyone else place_of(snapshot, gpu),
        evidence=gpu_evidence(gpu, *fields),
    )


# Text, expected, observed, unit, fields with the evidence, basis of the expected value.
_Limit = tuple[str, float, float, str, tuple[str, ...], Basis]


def limit_of(snapshot: Snapshot, gpu: Gpu) -> _Limit | None:
    """The limit that was lowered. None: no limit is known to be low."""
    return _power(gpu) or _application_clock(snapshot, gpu)


def lowered(gpu: Gpu) -> bool:
    """Whether the power limit is below its default."""
    return _power(gpu) is not None


def _power(gpu: Gpu) -> _Limit | None:
    limit, default = gpu.power_limit, gpu.power_limit_default
    if "Laptop" in (gpu.name or ""):
        return None  # its limit changes with the power of the processor and the battery (NVIDIA Dynamic Boost)
    if not limit or not default or limit >= LOWERED * default:
        return None
    text = f"its power limit is {limit:.0f} W, the default is {default:.0f} W"
    return text, default, limit, "watts", ("power_limit", "power_limit_default"), "capability"


def _application_clock(snapshot: Snapshot, gpu: Gpu) -> _Limit | None:
    """The clock is below its default, or below equal GPUs: operators raise all clocks, and a reset undoes it on one."""
    clock, default = gpu.application_clock, gpu.application_clock_default
    most = majority(other.application_clock for other in gpu_cohort(snapshot, gpu))
    if not clock:
        return None
    if default and clock < LOWERED * default:
        text = f"its application clock is {clock / 1e6:,.0f} MHz, the default is {default / 1e6:,.0f} MHz"
        return text, default, clock, "hertz", ("application_clock", "application_clock_default"), "capability"
    if most and clock < LOWERED * most:
        text = f"its application clock of {clock / 1e6:,.0f} MHz is below that of its equals, {most / 1e6:,.0f} MHz"
        return text, most, clock, "hertz", ("application_clock",), COHORT
    return None


RULES = (
    Rule("gpu-throttled", Gpu, ("clock_reasons",), slowed),
    Rule("gpu-clocks-limited", Gpu, ("power_limit", "power_limit_default"), limited),
    Rule("gpu-throttled", Gpu, ("temperature_margin",), hot),
)
