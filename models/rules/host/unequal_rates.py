"""Rates of a text in which one of a few devices is far slower than the others.

The text does not show that the devices are equal: a disk or an adapter may be another product. So it is information
and a gap. Of four adapters or GPUs, network/node_pairs.py and the bandwidth levels judge the slow one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence

from ...facts.averages import median
from ...facts.machine import Node
from ...facts.reason import Reason
from ...facts.records import COLLECTIVES, Flow, NotChecked, Observation
from ...facts.units import as_gigabytes
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ...report import COHORT, Finding
from ..core.rule import Rule

_FEWEST, _ENOUGH = 2, 3  # others; with the latter, other code compares all but disks
_FAR = 0.7  # of the median of the others: half of the lanes, or the generation before
_EQUAL = 0.1  # share by which the others differ at most
_NUMBER, _DISK = re.compile("[0-9a-f]{2}(?=[:.][0-9a-f])|[0-9]+"), re.compile("nvme|sd[a-z]")


@once_per_snapshot
def _outliers(snapshot: Snapshot) -> Sequence[tuple[Observation, Sequence[Observation]]]:
    """The slow rate of each group of flows whose ends have names of the same form, and the other rates."""
    return [found for group in _groups(snapshot).values() if (found := _outlier(group))]


def _groups(snapshot: Snapshot) -> Mapping[Hashable, Sequence[Observation]]:
    best: dict[Flow, Observation] = {}
    for about, several in snapshot.observed.items():
        rates = [one for one in several if one.quantity == "rate" and one.value]
        if isinstance(about, Flow) and rates and about.op not in COLLECTIVES:
            best[about] = max(rates, key=lambda one: one.value)
    groups = defaultdict[Hashable, list[Observation]](list)
    for flow, one in best.items():
        form = tuple(_NUMBER.sub("0", end) for end in flow.ends)
        groups[flow.op, flow.size, flow.via, len(flow.beside), form].append(one)
    return groups


def _outlier(group: Sequence[Observation]) -> tuple[Observation, Sequence[Observation]] | None:
    slowest, *others = sorted(group, key=lambda one: one.value)
    if len(others) < _FEWEST or (len(others) >= _ENOUGH and not _is_about_disk(slowest)):
        return None
    clear = slowest.value < _FAR * median(one.value for one in others)
    return (slowest, others) if clear and others[0].value >= (1 - _EQUAL) * others[-1].value else None


def _is_about_disk(one: Observation) -> bool:
    return isinstance(one.about, Flow) and any(map(_DISK.match, one.about.ends))


def has_outlier(snapshot: Snapshot, node: Node) -> bool:
    """Select texts with such a rate."""
    return snapshot.origin == "dumps" and bool(_outliers(snapshot))


def slower_than_others(snapshot: Snapshot, node: Node) -> Iterator[Finding | NotChecked]:
    """The slow flow, and that the text does not show whether its devices equal the others."""
    for slow, others in _outliers(snapshot):
        flow, usual = slow.about, median(one.value for one in others)
        assert isinstance(flow, Flow)
        yield Finding(
            code="bandwidth-low",
            kind="measurement",
            severity="info",
            confidence="possible",
            subject=flow.subject,
            message=f"{flow.op} {flow.subject} reaches {as_gigabytes(slow.value)}; the other {len(others)} flows of "
            f"this kind reach {as_gigabytes(usual)}",
            expected=usual,
            observed=slow.value,
            unit="bytes_per_second",
            basis=COHORT,
            expected_source=f"median of {len(others)} others in the same text",
            cause="a narrow or slow link, or another product than the others",
            evidence=(slow.evidence,),
        )
        why = "the text does not show whether this device is the same product as the others"
        yield NotChecked(
            what="rate", subject=flow.subject, reason=Reason.INCOMPLETE, detail=why, how="linkgauge capture FILE there"
        )


RULES = (Rule("bandwidth-low", Node, (), slower_than_others, has_outlier),)
