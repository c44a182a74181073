"""All places where the faults of a job can be: what the groups would see if there were no noise.

A part that slows some groups by a factor explains what these groups see, if no group over it is faster. An explanation
is a set of as few parts as there are faults that together explain all slow groups. A fault has one possible place if it
is in each explanation. The report of linkgauge is not used here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.accuracy.jobs.cluster import Layout
from bench.accuracy.jobs.simulate import Fault, hosts_alike, share_of

SAME = 1.25  # factors that differ less are not told apart: rates from 80 % of that of equal groups on are not low
Group = tuple[int, int]


@dataclass(frozen=True)
class Places:
    """Where a fault can be. `right`: names of its true place; `others`: names of parts that explain it as well."""

    right: frozenset[str]
    others: frozenset[str]


def places_of(job: Layout, faults: Sequence[Fault]) -> Mapping[Fault, Places]:
    """The possible places of each fault."""
    links = [fault for fault in faults if not fault.gpus]
    found = {fault: _of_host(job, fault) for fault in faults if fault.gpus}
    own = {fault: _names(job, fault) for fault in links}
    explanations = list(_explanations(job, links)) if links else []
    for fault in links:
        known = frozenset[str]().union(*(own[other] for other in links if other is not fault))
        without = [one for one in explanations if not one & own[fault]]
        beside = [one - known for one in without if one & known or len(links) == 1] or without
        found[fault] = Places(own[fault], frozenset[str]().union(*beside))
    return found


def _of_host(job: Layout, fault: Fault) -> Places:
    return Places(frozenset({fault.subject}), hosts_alike(job, fault) - {fault.subject})


def _names(job: Layout, fault: Fault) -> frozenset[str]:
    """The part and what the same groups use on the same node: its NICs are the node."""
    node = fault.subject.partition("/")[0]
    same = job.users[fault.subject]
    return frozenset(part for part in job.users if part.partition("/")[0] == node and job.users[part] == same)


def _explanations(job: Layout, faults: Sequence[Fault]) -> Iterator[frozenset[str]]:
    """Sets of parts, as many as faults or fewer."""
    seen = _seen(job, faults)
    explains = {part: _explained(job, part, seen) for part in job.users}
    by_group = defaultdict[Group, set[str]](set)
    for part, groups in explains.items():
        for group in groups:
            by_group[group].add(part)
    for first in by_group[next(iter(seen))]:
        rest = seen.keys() - explains[first]
        if not rest:
            yield frozenset({first})
        elif len(faults) > 1:
            yield from (frozenset({first, other}) for other in set.intersection(*(by_group[one] for one in rest)))


def _seen(job: Layout, faults: Sequence[Fault]) -> dict[Group, float]:
    """The factor by which each slow group is slower."""
    found = defaultdict[Group, float](lambda: 1.0)
    for fault in faults:
        for group in job.users[fault.subject]:
            found[group] = max(found[group], fault.factor * share_of(job, fault.subject, group[0]))
    return {group: factor for group, factor in sorted(found.items()) if factor > SAME}


def _explained(job: Layout, part: str, seen: Mapping[Group, float]) -> frozenset[Group]:
    """The groups that are as slow as this part can be: it is as fast as the fastest group over it shows."""
    users = job.users[part]
    most = min(seen.get(group, 1.0) / share_of(job, part, group[0]) for group in users if _shows(job, part, group))
    return frozenset(
        group for group in users if group in seen and most * share_of(job, part, group[0]) * SAME > seen[group]
    )


def _shows(job: Layout, part: str, group: Group) -> bool:
    """Whether the group would see that the part is slow. Between nodes it does not see a little slower NVLink."""
    return share_of(job, part, group[0]) == 1 or all(each[0] == group[0] for each in job.users[part])
