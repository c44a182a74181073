"""Tests between pairs of nodes, and the same test on several nodes.

A node is slow if all its pairs are slow and its partners are fast with others, or if it alone is slow of several.
All pairs are slow if they reach a small part of the rate at which all ports of the text are up: one stream of TCP does
not fill a fast port, but it reaches more than a port of 10 Gbit/s. They go over another network, or lose packets.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from ...facts.averages import median
from ...facts.machine import Net, Node
from ...facts.network_paths import EXPECTED, NodePair
from ...facts.reason import Reason
from ...facts.records import NotChecked
from ...facts.units import as_gigabytes
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ...report import COHORT, Finding
from ..core.rule import Rule
from ..core.wording import cited

_SLOW = 0.8  # of the partner's best rate with others: equal nodes of one fabric differ by a few percent
_FEWEST_OTHERS, _MOST = 3, 0.75  # other nodes in a test, and the share of them with equal rates
_FEWEST_PAIRS = 3  # with equal rates
_PART = 0.25  # of a link that the text names: other limits than its lanes cost less
_OF_PORT, _ONE_STREAM = 0.1, 1.5e9  # of the slowest port; bytes per second
_READ_LINK = "Read the link of the device and of the ports above it under load: lspci -vv (LnkSta)."
_WIRELESS = r"(?<![\w])(?:wi-?fi|wireless|wlan|wl[opx]\w{1,12}|802\.11\w{0,2}|vpn|wireguard)(?![\w])"
_VIRTUAL = r"(?:lo|veth\w+|docker\d+|br-\w+|virbr\d+|cali\w+|bond\d+|vlan\d+|ib\d+)(?:$|@)|.*\.\d+$"
_FEWEST = 2  # pairs of a node; with one pair, the partner or the path between the two may be slow


@once_per_snapshot
def slow_nodes(snapshot: Snapshot) -> Mapping[str, list[NodePair]]:
    """The nodes that are slow with all of at least two partners, and their pairs. Each partner is fast with another."""
    pairs: dict[str, list[NodePair]] = defaultdict(list)
    for pair in _pairs(snapshot):
        for end in (pair.a, pair.b):
            if end:
                pairs[end].append(pair)
    return {
        node: own
        for node, own in pairs.items()
        if len(own) >= _FEWEST and all(_slow_for(_partner(pair, node), pair, pairs) for pair in own)
    }


@once_per_snapshot
def _pairs(snapshot: Snapshot) -> list[NodePair]:
    return [pair for pair in snapshot.of(NodePair).values() if pair.b is not None and pair.rate is not None]


@once_per_snapshot
def _best_rate(snapshot: Snapshot) -> float:
    return max(other.rate or 0 for other in _pairs(snapshot))


def _partner(pair: NodePair, node: str) -> str:
    return str(pair.b if pair.a == node else pair.a)


def _slow_for(node: str, pair: NodePair, pairs: Mapping[str, list[NodePair]]) -> bool:
    """Whether the node has a much higher rate with another partner."""
    others = [other.rate or 0 for other in pairs[node] if other.key != pair.key]
    return bool(others) and (pair.rate or 0) < _SLOW * max(others)


def evaluate(snapshot: Snapshot, pair: NodePair) -> Iterator[Finding | NotChecked]:
    """A finding for each slow node, on its first pair. A NotChecked for a slow pair if the slow node is not known."""
    if pair.key == EXPECTED:
        yield from _less_than_expected(pair)
        return
    if pair.b is None:
        yield from _alone(snapshot, pair)
        return
    slow, every = slow_nodes(snapshot), _pairs(snapshot)
    if not slow and pair.key == every[0].key and (lack := _lack(every)):
        how = "test three or more pairs, also pairs without this node"
        yield NotChecked(what="NodePair", subject=pair.key, reason=Reason.NO_EXPECTATION, detail=lack, how=how)
    for node, own in slow.items():
        if own[0].key == pair.key:
            yield _finding(snapshot, node, own)
    best = _best_rate(snapshot)
    localized = pair.a in slow or pair.b in slow
    if not localized and (pair.rate or 0) < _SLOW * best:
        reached = f"{as_gigabytes(pair.rate or 0)}, other pairs reach up to {as_gigabytes(best)}"
        why = f"{reached}: without a pair with a third node it is not known which of the two is slow"
        yield NotChecked(
            what="NodePair",
            subject=pair.key,
            reason=Reason.OTHER,
            detail=why,
            how="test each of the two with a fast node",
        )


def _lack(pairs: list[NodePair]) -> str | None:
    """Why equal rates of the pairs do not show that their nodes are fast. None: they show it."""
    rates = [pair.rate or 0 for pair in pairs]
    if min(rates) < _SLOW * max(rates):
        return None  # evaluate() names the slow pairs
    if len(pairs) < _FEWEST_PAIRS:
        return "there are fewer than three pairs of nodes, and nothing says what rates they should have"
    common = set.intersection(*({str(pair.a), str(pair.b)} for pair in pairs))
    return f"all pairs contain {min(common)}: its own rate limits all of them" if common else None


def _less_than_expected(own: NodePair) -> Iterator[Finding | NotChecked]:
    """Information: a writer can expect too much (the rated rate of a link, or the sum of both directions).

    A warning if the expectation is the rate of a link that the writer names, and what came over it is a small part.
    """
    rate, wanted = own.rate or 0, own.others
    if wanted is None or rate < _SLOW * wanted:
        of = "low" if wanted is None else f"reached and {as_gigabytes(wanted)} expected"
        of += f", the rate of {own.link}" if own.link else ""
        far = bool(own.link and wanted and rate < _PART * wanted)
        yield Finding(
            code="bandwidth-low",
            severity="warning" if far else "info",
            confidence="possible",
            subject="node",
            message=f"the text says that {as_gigabytes(rate)} was {of}",
            expected=wanted,
            observed=rate,
            unit="bytes_per_second",
            basis=COHORT,
            expected_source="the text itself",
            evidence=cited(own, "rate"),
            remedy=_READ_LINK if own.link else None,
        )
    why = f"the text gives a rate, {as_gigabytes(rate)}, and neither its path nor how it was measured"
    yield NotChecked(
        what="rate", subject="node", reason=Reason.INCOMPLETE, detail=why, how="linkgauge expect, linkgauge diagnose"
    )


def _alone(snapshot: Snapshot, own: NodePair) -> Iterator[Finding | NotChecked]:
    """A finding if a node or its adapter is slow and most other nodes of the test are equal. A NotChecked if the test
    has too few nodes to compare.
    """
    same = [one for one in snapshot.of(NodePair).values() if one.b is None and (one.a is None) == (own.a is None)]
    others = [one.rate or 0 for one in same if one.key not in (own.key, EXPECTED)]
    usual = own.others or (median(others) if len(others) >= _FEWEST_OTHERS else 0)
    if not usual and own.key == next(one.key for one in same if one.key != EXPECTED):
        why = f"{own.key} reaches {as_gigabytes(own.rate or 0)}, and nothing says what it should reach"
        how = "add the rates of three others in the same test, or of an earlier one"
        yield NotChecked(what="NodePair", subject=own.key, reason=Reason.NO_EXPECTATION, detail=why, how=how)
    equal = sum(_SLOW * usual <= rate <= usual / _SLOW for rate in others)
    # Adapters of one machine may belong to two networks: one that differs is a fault, several are not.
    fewest = 0 if own.others else len(others) if own.a is None else _MOST * len(others)
    if (own.rate or 0) < _SLOW * usual and equal >= fewest:
        count, source = f"other {len(others)}", f"median of {len(others)} others in the same report"
        if own.others:
            count, source = "others", "the text itself"
        yield Finding(
            code="bandwidth-low" if own.a is None else "node-slow",
            severity="warning",
            confidence="likely",
            subject=own.a or own.key,
            message=f"{own.key} reaches {as_gigabytes(own.rate or 0)}; the {count} in this test reach "
            f"{as_gigabytes(usual)}",
            expected=usual,
            observed=own.rate,
            unit="bytes_per_second",
            basis=COHORT,
            expected_source=source,
            evidence=cited(own, "rate"),
        )


def _finding(snapshot: Snapshot, node: str, own: list[NodePair]) -> Finding:
    partners = {_partner(pair, node) for pair in own}
    others = [
        other.rate
        for other in _pairs(snapshot)
        if other.rate is not None and node not in (other.a, other.b) and {other.a, other.b} & partners
    ]
    usual, best = median(others), max(pair.rate or 0 for pair in own)
    reached = ", ".join(f"{as_gigabytes(pair.rate or 0)} with {_partner(pair, node)}" for pair in own[:4])
    return Finding(
        code="node-slow",
        severity="critical",
        confidence="likely",
        subject=node,
        message=f"{node} is slow with each of its {len(own)} partners ({reached}); with others these reach "
        f"{as_gigabytes(usual)}",
        expected=usual,
        observed=best,
        unit="bytes_per_second",
        basis=COHORT,
        expected_source="what its partners reach with other nodes",
        evidence=tuple(seen for pair in own for seen in cited(pair, "rate")),
    )


def is_far_below(snapshot: Snapshot, node: Node) -> bool:
    """Select dumps with such rates."""
    return snapshot.origin == "dumps" and any(below_ports(snapshot, node))


def below_ports(snapshot: Snapshot, node: Node) -> Iterator[Finding | NotChecked]:
    """One finding for the fastest of all pairs. Information, if the test can have used another interface."""
    pairs = [one for one in snapshot.of(NodePair).values() if one.b and one.rate and one.key != EXPECTED]
    ports = [one for one in snapshot.of(Net).values() if one.speed and one.carrier is not False]
    if not pairs or not ports:
        return
    best, port = max(pairs, key=lambda one: one.rate or 0), min(ports, key=lambda one: one.speed or 0)
    rate, speed = best.rate or 0.0, port.speed or 0.0
    if rate < min(_OF_PORT * speed, _ONE_STREAM):
        other = _other_interface(snapshot, best)
        yield Finding(
            code="bandwidth-low",
            kind="measurement",
            severity="info" if other else "warning",
            confidence="possible",
            subject=best.key if len(pairs) == 1 else "node",
            message=f"the fastest of {len(pairs)} tests between nodes, {best.key}, reaches {as_gigabytes(rate)}, "
            f"{rate / speed:.0%} of {as_gigabytes(speed)}: port {port.key} is up at this rate",
            expected=speed,
            observed=rate,
            unit="bytes_per_second",
            basis="capability",
            expected_source=f"the speed of port {port.key}",
            cause="packets are lost in a switch, a cable or a queue, or the test ran over another network",
            evidence=(*cited(best, "rate"), *cited(port, "speed")),
            remedy="Check which interface the test uses: ip route get ADDRESS. Count retransmits and the drops of each "
            "switch port. Repeat the test without the switch.",
        )
        if other:
            why = f"the test {best.key} can have run over {other} instead of port {port.key}"
            yield NotChecked(
                what="rate", subject="node", reason=Reason.INCOMPLETE, detail=why, how="ip route get ADDRESS"
            )


def _other_interface(snapshot: Snapshot, pair: NodePair) -> str | None:
    """An interface over which the test can have run. None: there is none, or an end is the host of the port."""
    if wireless := next(
        (found[0] for one in cited(pair, "rate") if (found := re.search(_WIRELESS, one.text, re.I))), None
    ):
        return wireless
    host = next((one.hostname for one in snapshot.of(Node).values() if one.hostname), None)
    if host and host.split(".")[0] in {str(end).split(".")[0] for end in (pair.a, pair.b)}:
        return None
    return next((one.key for one in snapshot.of(Net).values() if _is_other(one)), None)


def _is_other(net: Net) -> bool:
    """Whether it is a port of unknown speed that can have a link: with a wireless one, for example."""
    virtual = net.link_type == "loopback" or re.match(_VIRTUAL, net.key)
    return net.speed is None and net.carrier is not False and not virtual


RULES = (
    Rule("node-slow", NodePair, ("rate",), evaluate),
    Rule("bandwidth-low", Node, (), below_ports, is_far_below),
)
