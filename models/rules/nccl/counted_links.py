"""Links that NCCL counts lower than those of equal devices, in the graph that it prints."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ...facts.machine import Node
from ...facts.network_paths import LINK_RATE
from ...facts.reason import Reason
from ...facts.records import NotChecked, Observation
from ...facts.units import as_gigabytes
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ...report import COHORT, Finding
from ..core.rule import Rule

_FAR = 0.7  # of the highest of its kind: half of the lanes, or the generation before
_FEWEST = 2  # other links of its kind


@once_per_snapshot
def _lower_links(snapshot: Snapshot) -> Sequence[tuple[Observation, float, int]]:
    """Links that NCCL counts lower than those of others of their kind: the link, the usual rate, the others."""
    kinds = defaultdict[str, list[Observation]](list)
    for about, several in snapshot.observed.items():
        if isinstance(about, str) and (rates := [one for one in several if one.quantity == LINK_RATE]):
            kinds[about.partition("/")[0]].append(rates[0])
    return [
        (one, max(other.value for other in alike), len(alike) - 1)
        for alike in kinds.values()
        for one in alike
        if one.value < _FAR * max(other.value for other in alike)
    ]


def has_lower_links(snapshot: Snapshot, node: Node) -> bool:
    """Select logs of NCCL with such a link."""
    return snapshot.origin == "dumps" and bool(_lower_links(snapshot))


def lower_links(snapshot: Snapshot, node: Node) -> Iterator[Finding | NotChecked]:
    """The only GPU of several whose link NCCL counts lower. NICs can be other products: information and a gap."""
    lower = _lower_links(snapshot)
    for one, usual, others in lower:
        gpus = [other for other, _, _ in lower if str(other.about).startswith("GPU")]
        alone = gpus == [one] and others >= _FEWEST
        yield Finding(
            code="bandwidth-low",
            kind="measurement",
            severity="warning" if alone else "info",
            confidence="possible",
            subject=str(one.about),
            message=f"NCCL counts {as_gigabytes(one.value)} for the link of {one.about}, and {as_gigabytes(usual)} "
            "for others of its kind",
            expected=usual,
            observed=one.value,
            unit="bytes_per_second",
            basis=COHORT,
            expected_source="other links in the same text",
            cause="fewer lanes, a slower slot, a port or cable of a lower rate, or a link at rest",
            evidence=(one.evidence,),
        )
    yield NotChecked(
        what="Pci.width",
        subject="node",
        reason=Reason.INCOMPLETE,
        detail="NCCL prints a rate for each link, and neither its width nor its speed",
        how="lspci -vv",
    )


RULES = (Rule("bandwidth-low", Node, (), lower_links, has_lower_links),)
