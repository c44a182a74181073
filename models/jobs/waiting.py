"""Which late rank or host is the cause, if several are late because they wait for each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct

from ..facts.averages import median
from .late import Late, Shown, Who
from .placement import Unit

_ALIKE = 0.2  # share by which the waits for two ranks differ, if one of them waits for the other
_MORE = 1.3  # a rank that is late for longer than slow links cost is late by itself too


class Cause(Struct, frozen=True):
    """Late ranks or hosts of which one is the cause. A single one, or several of one host, are the cause."""

    whose: tuple[Who, ...]
    late: tuple[Late, ...]

    @property
    def host(self) -> str | None:
        """The host, if all are on one."""
        hosts = {one if isinstance(one, str) else one.host for one in self.whose}
        return hosts.pop() if len(hosts) == 1 else None


class Waiting(Struct, frozen=True, dict=True):
    """Who waits for whom. Keys are communicators; of hosts, only communicators of several hosts."""

    members: Mapping[str, frozenset[Who]]
    late: Mapping[str, Late]
    measured: frozenset[str]  # communicators that show who is late, or that nobody is
    slow: Mapping[str, float]  # seconds that slow links cost in all operations: their members come late to others
    delays: Mapping[Who, float]  # seconds that slow links delay each member
    within: Mapping[str, float]  # how much longer than others the GPUs of the late host are delayed
    inside: frozenset[Who] = frozenset()  # late in a communicator of one host, the first after the computation

    @cached_property
    def names_of(self) -> Mapping[Who, Collection[str]]:
        """The communicators of each member."""
        found = defaultdict[Who, list[str]](list)
        for name, several in self.members.items():
            for one in several:
                found[one].append(name)
        return found

    def behind(self, whose: Collection[Who], spared: Collection[Who] = ()) -> set[Who]:
        """These, those that waited for one of them, and those that waited for these in turn, except `spared`."""
        found, new = set(whose), set(whose)
        while new:
            names = {name for name, one in self.late.items() if one.who in new}
            names |= self.unmeasured(new)
            new = {one for name in names for one in self.members[name]} - found - set(spared)
            found |= new
        return found

    def unmeasured(self, whose: Collection[Who]) -> set[str]:
        """Communicators of these that do not show who is late: those of a pipeline, or with few operations."""
        return {name for one in whose for name in self.names_of[one] if name not in self.measured}

    def explained_by_links(self, by_whom: Mapping[Who, Collection[Late]]) -> set[Who]:
        """Late because of slow links, or because they waited for those. Not who is late for longer than links cost.

        A slow link delays all members of its communicator alike. If a member is late in this communicator too, it has a
        fault of its own, or it waited for a late member. If it waited, then in its other communicators it is late by at
        most the seconds that the slow link costs.
        """
        lost = (sum(self.slow.get(name, 0.0) for name in names) for names in self.names_of.values())
        most = _MORE * max(lost, default=0.0)
        members = {one for name in self.slow for one in self.members.get(name, ())}
        longer = {
            one
            for one, late in by_whom.items()
            if all(each.total > _MORE * self._by_links(each) for each in late)
            and (
                (one in members and self._is_always_the_late_one(one))
                or (
                    max(each.total for each in late) > most
                    and (one not in members or any(each.communicator in self.slow for each in late))
                )
            )
        }
        return self.behind(members - longer, longer) if most else set()

    def _is_always_the_late_one(self, one: Who) -> bool:
        """Whether it is the late one in each of its communicators that has one."""
        return all(self.late[name].who == one for name in self.names_of[one] if name in self.late)

    def _by_links(self, late: Late) -> float:
        """Seconds that slow links make the other members wait for this one, at most.

        If the GPUs of a host wait for each other before this communicator, its most delayed GPU delays all of them.
        """
        whole = self.delay(late.who) - min(map(self.delay, self.members[late.communicator]))
        return max(whole, self.within.get(late.communicator, 0.0))

    def delay(self, one: Who) -> float:
        """Seconds that slow links delay it, or another member of a communicator that does not show who is late."""
        return max([self.delays.get(one, 0.0), *(self._longest.get(name, 0.0) for name in self.names_of[one])])

    @cached_property
    def _longest(self) -> Mapping[str, float]:
        """Seconds by which slow links delay the most delayed member of each communicator without a known late one."""
        return {
            name: max((self.delays.get(one, 0.0) for one in several), default=0.0)
            for name, several in self.members.items()
            if name not in self.measured
        }

    def linked(self, whose: Collection[Who]) -> set[Who]:
        """The members of the communicators of these that do not show who is late."""
        return {one for name in self.unmeasured(whose) for one in self.members[name]}


def causes(waiting: Waiting) -> Iterator[Cause]:
    """Who is late by itself and not because it waited. Only who is late in each communicator is."""
    by_whom = defaultdict[Who, list[Late]](list)
    for late in waiting.late.values():
        by_whom[late.who].append(late)
    explained = waiting.explained_by_links(by_whom)
    while True:
        alone = [one for one in sorted(by_whom.keys() - explained, key=str) if _everywhere(one, waiting, explained)]
        if not alone:
            return
        first = max(alone, key=lambda one: sum(each.total for each in by_whom[one]))
        together = waiting.linked([first]) | _as_late(first, alone, by_whom, waiting)
        several = (first, *(one for one in alone if one != first and one in together))
        yield Cause(several, tuple(late for one in several for late in by_whom[one]))
        explained |= waiting.behind(several, waiting.inside - explained - set(several))


def _as_late(first: Who, alone: Sequence[Who], by_whom: Mapping[Who, Collection[Late]], waiting: Waiting) -> set[Who]:
    """Who is late for as long, though no known communicator connects them: they wait for each other elsewhere."""
    waits = {one: max(each.waits for each in by_whom[one]) for one in alone}
    return {one for one in alone if abs(waits[one] / waits[first] - 1) < _ALIKE} - waiting.behind([first])


def _everywhere(one: Who, waiting: Waiting, explained: Collection[Who]) -> bool:
    """Whether it is the late one in all its communicators, except where another one is, that is explained.

    A member with a fault of its own is late in each of its communicators. A second late member hides this in a
    communicator only if the others wait about as many seconds for the second member, or more.
    """
    names = [name for name in waiting.names_of[one] if name in waiting.measured]
    late = [waiting.late[name] for name in names if name in waiting.late]
    own = max(each.total for each in late if each.who == one)
    others = [each for each in late if each.who != one]
    return len(late) == len(names) and all(each.who in explained and _MORE * each.total > own for each in others)


def causes_of(
    units: Mapping[str, Collection[Unit]],
    by_unit: Mapping[str, Late | Shown],
    by_host: Mapping[str, Late | Shown],
    slow: Mapping[str, float],
) -> Iterator[Cause]:
    """Single ranks that are late, then hosts whose ranks are.

    `units`: communicator -> its units. `by_unit` and `by_host`: who is late, for communicators whose times are known.
    """
    hosts = {name: frozenset[Who](unit.host for unit in several) for name, several in units.items()}
    members = {name: frozenset[Who](several) for name, several in units.items()}
    of_slow = {unit for name in slow for unit in units[name]}
    delays = defaultdict[Who, float](float)
    for name, lost in slow.items():
        for unit in units[name]:
            delays[unit] += lost
    single = {late.who for name, late in _late(by_unit).items() if len(hosts[name]) == 1} - of_slow
    of_single = _waiting(members, by_unit, slow, delays, {}, single)
    found = list(causes(of_single))
    yield from found
    known = {cause.host for cause in found}
    across = {name: several for name, several in hosts.items() if len(several) > 1}
    within = {name: _longer(late.who, units[name], of_single) for name, late in _late(by_host).items() if slow}
    of_several = _waiting(across, by_host, slow, _of_hosts(delays), within)
    yield from (cause for cause in causes(of_several) if known.isdisjoint(cause.whose))


def _of_hosts(delays: Mapping[Who, float]) -> Mapping[Who, float]:
    """The longest delay of the units of each host."""
    found = defaultdict[Who, float](float)
    for unit, delay in delays.items():
        if isinstance(unit, Unit):
            found[unit.host] = max(found[unit.host], delay)
    return found


def _longer(host: Who, units: Collection[Unit], waiting: Waiting) -> float:
    """Seconds that slow links delay the most delayed unit of the host longer than the median of the other hosts' units.

    late.py measures waits in the same way.
    """
    own = max(waiting.delay(one) for one in units if one.host == host)
    return max(0.0, own - median([waiting.delay(one) for one in units if one.host != host]))


def _late(shown: Mapping[str, Late | Shown]) -> dict[str, Late]:
    return {name: one for name, one in shown.items() if isinstance(one, Late)}


def _waiting(
    members: Mapping[str, frozenset[Who]],
    shown: Mapping[str, Late | Shown],
    slow: Mapping[str, float],
    delays: Mapping[Who, float],
    within: Mapping[str, float],
    inside: Collection[Who] = (),
) -> Waiting:
    return Waiting(
        members=members,
        late=_late(shown),
        measured=frozenset(name for name, one in shown.items() if one != "unknown"),
        slow={name: lost for name, lost in slow.items() if name in members},
        delays=delays,
        within=within,
        inside=frozenset(inside),
    )
