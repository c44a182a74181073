"""Rates of a text that are compared with the other direction of the same pair, with other types of paths, or with what
its writer expects.

Links of GPUs have equal rates in both directions, so a pair with a slow direction has a fault or a limit at the place
where its path turns (the turnaround). A nearer path is at least as fast as a farther one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from ...facts.averages import median
from ...facts.gpu import Gpu
from ...facts.machine import Event, Node
from ...facts.network_paths import EXPECTED, PATH_RATE, NodePair
from ...facts.reason import Reason
from ...facts.records import COLLECTIVES, Flow, NotChecked, Observation
from ...facts.units import as_gigabytes
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ...report import COHORT, Finding, Severity
from ..core.log_history import event_evidence, events
from ..core.rule import Rule

_NEAREST = ("PIX", "PXB", "PHB", "NODE", "SYS")
_FAR = 0.7  # of the median of the others, or of a farther path: half of the lanes, or the generation before
_HALF = 0.5  # of the other direction, or of the nearest path
_FEWEST = 2  # others of one type of path
_GPU = re.compile("gpu[0-9]")  # copies to and from the host use different engines and memory
_COHORT = 4  # flows of one kind: bandwidth levels compare these


@once_per_snapshot
def _one_way(snapshot: Snapshot) -> Sequence[tuple[Observation, Observation]]:
    """Pairs of GPUs whose directions differ by more than a factor of two, as (slow direction, fast direction)."""
    best: dict[Flow, Observation] = {}
    for about, several in snapshot.observed.items():
        rates = [one for one in several if one.quantity == "rate" and one.value]
        if isinstance(about, Flow) and rates and about.op not in COLLECTIVES and all(map(_GPU.match, about.ends)):
            best[about] = max(rates, key=lambda one: one.value)
    kinds = defaultdict[object, int](int)
    for flow in best:
        kinds[_kind(flow)] += 1
    products = snapshot.of(Gpu)  # bandwidth levels know the rates of products
    unknown = (flow for flow in best if not any((one := products.get(end)) and one.name for end in flow.ends))
    few = {flow: best[flow] for flow in unknown if kinds[_kind(flow)] < _COHORT}
    pairs = ((one, few.get(replace(flow, ends=flow.ends[::-1]))) for flow, one in few.items())
    return [(one, other) for one, other in pairs if other and one.value < _HALF * other.value]


def _kind(flow: Flow) -> tuple[object, ...]:
    return flow.op, flow.size, flow.via, len(flow.beside)


def has_one_way(snapshot: Snapshot, node: Node) -> bool:
    """Select texts with such a pair."""
    return snapshot.origin == "dumps" and bool(_one_way(snapshot))


def slow_direction(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
    """The slow direction."""
    for slow, fast in _one_way(snapshot):
        flow = slow.about
        assert isinstance(flow, Flow)
        yield Finding(
            code="bandwidth-low",
            kind="measurement",
            severity="warning",
            confidence="likely",
            subject=flow.subject,
            message=f"{flow.op} {flow.subject} reaches {as_gigabytes(slow.value)}; the other direction of this pair "
            f"reaches {as_gigabytes(fast.value)}",
            expected=fast.value,
            observed=slow.value,
            unit="bytes_per_second",
            basis=COHORT,
            expected_source=f"the other direction ({fast.evidence.source})",
            cause="the turnaround of the path in this direction (access control, a root complex), or bad lanes",
            evidence=(slow.evidence, fast.evidence),
        )


@once_per_snapshot
def _by_path(snapshot: Snapshot) -> Mapping[str, Sequence[Observation]]:
    """The rates of each type of path, the nearest first."""
    rates = {path: [one for one in snapshot.observed.get(path, ()) if one.quantity == PATH_RATE] for path in _NEAREST}
    return {path: several for path, several in rates.items() if several}


def has_paths(snapshot: Snapshot, node: Node) -> bool:
    """Select texts with rates by type of path."""
    return snapshot.origin == "dumps" and bool(_by_path(snapshot))


def slow_paths(snapshot: Snapshot, node: Node) -> Iterator[Finding | NotChecked]:
    """A nearer path that is slower than a farther one, a rate far below its kind, and a far path of half the rate."""
    rates = _by_path(snapshot)
    for path, several in rates.items():
        for one in several:
            others = [other.value for other in several if other is not one]
            if len(others) >= _FEWEST and one.value < _FAR * median(others):
                yield _of_path(one, path, median(others), f"the other {len(others)} rates of this type", "warning")
    best = {path: max(several, key=lambda one: one.value) for path, several in rates.items()}
    for place, (path, one) in enumerate(best.items()):
        farther = list(best.items())[place + 1 :]
        fastest = max(farther, key=lambda item: item[1].value, default=None)
        if fastest and one.value < _FAR * fastest[1].value:
            yield _of_path(one, path, fastest[1].value, f"{fastest[0]}, which is farther", "warning")
    nearest = next(iter(best.values()), None)
    for path, one in list(best.items())[1:]:
        if nearest and one.value < _HALF * nearest.value and len(rates) > 1:
            yield _of_path(one, path, nearest.value, f"{nearest.about}, the nearest path", "info")
    yield NotChecked(
        what="rate",
        subject="node",
        reason=Reason.INCOMPLETE,
        detail="the rows name types of paths and not their ends: what each path can reach is not known",
        how="write each row as 'gpu0 -> gpu1: 48.1 GB/s'",
    )


def _of_path(one: Observation, path: str, usual: float, reference: str, severity: Severity) -> Finding:
    return Finding(
        code="bandwidth-low",
        kind="measurement",
        severity=severity,
        confidence="possible",
        subject=path,
        message=f"copies over {path} reach {as_gigabytes(one.value)}; {reference} reaches {as_gigabytes(usual)}",
        expected=usual,
        observed=one.value,
        unit="bytes_per_second",
        basis=COHORT,
        expected_source="other rates in the same text",
        cause="access control that sends copies up to the processor, a narrow link, or the interconnect of processors",
        evidence=(one.evidence,),
    )


def _complaints(snapshot: Snapshot) -> list[Event]:
    """Sentences that call a rate low without a number (unexplained.toml)."""
    found = events(snapshot, "message") if snapshot.origin == "dumps" else []
    return [one for one in found if re.fullmatch(r"rate-[a-z-]+-in-prose", one.name or "")]


def says_slow(snapshot: Snapshot) -> bool:
    """Whether the text calls a rate low, with or without its number."""
    stated = snapshot.of(NodePair).get(EXPECTED)
    below = stated is not None and (stated.others is None or (stated.rate or 0) < _FAR * stated.others)
    return below or bool(_complaints(snapshot))


def has_complaint(snapshot: Snapshot, node: Node) -> bool:
    """Select texts that call the rate of their only flow low."""
    return bool(_complaints(snapshot)) and len(_measured(snapshot)) == 1


def _measured(snapshot: Snapshot) -> Mapping[tuple[str, tuple[str, ...]], Observation]:
    """The highest rate of each flow, over all sizes."""
    best: dict[tuple[str, tuple[str, ...]], Observation] = {}
    for about, several in snapshot.observed.items():
        for one in several:
            if isinstance(about, Flow) and one.unit == "bytes_per_second":
                known = best.setdefault((about.op, about.ends), one)
                best[about.op, about.ends] = one if one.value > known.value else known
    return best


def called_low(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
    """Information: a writer can expect too much."""
    ((op, _), one), complaint = next(iter(_measured(snapshot).items())), _complaints(snapshot)[0]
    yield Finding(
        code="bandwidth-low",
        kind="measurement",
        severity="info",
        confidence="possible",
        subject="node",
        message=f"{op} reaches {as_gigabytes(one.value)}, which the text calls low",
        observed=one.value,
        unit="bytes_per_second",
        basis=COHORT,
        expected_source="the text itself",
        evidence=(one.evidence, event_evidence(complaint)),
    )


RULES = (
    Rule("bandwidth-low", Node, (), called_low, has_complaint),
    Rule("bandwidth-low", Node, (), slow_direction, has_one_way),
    Rule("bandwidth-low", Node, (), slow_paths, has_paths),
)
