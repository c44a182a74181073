"""Which late rank or host is the cause, if several are late because they wait for each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct

from ..facts.averages import median
from .placement import Unit
from .stragglers import NoStraggler, RankOrHost, Straggler

_ALIKE = 0.2  # share by which the waits for two ranks differ, if one of them waits for the other
_MORE = 1.3  # a rank that is late for longer than slow links cost is late by itself too


class Cause(Struct, frozen=True):
    """Stragglers, of which one is the cause. A single one, or several of one host, are the cause."""

    members: tuple[RankOrHost, ...]
    stragglers: tuple[Straggler, ...]

    @property
    def host(self) -> str | None:
        """The host, if all are on one."""
        hosts = {one if isinstance(one, str) else one.host for one in self.members}
        return hosts.pop() if len(hosts) == 1 else None


class WaitGraph(Struct, frozen=True, dict=True):
    """Which ranks or hosts wait for which. Keys are communicators; of hosts, only communicators of several hosts."""

    members: Mapping[str, frozenset[RankOrHost]]
    stragglers: Mapping[str, Straggler]
    measured: frozenset[str]  # communicators that show which member is late, or that none is
    slow: Mapping[str, float]  # seconds that slow links cost in all operations: their members are late elsewhere
    delays: Mapping[RankOrHost, float]  # seconds that slow links delay each member
    delay_inside_host: Mapping[str, float]  # seconds by which links delay its late host longer than others
    late_inside_host: frozenset[RankOrHost] = frozenset()  # in the first communicator after the computation

    @cached_property
    def names_of(self) -> Mapping[RankOrHost, Collection[str]]:
        """The communicators of each member."""
        found = defaultdict[RankOrHost, list[str]](list)
        for name, several in self.members.items():
            for one in several:
                found[one].append(name)
        return found

    def delayed_by(self, sources: Collection[RankOrHost], excluded: Collection[RankOrHost] = ()) -> set[RankOrHost]:
        """The sources, and the members that waited for one of them, directly or through others, except `excluded`."""
        found, new = set(sources), set(sources)
        while new:
            names = {name for name, one in self.stragglers.items() if one.member in new}
            names |= self.unmeasured(new)
            new = {one for name in names for one in self.members[name]} - found - set(excluded)
            found |= new
        return found

    def unmeasured(self, members: Collection[RankOrHost]) -> set[str]:
        """Their communicators that do not show which member is late: those of a pipeline, or with few operations."""
        return {name for one in members for name in self.names_of[one] if name not in self.measured}

    def explained_by_links(self, by_member: Mapping[RankOrHost, Collection[Straggler]]) -> set[RankOrHost]:
        """Members whose lateness slow links explain, directly or through waiting. A member that is late for longer than
        slow links can delay it is not explained.

        A slow link delays all members of its communicator alike. If a member is late in this communicator too, it has a
        fault of its own, or it waited for a late member. If it waited, then in its other communicators it is late by at
        most the seconds that the slow link costs.
        """
        lost = (sum(self.slow.get(name, 0.0) for name in names) for names in self.names_of.values())
        most = _MORE * max(lost, default=0.0)
        members = {one for name in self.slow for one in self.members.get(name, ())}
        longer = {
            one
            for one, stragglers in by_member.items()
            if all(each.total > _MORE * self._by_links(each) for each in stragglers)
            and (
                (one in members and self._is_only_straggler(one))
                or (
                    max(each.total for each in stragglers) > most
                    and (one not in members or any(each.communicator in self.slow for each in stragglers))
                )
            )
        }
        return self.delayed_by(members - longer, longer) if most else set()

    def _is_only_straggler(self, one: RankOrHost) -> bool:
        """Whether it is the straggler of each of its communicators that has one."""
        return all(self.stragglers[name].member == one for name in self.names_of[one] if name in self.stragglers)

    def _by_links(self, straggler: Straggler) -> float:
        """Seconds that slow links make the other members wait for this one, at most.

        If the GPUs of a host wait for each other before this communicator, its most delayed GPU delays all of them.
        """
        whole = self.delay(straggler.member) - min(map(self.delay, self.members[straggler.communicator]))
        return max(whole, self.delay_inside_host.get(straggler.communicator, 0.0))

    def delay(self, one: RankOrHost) -> float:
        """Seconds that slow links delay it, or another member of a communicator without a known straggler."""
        return max([self.delays.get(one, 0.0), *(self._longest.get(name, 0.0) for name in self.names_of[one])])

    @cached_property
    def _longest(self) -> Mapping[str, float]:
        """Seconds by which slow links delay the most delayed member of each communicator without a known straggler."""
        return {
            name: max((self.delays.get(one, 0.0) for one in several), default=0.0)
            for name, several in self.members.items()
            if name not in self.measured
        }

    def linked(self, members: Collection[RankOrHost]) -> set[RankOrHost]:
        """The members of their communicators that do not show which member is late."""
        return {one for name in self.unmeasured(members) for one in self.members[name]}


def root_stragglers(graph: WaitGraph) -> Iterator[Cause]:
    """Members that are late on their own: late in every communicator that measured them."""
    by_member = defaultdict[RankOrHost, list[Straggler]](list)
    for straggler in graph.stragglers.values():
        by_member[straggler.member].append(straggler)
    explained = graph.explained_by_links(by_member)
    while True:
        rest = sorted(by_member.keys() - explained, key=str)
        alone = [one for one in rest if _is_late_everywhere(one, graph, explained)]
        if not alone:
            return
        first = max(alone, key=lambda one: sum(each.total for each in by_member[one]))
        together = graph.linked([first]) | _late_for_as_long(first, alone, by_member, graph)
        several = (first, *(one for one in alone if one != first and one in together))
        yield Cause(several, tuple(each for one in several for each in by_member[one]))
        explained |= graph.delayed_by(several, graph.late_inside_host - explained - set(several))


def _late_for_as_long(
    first: RankOrHost,
    alone: Sequence[RankOrHost],
    by_member: Mapping[RankOrHost, Collection[Straggler]],
    graph: WaitGraph,
) -> set[RankOrHost]:
    """Members that are late for as long as the first. No known communicator connects them: they wait elsewhere."""
    waits = {one: max(each.waits for each in by_member[one]) for one in alone}
    return {one for one in alone if abs(waits[one] / waits[first] - 1) < _ALIKE} - graph.delayed_by([first])


def _is_late_everywhere(one: RankOrHost, graph: WaitGraph, explained: Collection[RankOrHost]) -> bool:
    """Whether it is the straggler of all its communicators, except where the straggler is an explained one.

    A member with a fault of its own is late in each of its communicators. A second late member hides this in a
    communicator only if the others wait about as many seconds for the second member, or more.
    """
    names = [name for name in graph.names_of[one] if name in graph.measured]
    stragglers = [graph.stragglers[name] for name in names if name in graph.stragglers]
    own = max(each.total for each in stragglers if each.member == one)
    others = [each for each in stragglers if each.member != one]
    hidden = all(each.member in explained and _MORE * each.total > own for each in others)
    return len(stragglers) == len(names) and hidden


def straggler_causes(
    units: Mapping[str, Collection[Unit]],
    by_unit: Mapping[str, Straggler | NoStraggler],
    by_host: Mapping[str, Straggler | NoStraggler],
    slow: Mapping[str, float],
) -> Iterator[Cause]:
    """Single ranks that are late, then hosts whose ranks are.

    `units`: communicator -> its units. `by_unit` and `by_host`: its straggler, if its times are known.
    """
    hosts = {name: frozenset[RankOrHost](unit.host for unit in several) for name, several in units.items()}
    members = {name: frozenset[RankOrHost](several) for name, several in units.items()}
    of_slow = {unit for name in slow for unit in units[name]}
    delays = defaultdict[RankOrHost, float](float)
    for name, lost in slow.items():
        for unit in units[name]:
            delays[unit] += lost
    single = {one.member for name, one in _stragglers(by_unit).items() if len(hosts[name]) == 1} - of_slow
    of_single = _graph(members, by_unit, slow, delays, {}, single)
    found = list(root_stragglers(of_single))
    yield from found
    known = {cause.host for cause in found}
    across = {name: several for name, several in hosts.items() if len(several) > 1}
    late_hosts = _stragglers(by_host) if slow else {}
    longer = {name: _delay_inside_host(one.member, units[name], of_single) for name, one in late_hosts.items()}
    of_several = _graph(across, by_host, slow, _of_hosts(delays), longer)
    yield from (cause for cause in root_stragglers(of_several) if known.isdisjoint(cause.members))


def _of_hosts(delays: Mapping[RankOrHost, float]) -> Mapping[RankOrHost, float]:
    """The longest delay of the units of each host."""
    found = defaultdict[RankOrHost, float](float)
    for unit, delay in delays.items():
        if isinstance(unit, Unit):
            found[unit.host] = max(found[unit.host], delay)
    return found


def _delay_inside_host(host: RankOrHost, units: Collection[Unit], graph: WaitGraph) -> float:
    """Seconds that slow links delay the most delayed unit of the host longer than the median of the other hosts' units.

    stragglers.py measures waits in the same way.
    """
    own = max(graph.delay(one) for one in units if one.host == host)
    return max(0.0, own - median([graph.delay(one) for one in units if one.host != host]))


def _stragglers(shown: Mapping[str, Straggler | NoStraggler]) -> dict[str, Straggler]:
    return {name: one for name, one in shown.items() if isinstance(one, Straggler)}


def _graph(
    members: Mapping[str, frozenset[RankOrHost]],
    shown: Mapping[str, Straggler | NoStraggler],
    slow: Mapping[str, float],
    delays: Mapping[RankOrHost, float],
    delay_inside_host: Mapping[str, float],
    late_inside_host: Collection[RankOrHost] = (),
) -> WaitGraph:
    return WaitGraph(
        members=members,
        stragglers=_stragglers(shown),
        measured=frozenset(name for name, one in shown.items() if one != "too few operations"),
        slow={name: lost for name, lost in slow.items() if name in members},
        delays=delays,
        delay_inside_host=delay_inside_host,
        late_inside_host=frozenset(late_inside_host),
    )
