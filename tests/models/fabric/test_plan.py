"""The rounds of a measurement between nodes."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.fabric.plan import circle, packed, plan
from linkgauge.models.fabric.wiring import Pair, Port, Wiring

BUDGET = (1e6, 1e15)


@given(st.integers(2, 40))
def test_each_node_meets_each_other_once_and_has_one_partner_at_a_time(count: int) -> None:
    nodes = [str(number) for number in range(count)]
    rounds = circle(nodes)
    met = Counter(frozenset(pair) for one in rounds for pair in one)
    assert met == Counter({frozenset((a, b)): 1 for a in nodes for b in nodes if a != b})
    assert all(len({node for pair in one for node in pair}) == 2 * len(one) for one in rounds)
    assert len(rounds) == count - 1 + count % 2


@given(st.integers(2, 12), st.integers(1, 3))
def test_a_plan_measures_all_pairs_of_each_rail_in_both_directions(count: int, rails: int) -> None:
    names = [f"rail{number}" for number in range(rails)]
    ports = {f"node{number}": names for number in range(count)}
    made = plan(ports, Wiring(), 1.0, *BUDGET)
    flows = Counter(pair for one in made.rounds for pair in one)
    assert set(flows.values()) == {1}
    assert flows.total() == made.flows == count * (count - 1) * rails
    assert len(made.rounds) == made.every
    assert all(len({pair.sender for pair in one}) == len(one) for one in made.rounds)


@given(st.integers(2, 30), st.floats(0, 100), st.floats(1e3, 1e12))
def test_a_plan_stays_within_its_budget(count: int, seconds: float, most: float) -> None:
    made = plan({f"node{number}": ("",) for number in range(count)}, Wiring(), 1.0, seconds, most)
    assert made.total_seconds <= seconds
    assert made.total_bytes <= most * (1 + 1e-9)


@given(st.sets(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")).filter(lambda ends: len({*ends}) == 2)))
def test_flows_that_run_again_have_nodes_of_their_own_in_a_round(ends: set[tuple[str, str]]) -> None:
    pairs = [Pair(Port(a), Port(b)) for a, b in sorted(ends)]
    rounds = packed(pairs)
    assert sorted(pair for one in rounds for pair in one) == pairs
    assert all(
        len({end.node for pair in one for end in (pair.sender, pair.receiver)}) == 2 * len(one) for one in rounds
    )
    assert len(rounds) <= max([2 * sum(node in pair for pair in ends) for node in "abcdef"])


def test_a_node_without_a_rail_of_the_others_is_left_out_of_it() -> None:
    made = plan({"a": ("x", "y"), "b": ("x",), "c": ("z",)}, Wiring(), 1.0, *BUDGET)
    assert {pair for one in made.rounds for pair in one} == {
        Pair(Port("a", "x"), Port("b", "x")),
        Pair(Port("b", "x"), Port("a", "x")),
    }


def test_nominal_speeds_limit_the_bytes() -> None:
    made = plan({"a": ("",), "b": ("",)}, Wiring(), 2.0, *BUDGET, speeds={Port("a"): 10.0, Port("b"): 5.0})
    assert (made.flow_bytes, made.total_bytes, made.total_seconds) == (20.0, 40.0, 5.0)
    assert plan({"a": ("",)}, Wiring(), 2.0, *BUDGET).rounds == ()
