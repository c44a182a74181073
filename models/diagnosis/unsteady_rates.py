"""Equal runs that differ by far more than noise: something slows some of the runs.

A collective that swings shows it in one table. Of any other test two runs are compared: the text does not say whether
the transport, a library or a setting differs, or something was broken in one of them. If the last run is the fastest
one, what was slow can be repaired.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

from ..bandwidth.message_size import full
from ..catalog import NOT_ENOUGH_EVIDENCE
from ..facts.records import COLLECTIVES, Flow, Observation
from ..facts.units import as_bytes, as_gigabytes
from ..inventory.snapshot import Snapshot
from ..report import Finding

_FEWEST = 6  # runs; the first of them may include the setup of connections
# Long collectives of a quiet cluster repeat within a few percent. A quarter of the runs is this share below the best.
_SWING = 0.7
_MOST_EVIDENCE = 4
_TIMES = 2.0  # by which two runs differ
_LEAST = 1 << 20  # bytes: the rate of smaller messages depends on the time in which they start
_SIZES = 2  # at which runs of a collective have to differ: one table repeats a size, and its first run sets up links


def unsteady(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for each collective and message size."""
    for flow, several in snapshot.observed.items():
        if isinstance(flow, Flow) and flow.op in COLLECTIVES and flow.size and flow.size >= full(flow.op):
            runs = sorted((one for one in several if one.quantity == "bus_bandwidth"), key=lambda one: one.value)
            if len(runs) >= _FEWEST and runs[len(runs) // 4].value < _SWING * runs[-1].value:
                yield _finding(flow, flow.size, runs)


def _finding(flow: Flow, size: int, runs: list[Observation]) -> Finding:
    """`runs` in ascending order of their rates."""
    low, quarter, high = runs[0].value, runs[len(runs) // 4].value, runs[-1].value
    return Finding(
        code=NOT_ENOUGH_EVIDENCE,
        kind="measurement",
        severity="info",
        confidence="likely",
        subject=flow.subject,
        fact=f"{len(runs)} equal runs of {flow.op} swing between {as_gigabytes(low)} and {as_gigabytes(high)}",
        message=f"{len(runs)} equal runs of {flow.op} with {as_bytes(size)} swing between {as_gigabytes(low)} and "
        f"{as_gigabytes(high)}: a quarter of them reach at most {as_gigabytes(quarter)}",
        expected=high,
        observed=low,
        unit="bytes_per_second",
        expected_source="the fastest of these runs",
        cause="something slows some of the runs: other traffic in the network, or a node or link that is slow at times",
        evidence=tuple(one.evidence for one in (*runs[: _MOST_EVIDENCE - 1], runs[-1])),
        case="unsteady",
    )


def unequal_runs(snapshot: Snapshot, found: Iterable[Finding]) -> Iterator[Finding]:
    """One finding for each test, in texts without another fault."""
    if snapshot.origin != "dumps" or any(one.severity != "info" or one.code == NOT_ENOUGH_EVIDENCE for one in found):
        return
    for sizes in _tests(snapshot).values():
        pair = _pair(sizes)
        if pair:
            yield _of_two_runs(*pair)


def _tests(snapshot: Snapshot) -> Mapping[Hashable, Mapping[int, Sequence[Observation]]]:
    """The rates of each test by message size, 0 for an unknown one; in the order of the text."""
    tests: dict[Hashable, dict[int, list[Observation]]] = defaultdict(lambda: defaultdict(list))
    for flow, several in snapshot.observed.items():
        if isinstance(flow, Flow) and (not flow.size or flow.size >= _LEAST) and not any(map(_is_open, flow.ends)):
            rates = [one for one in several if one.quantity in ("rate", "bus_bandwidth") and one.value]
            if len(rates) > 1:
                tests[flow.op, flow.ends, flow.via, flow.beside][flow.size or 0] += rates
    return tests


def _is_open(end: str) -> bool:
    """Whether the text does not name the other machine: two runs can be with two of them."""
    return end == "network" or "/" in end


def _pair(sizes: Mapping[int, Sequence[Observation]]) -> tuple[Observation, Observation] | None:
    """The slowest and the fastest run at the largest size. None: the runs are equal, or may be rows of one run."""
    rates = sizes[max(sizes)]
    values = [one.value for one in rates]
    slow, fast = values.index(min(values)), values.index(max(values))
    same = [several for several in sizes.values() if len(several) == len(rates)]
    differ = all(_TIMES * several[slow].value < several[fast].value for several in same)
    one_table = _is_collective(rates[0]) and len(same) < _SIZES
    return (rates[slow], rates[fast]) if differ and not one_table and values[-1] < max(values) else None


def _is_collective(one: Observation) -> bool:
    return isinstance(one.about, Flow) and one.about.op in COLLECTIVES


def _of_two_runs(slow: Observation, fast: Observation) -> Finding:
    flow = slow.about
    assert isinstance(flow, Flow)
    size = f" with {as_bytes(flow.size)}" if flow.size else ""
    return Finding(
        code=NOT_ENOUGH_EVIDENCE,
        kind="measurement",
        severity="info",
        confidence="possible",
        subject=flow.subject,
        fact=f"{flow.op} reaches {as_gigabytes(slow.value)} in one run and {as_gigabytes(fast.value)} in another",
        message=f"{flow.op} {flow.subject}{size} reaches {as_gigabytes(slow.value)} in one run "
        f"({slow.evidence.source}) and {as_gigabytes(fast.value)} in another ({fast.evidence.source}), and the text "
        "does not say why",
        expected=fast.value,
        observed=slow.value,
        unit="bytes_per_second",
        expected_source="the fastest run of this test in the same text",
        cause="another transport, library or setting, another path, or a fault during one of the runs",
        evidence=(slow.evidence, fast.evidence),
        remedy="Compare the commands, the variables and the logs of the two runs: which network, provider and devices "
        "did each use? Repeat both on the idle machine.",
    )
