"""Error counters of NVLinks: detected errors and retrained links.

Healthy links have none. Raw errors of NVLink 5 that forward error correction corrects do not count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from ...facts.gpu import Gpu
from ...facts.records import Evidence, Observation
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ...report import Finding
from ..core.counter_windows import HOUR, Limit, Rise, far_above, latest_counter, too_many
from ..core.gpus import gpu_cohort, gpu_name, latest, place_of, subject_of
from ..core.rule import Rule
from ..core.wording import missed

# DCGM fails a GPU for one new replay, recovery or symbol error a minute, for an effective bit error rate above 1e-12,
# and for 100 CRC errors a second: fewer "do not matter" (DcgmHealthWatch.cpp, DcgmGpuHardwareLimits.h). A single error
# in a minute is no finding here: nvidia-resiliency-ext#302 asks for errors in 15 of 30 minutes.
_NAMES = {
    "nvlink_replay": "replays",
    "nvlink_recovery": "link recoveries",
    "nvlink_recovery_failed": "failed link recoveries",
    "nvlink_symbol_errors": "symbol errors",
    "nvlink_effective_errors": "errors after error correction",
    "nvlink_crc": "CRC errors",
}
_CRC = Limit(fewest=500, per_hour=100 * HOUR)
_BIT_ERRORS = 1e-12
# More than one a minute; or more than one an hour, of which the training of the links at boot causes a few.
_MINUTELY, _HOURLY = Limit(fewest=2, per_hour=60), Limit(fewest=8, per_hour=1)
_DAILY = Limit(fewest=8, per_hour=1 / 24)  # a failed recovery takes a link down: one a day is too many
_LIMITS = {"nvlink_crc": (_CRC,), "nvlink_recovery_failed": (_MINUTELY, _DAILY)}
# One link with so many errors while most others have none is faulty, however long the machine is up.
_ALONE = Limit(fewest=100, per_hour=0, outlier=100)
_CRC_ALONE = Limit(fewest=1000, per_hour=0, outlier=1000)
# Fewer CRC errors cost no bandwidth, but healthy links have none: two a second are shown as info.
_CRC_LASTING = Limit(fewest=1000, per_hour=2 * HOUR)


class _Rise(Struct, frozen=True):
    """A counter of a GPU that is too high or rises."""

    name: str
    new: float
    since: str
    links: tuple[str, ...]  # numbers of the links with errors
    evidence: tuple[Evidence, ...]
    minor: bool = False  # too few to cost bandwidth


def has_error_counters(snapshot: Snapshot, gpu: Gpu) -> bool:
    """Select GPUs with NVLink counters, and GPUs whose counters could not be read."""
    counted = any(one.quantity in _NAMES for one in snapshot.observed.get(gpu.key, ())) or bool(_ratios(snapshot, gpu))
    return counted or missed(snapshot, "Gpu.nvlink_errors", gpu.key)


def errors(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding]:
    """Error counters increase, or the bit error rate after error correction is too high."""
    rises = [rise for quantity in _NAMES if (rise := _of_counter(snapshot, gpu, quantity))]
    bad = {number: one for number, one in _ratios(snapshot, gpu).items() if one.value > _BIT_ERRORS}
    if not rises and not bad:
        return
    texts = [f"{rise.new:,.0f} {rise.name} {rise.since}{_on(rise.links)}" for rise in rises]
    if bad:
        worst = max(one.value for one in bad.values())
        texts.append(f"an effective bit error rate of {worst:.1e}{_on(tuple(bad))}, above {_BIT_ERRORS:.0e}")
    yield Finding(
        code="nvlink-errors",
        severity="warning" if bad or not all(rise.minor for rise in rises) else "info",
        subject=subject_of(gpu),
        subject_name=gpu_name(snapshot, gpu),
        message=f"{gpu_name(snapshot, gpu)}: {'; '.join(texts)}",
        observed=rises[0].new if rises else max(one.value for one in bad.values()),
        unit="count" if rises else "ratio",
        cause="the signal of these links: the seating of the GPU, a bridge or cable, or the other end",
        location=place_of(snapshot, gpu),
        evidence=(*(one for rise in rises for one in rise.evidence), *(one.evidence for one in bad.values())),
    )


def _of_counter(snapshot: Snapshot, gpu: Gpu, quantity: str) -> _Rise | None:
    return _rise(snapshot, gpu, quantity) or _apart(snapshot, gpu, quantity) or _lasting(snapshot, gpu, quantity)


def _lasting(snapshot: Snapshot, gpu: Gpu, quantity: str) -> _Rise | None:
    """CRC errors at a low rate, also if all GPUs have them."""
    now = latest(snapshot, gpu, quantity) if quantity == "nvlink_crc" else None
    rise = too_many(snapshot, now, _CRC_LASTING) if now else None
    if rise is None:
        return None
    links = tuple(_risen(snapshot, gpu, quantity, rise.before))
    return _Rise(_NAMES[quantity], rise.new, rise.span, links, rise.evidence, minor=True)


def _on(links: tuple[str, ...]) -> str:
    return f" on link{'s' if len(links) > 1 else ''} {', '.join(links)}" if links else ""


def _rise(snapshot: Snapshot, gpu: Gpu, quantity: str) -> _Rise | None:
    """The increase in the last minute, hour or day, or since boot. None: no relevant increase."""
    now = latest(snapshot, gpu, quantity)
    if now is None or not now.value:
        return None
    limits = _LIMITS.get(quantity, (_MINUTELY, _HOURLY))
    rise = next((rise for limit in limits if (rise := too_many(snapshot, now, limit))), None)
    if rise is None:
        return None
    links = tuple(_risen(snapshot, gpu, quantity, rise.before))
    return _Rise(_NAMES[quantity], rise.new, rise.span, links, rise.evidence)


@once_per_snapshot
def _counted_links(snapshot: Snapshot) -> Mapping[str, Sequence[str]]:
    """The numbers of the NVLinks with observations ("gpu0/nvlink7"), by GPU."""
    found: dict[str, list[str]] = defaultdict(list)
    for about in snapshot.observed:
        owner, separator, number = about.partition("/nvlink") if isinstance(about, str) else ("", "", "")
        if separator and number:
            found[owner].append(number)
    return found


def _apart(snapshot: Snapshot, gpu: Gpu, quantity: str) -> _Rise | None:
    """The increase of one link far above that of the other links of equal GPUs, or of the GPU above equal GPUs.

    The driver shows only the counters of links with errors. The others have none.
    """
    equal = gpu_cohort(snapshot, gpu) or [gpu]
    limit = _CRC_ALONE if quantity == "nvlink_crc" else _ALONE
    own = {number: now for number, now in _of_links(snapshot, gpu, quantity).items() if now.value >= limit.outlier}
    of_cohort = [one for other in equal for one in _of_links(snapshot, other, quantity).values()] if own else []
    silent = [None] * max(0, sum(one.nvlinks or 0 for one in equal) - len(of_cohort)) if own else []
    for number, now in own.items():
        if found := far_above(snapshot, now, [*(one for one in of_cohort if one is not now), *silent], limit):
            rise, median = found
            return _Rise(_NAMES[quantity], rise.new, _beside(rise, median, "links"), (number,), rise.evidence)
    total = latest(snapshot, gpu, quantity)
    if total is None or total.value < limit.outlier:
        return None
    known = [latest(snapshot, one, quantity) for one in equal if one.key != gpu.key]
    found = far_above(snapshot, total, [one for one in known if one], limit)
    if found is None:
        return None
    rise, median = found
    return _Rise(_NAMES[quantity], rise.new, _beside(rise, median, "GPUs"), (), rise.evidence)


def _of_links(snapshot: Snapshot, gpu: Gpu, quantity: str) -> dict[str, Observation]:
    """The latest reading of a counter of each NVLink of a GPU, by the number of the link."""
    numbers = _counted_links(snapshot).get(gpu.key, ())
    return {one: now for one in numbers if (now := latest_counter(snapshot, f"{gpu.key}/nvlink{one}", quantity))}


def _beside(rise: Rise, median: float, what: str) -> str:
    return f"{rise.span} (other {what}: {median:.3g})"


def _risen(snapshot: Snapshot, gpu: Gpu, quantity: str, before: Observation | None) -> Iterator[str]:
    """The numbers of the links whose own counter increased, or is above zero without an earlier reading."""
    for number in _counted_links(snapshot).get(gpu.key, ()):
        about = f"{gpu.key}/nvlink{number}"
        for now in snapshot.observed[about]:
            then = [one.value for one in snapshot.earlier.get((about, quantity), ()) if before and one.at <= before.at]
            if now.quantity == quantity and now.value > (then[-1] if then else 0):
                yield number


def _ratios(snapshot: Snapshot, gpu: Gpu) -> dict[str, Observation]:
    """The bit error rate after error correction (NVLink 5), by link number."""
    return _of_links(snapshot, gpu, "nvlink_effective_ber")


RULES = (Rule("nvlink-errors", Gpu, ("nvlink_errors?",), errors, has_error_counters),)
