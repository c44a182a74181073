"""Localization of slow ports, nodes, uplinks and leaves from the rates of pairs of nodes.

Flows that run at the same time share the fabric max-min fairly. Then each flow has a bottleneck: a part of its path
that is full, and on which no other flow is faster (Bertsekas and Gallager, Data Networks, 6.5.2). So a part is a
possible cause of a slow flow if it hardly ever carried more than in this round, and if no fast flow passed it in this
round. The fewest parts that explain all slow flows are the causes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ..facts.averages import median
from ..graph.path_types import natural
from ..graph.set_cover import smallest_cover
from .wiring import Pair, Wiring

Kind: TypeAlias = Literal["port", "node", "uplink", "leaf", "pair"]
Direction: TypeAlias = Literal["send", "receive", "both"]
# Of parts that explain equally much, the first kind is named.
_PREFERRED: Sequence[Kind] = ("port", "node", "uplink", "leaf", "pair")
# Quantile of all rates that is the usual rate, also if two thirds of the flows pass a slow part; and a higher one. In a
# normal distribution, 0.8 standard deviations are between the two.
_USUAL, _HIGHER, _BETWEEN = 0.8, 0.95, 0.8
# Share by which equal flows differ at most: nodes of one fabric differ by a few percent, and measurements scatter.
_LEAST_TOLERANCE, _MOST_TOLERANCE, _ERRORS = 0.15, 0.5, 5.0
_FEWEST_OF_PORT, _WEAK, _SPREADS = 5, 0.12, 6.0  # flows and ports; share; median absolute deviations
_STEADY = 0.3  # tolerance above which a single slow flow is chance
_FEWEST = 2  # flows that a cause explains; a single slow flow is a pair


class Part(Struct, frozen=True, order=True):
    """A part of the fabric, in one direction. A leaf has none."""

    kind: Kind
    name: str
    direction: Direction = "both"


class Measured(Struct, frozen=True, order=True):
    """A measured rate in bytes per second. Flows with the same round ran at the same time."""

    pair: Pair
    round: int
    rate: float


class Cause(Struct, frozen=True, kw_only=True):
    """What slow flows have in common. Several `names` explain them equally well."""

    kind: Kind
    names: tuple[str, ...]
    direction: Direction
    pairs: tuple[Pair, ...]  # the slow flows
    rate: float  # median of the slow flows
    carried: float  # the most of all flows together over it, in one direction
    usual: float
    elsewhere: float | None = None  # the most over a usual part of this kind in this direction; None: there is no other
    alone: float | None = None  # rate of such a flow that ran alone; None: not measured
    shared: bool = False  # flows alone are fast, and other parts carry no more: the fabric is made so

    @property
    def name(self) -> str:
        """ "node5/eth1", "leaf0-leaf1"."""
        return "-".join(self.names)


class Usual(Struct, frozen=True):
    """The rate of flows of a rail without a slow part, and the share by which equal flows differ at most."""

    rate: float
    tolerance: float

    @property
    def steady(self) -> bool:
        """Whether a single rate says enough."""
        return self.tolerance <= _STEADY

    def is_slow(self, rate: float) -> bool:
        """Whether the rate is lower than that of equal flows."""
        return rate < (1 - self.tolerance) * self.rate

    def is_slow_alone(self, rates: Collection[float]) -> bool:
        """Whether a part is slow by its flows that ran alone, which scatter less.

        One fast flow clears it: load can make any flow slow, and nothing makes a flow faster than the part that it
        passes. But if rates scatter much, a measured rate can be too high.
        """
        rate = max(rates) if self.steady else median(rates)
        return rate < (1 - max(_LEAST_TOLERANCE, self.tolerance / 2)) * self.rate


def usual_rates(measured: Sequence[Measured]) -> Mapping[str, Usual]:
    """The usual rate of each rail."""
    rates = defaultdict[str, list[float]](list)
    for one in measured:
        rates[one.pair.sender.rail].append(one.rate)
    return {rail: _usual(sorted(several)) for rail, several in rates.items()}


def _usual(ordered: Sequence[float]) -> Usual:
    usual, higher = (ordered[round(quantile * (len(ordered) - 1))] for quantile in (_USUAL, _HIGHER))
    error = (higher - usual) / _BETWEEN / usual if usual else 0.0
    return Usual(usual, min(_MOST_TOLERANCE, max(_LEAST_TOLERANCE, _ERRORS * error)))


def slow_flows(measured: Sequence[Measured]) -> list[Measured]:
    """The flows that are slower than others of their rail."""
    usual = usual_rates(measured)
    return [one for one in measured if usual[one.pair.sender.rail].is_slow(one.rate)]


def parts_of(pair: Pair, wiring: Wiring) -> Iterator[Part]:
    """The parts that a flow passes."""
    yield Part("port", pair.sender.name, "send")
    yield Part("port", pair.receiver.name, "receive")
    if pair.sender.rail:
        yield Part("node", pair.sender.node, "send")
        yield Part("node", pair.receiver.node, "receive")
    if crossed := wiring.crossed(pair):
        yield Part("uplink", crossed[0], "send")
        yield Part("uplink", crossed[1], "receive")
    yield from (Part("leaf", leaf) for leaf in {wiring.leaf(pair.sender), wiring.leaf(pair.receiver)} if leaf)


def localize(measured: Sequence[Measured], wiring: Wiring) -> tuple[Cause, ...]:
    """The causes of all slow flows, those that explain most flows first. Flows without a common cause are pairs.

    A part that is slow in both directions is two causes, because each is confirmed by flows of its own.
    """
    measured = sorted(measured)  # so that sums do not depend on the order
    slow, usual = slow_flows(measured), usual_rates(measured)
    wiring = wiring if wiring.leaves or not slow else inferred(measured)
    loads = _loads(measured, frozenset(slow), wiring)
    possible = {part: _full(flows, part, loads, usual) for part, flows in loads.slow.items()}
    left, found = slow, list[Cause]()
    # A cause explains flows that scatter more, too: `loads.slow` has them.
    for choice in smallest_cover(slow, possible, _preference, _FEWEST, explains=loads.slow):
        first, covered = choice.candidate, choice.covered
        equal = [part for part, own in covered.items() if part.kind == first.kind and own == covered[first]]
        found.append(_cause(equal, [one for one in left if one in choice.explained], loads.carried, usual))
        left = [one for one in left if one not in choice.explained]
    explained_pairs = {pair for one in found for pair in one.pairs}
    weak = {(one.direction, one.names) for one in _weak_ports(measured, usual)}
    others = _weak_ports([one for one in measured if one.pair not in explained_pairs], usual)
    found += [one for one in others if (one.direction, one.names) in weak]
    found += [_pair(one, usual) for one in left if usual[one.pair.sender.rail].steady]
    return tuple(sorted(found, key=_first))


def _preference(part: Part, remaining: object) -> tuple[int, Part]:
    return _PREFERRED.index(part.kind), part


def inferred(measured: Sequence[Measured]) -> Wiring:
    """Groups of nodes in place of unknown leaves: each two nodes of different groups are slow in a direction."""
    slow = {_nodes(one.pair) for one in slow_flows(measured)}
    group = dict[str, set[str]]()
    for ends in {_nodes(one.pair) for one in measured} - slow:
        joined = set().union(*({end} | group.get(end, set()) for end in ends))
        group.update(dict.fromkeys(joined, joined))
    names = {node: sorted(several, key=natural) for node, several in group.items()}
    return Wiring({node: f"{first} and {len(more)} more" for node, (first, *more) in names.items() if more})


def _nodes(pair: Pair) -> frozenset[str]:
    return frozenset((pair.sender.node, pair.receiver.node))


class _Loads(Struct, frozen=True):
    """What each part carried: in each round, and in its second best round, since one measurement may be too high.

    `slow`: the slow flows that no fast flow accompanied over the part. `fast`: the parts with a fast flow in any round.
    """

    totals: Mapping[tuple[Part, int], float]
    carried: Mapping[Part, float]
    slow: Mapping[Part, frozenset[Measured]]
    fast: frozenset[Part]


def _loads(measured: Sequence[Measured], slow: Collection[Measured], wiring: Wiring) -> _Loads:
    totals, fast = defaultdict[tuple[Part, int], float](float), set[tuple[Part, int]]()
    over = defaultdict[Part, set[Measured]](set)
    for one in measured:
        for part in parts_of(one.pair, wiring):
            totals[part, one.round] += one.rate
            if one in slow:
                over[part].add(one)
            else:
                fast.add((part, one.round))
    several = defaultdict[Part, list[float]](list)
    for (part, _), total in totals.items():
        several[part].append(total)
    carried = {part: sorted(rates)[-2:][0] for part, rates in several.items()}
    alone = {part: frozenset(one for one in flows if (part, one.round) not in fast) for part, flows in over.items()}
    return _Loads(totals, carried, alone, frozenset(part for part, _ in fast))


def _full(flows: Collection[Measured], part: Part, loads: _Loads, usual: Mapping[str, Usual]) -> frozenset[Measured]:
    """The flows of the rounds in which the part carried as much as it can: all rounds, if it never had a fast flow."""
    if part not in loads.fast:
        return frozenset(flows)
    return frozenset(
        one
        for one in flows
        if loads.totals[part, one.round] >= (1 - usual[one.pair.sender.rail].tolerance) * loads.carried[part]
    )


def _cause(
    parts: Sequence[Part], flows: Sequence[Measured], carried: Mapping[Part, float], usual: Mapping[str, Usual]
) -> Cause:
    first = parts[0]
    alike = [part for part in carried if (part.kind, part.direction) == (first.kind, first.direction)]
    others = [carried[part] for part in alike if part not in parts]
    directions = {part.direction for part in parts}
    return Cause(
        kind=first.kind,
        names=tuple(sorted({part.name for part in parts})),
        direction=first.direction if len(directions) == 1 else "both",
        pairs=tuple(sorted({one.pair for one in flows})),
        rate=median(one.rate for one in flows),
        carried=carried[first],
        elsewhere=median(others) if others else None,
        usual=usual[flows[0].pair.sender.rail].rate,
    )


def _weak_ports(measured: Sequence[Measured], usual: Mapping[str, Usual]) -> Iterator[Cause]:
    """Ports that are slow by the median of their flows without a cause, if single rates scatter too much to show it."""
    flows = defaultdict[tuple[str, Direction], dict[str, list[Measured]]](dict)
    for one in measured:
        if not usual[one.pair.sender.rail].steady:
            flows[one.pair.sender.rail, "send"].setdefault(one.pair.sender.name, []).append(one)
            flows[one.pair.sender.rail, "receive"].setdefault(one.pair.receiver.name, []).append(one)
    for (_, direction), ports in flows.items():
        several = {name: own for name, own in ports.items() if len(own) >= _FEWEST_OF_PORT}
        medians = {name: median(one.rate for one in own) for name, own in several.items()}
        if len(medians) < _FEWEST_OF_PORT:
            continue
        typical = median(medians.values())
        spread = median(abs(one - typical) for one in medians.values())
        for name, rate in medians.items():
            if rate < typical - max(_WEAK * typical, _SPREADS * spread):
                slow = [one for one in several[name] if one.rate <= rate]
                own = Part("port", name, direction)
                yield _cause([own], slow, {own: sorted(one.rate for one in several[name])[-2]}, usual)


def _pair(one: Measured, usual: Mapping[str, Usual]) -> Cause:
    return Cause(
        kind="pair",
        names=(one.pair.name,),
        direction="send",
        pairs=(one.pair,),
        rate=one.rate,
        carried=one.rate,
        usual=usual[one.pair.sender.rail].rate,
    )


def joined(causes: Sequence[Cause]) -> tuple[Cause, ...]:
    """Both directions of the same part as one cause, those that explain most flows first."""
    alike = defaultdict[tuple[Kind, tuple[str, ...]], list[Cause]](list)
    for one in causes:
        alike[one.kind, one.names].append(one)
    return tuple(sorted(map(_both, alike.values()), key=_first))


def _both(directions: Sequence[Cause]) -> Cause:
    slowest = min(directions, key=lambda one: one.rate)
    pairs = tuple(sorted({pair for one in directions for pair in one.pairs}))
    return replace(slowest, pairs=pairs, direction="both" if len(directions) > 1 else slowest.direction)


def _first(cause: Cause) -> tuple[int, Kind, tuple[str, ...], Direction]:
    return -len(cause.pairs), cause.kind, cause.names, cause.direction
