"""Causes of slow flows between nodes: simulated fabrics whose slow part is known."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.accuracy.networks import fabrics
from bench.accuracy.networks.fabrics import DISTURBED, KINDS, RATE, Fabric, drawn, found, measured, right, two_leaves
from linkgauge.models.fabric.confirmation import confirmed, next_flows, undecided
from linkgauge.models.fabric.fabric_localization import Direction, Measured, Part, joined, localize
from linkgauge.models.fabric.plan import plan
from linkgauge.models.fabric.wiring import Pair, Port, Wiring


def all_rates(fabric: Fabric, seed: int = 0, seconds: float = 1e6) -> list[Measured]:
    ports = {node: ("",) for nodes in fabric.leaves for node in nodes}
    return list(measured(fabric, plan(ports, fabric.wiring, 1.0, seconds, 1e15).rounds, Random(seed)))


@pytest.mark.parametrize("nodes", [8, 16])
@pytest.mark.parametrize("kind", KINDS)
def test_the_right_subject_is_found_for_20_seeds(kind: str, nodes: int) -> None:
    for seed in range(20):
        fabric, wanted = drawn(kind, nodes, Random(seed))
        assert {(one.kind, one.name) for one in found(fabric, seed)} == wanted, seed


@pytest.mark.parametrize("nodes", [8, 16])
@pytest.mark.parametrize("kind", KINDS)
def test_flows_that_other_load_slows_are_no_cause(kind: str, nodes: int) -> None:
    """By chance a flow is disturbed three times in a row, or so many flows that no rounds are left for all."""
    assert right(kind, nodes, 60, DISTURBED) >= 58


@pytest.mark.parametrize("kind", KINDS)
def test_rates_that_scatter_hide_no_port(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Single rates scatter by 8 %, and other load slows every tenth flow: the median of a port shows its loss."""
    monkeypatch.setattr(fabrics, "ERROR", 0.08)
    assert right(kind, 16, 20, 0.1) >= 19


@settings(max_examples=30)
@given(st.sampled_from(KINDS), st.integers(3, 6), st.integers(0, 1000), st.randoms(use_true_random=False))
def test_the_order_of_measurements_changes_nothing(kind: str, half: int, seed: int, chance: Random) -> None:
    fabric, _ = drawn(kind, 2 * half, Random(seed))
    rates = all_rates(fabric, seed)
    shuffled = chance.sample(rates, len(rates))
    assert localize(shuffled, fabric.wiring) == localize(rates, fabric.wiring)


@settings(max_examples=30)
@given(st.sampled_from(KINDS), st.integers(0, 1000), st.integers(-10, 10))
def test_only_ratios_of_rates_count(kind: str, seed: int, power: int) -> None:
    fabric, _ = drawn(kind, 8, Random(seed))
    rates = all_rates(fabric, seed)
    scaled = [Measured(one.pair, one.round, one.rate * 2.0**power) for one in rates]
    names = [
        [(one.kind, one.names, one.pairs) for one in localize(several, fabric.wiring)] for several in (rates, scaled)
    ]
    assert names[0] == names[1]


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=30))
def test_any_rates_give_causes_of_slow_flows_alone(rates: list[float]) -> None:
    pairs = [Pair(Port(str(n)), Port(str(n + 1))) for n in range(len(rates))]
    several = [Measured(pair, n % 3, rate) for n, (pair, rate) in enumerate(zip(pairs, rates, strict=True))]
    causes = localize(several, Wiring())
    assert {pair for one in causes for pair in one.pairs} <= {one.pair for one in several if one.rate < max(rates)}
    assert all(one.rate <= one.usual for one in causes)


def test_one_of_three_uplinks_is_named_with_its_direction() -> None:
    leaves = [[f"node{leaf}{number}" for number in range(4)] for leaf in range(3)]
    (cause,) = localize(
        all_rates(Fabric(leaves, {Part("uplink", "leaf1", "send"): RATE / 2})), Fabric(leaves, {}).wiring
    )
    assert (cause.kind, cause.names, cause.direction, len(cause.pairs)) == ("uplink", ("leaf1",), "send", 32)


def test_few_rounds_are_enough_for_a_port() -> None:
    fabric = two_leaves(16, {Part("port", "node3", "receive"): RATE / 2})
    rates = all_rates(fabric, seconds=8.0)
    assert {one.round for one in rates} == set(range(4))
    assert [(one.kind, one.name, one.direction) for one in localize(rates, fabric.wiring)] == [
        ("port", "node3", "receive")
    ]


@pytest.mark.parametrize("directions", [("send",), ("send", "receive")])
def test_without_a_topology_groups_of_nodes_replace_leaves(directions: tuple[Direction, ...]) -> None:
    fabric = two_leaves(8, {Part("uplink", "leaf0", direction): RATE / 2 for direction in directions})
    (cause,) = joined(localize(all_rates(fabric), Wiring()))
    assert (cause.kind, cause.name) == ("uplink", "node0 and 3 more-node4 and 3 more")
    assert len(cause.pairs) == 16 * len(directions)


def test_two_rates_that_are_too_high_do_not_clear_a_slow_port() -> None:
    fabric = two_leaves(8, {Part("port", "node2", "send"): RATE / 2, Part("port", "node3", "receive"): RATE / 2})
    high = {"node2->node3", "node6->node3"}
    rates = [
        Measured(one.pair, one.round, one.rate * 1.5 if one.pair.name in high else one.rate)
        for one in all_rates(fabric)
    ]
    causes = localize(rates, fabric.wiring)
    assert {(one.kind, one.name) for one in causes} == {("port", "node2"), ("port", "node3")}


def test_a_slow_node_with_two_rails_is_a_node_and_one_slow_rail_is_a_port() -> None:
    names = ["a", "b", "c", "d"]
    rounds = plan(dict.fromkeys(names, ("x", "y")), Wiring(), 1.0, 1e6, 1e15).rounds

    def causes(slow: set[Port]) -> list[tuple[str, str]]:
        rates = [
            Measured(pair, number, 40.0 if slow & {pair.sender, pair.receiver} else 100.0)
            for number, pairs in enumerate(rounds)
            for pair in pairs
        ]
        return [(one.kind, one.name) for one in joined(localize(rates, Wiring()))]

    assert causes({Port("b", "x")}) == [("port", "b/x")]
    assert causes({Port("b", "x"), Port("b", "y")}) == [("node", "b")]
    assert causes(set()) == []


@pytest.mark.parametrize("directions", [("send",), ("send", "receive")])
def test_an_uplink_that_only_limits_the_sum_is_a_fault_if_others_carry_more(directions: tuple[Direction, ...]) -> None:
    fabric = two_leaves(8, {Part("uplink", "leaf0", direction): 2 * RATE for direction in directions})
    rates = all_rates(fabric)
    causes = localize(rates, fabric.wiring)
    again = list(measured(fabric, [(pair,) for pair in next_flows(causes, [], rates)], Random(1), 100))
    (cause,) = confirmed(causes, again, rates)
    assert cause.alone is not None
    assert (cause.kind, cause.alone > 0.9 * RATE, round(cause.carried / RATE)) == ("uplink", True, 2)
    assert cause.shared == (len(directions) == 2)


def test_a_pair_that_was_disturbed_once_is_no_cause() -> None:
    fabric = two_leaves(8)
    first, *others = all_rates(fabric)
    rates = [Measured(first.pair, first.round, RATE / 3), *others]
    causes = localize(rates, fabric.wiring)
    assert [(one.kind, one.name) for one in causes] == [("pair", first.pair.name)]
    assert [*next_flows(causes, [], rates)] == [first.pair]
    again = list(measured(fabric, [(first.pair,)], Random(1), 100))
    assert [*next_flows(causes, again, rates)] == []  # one fast flow clears it
    assert confirmed(causes, again, rates) == ()


@pytest.mark.parametrize(
    ("alone", "pairs", "open_"), [((), 0, 1), ((0.3,), 0, 1), ((0.3, 0.4), 1, 0), ((0.3, 1.0), 0, 0)]
)
def test_a_pair_is_a_cause_if_it_is_slow_each_time(alone: tuple[float, ...], pairs: int, open_: int) -> None:
    first, *others = all_rates(two_leaves(8))
    rates = [Measured(first.pair, first.round, RATE / 3), *others]
    causes = localize(rates, two_leaves(8).wiring)
    again = [Measured(first.pair, 100 + number, share * RATE) for number, share in enumerate(alone)]
    assert (len(confirmed(causes, again, rates)), len(undecided(causes, again, rates))) == (pairs, open_)
