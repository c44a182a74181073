"""Collectives inside a domain, over levels, and over fabrics: properties of all of them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.bandwidth import collectives
from linkgauge.models.bandwidth import network_tiers as levels
from linkgauge.models.bandwidth.network_tiers import Level
from linkgauge.models.training import cluster_fabric as fabric
from linkgauge.models.training.cluster_fabric import Node, Switches, fat_tree

OPS = ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast", "reduce", "sendrecv")
sizes = st.floats(1, 1e12)
ranks = st.integers(2, 4096)
rates = st.floats(1e6, 1e13)
trees = st.lists(st.tuples(st.integers(1, 64), rates), min_size=1, max_size=4).map(
    lambda rows: tuple(Level(f"level{number}", *row) for number, row in enumerate(rows))
)
PODS = fat_tree(Node(8, 450e9, 8, 50e9), 128, Switches(64, 50e9, rails=True))


@given(st.sampled_from(OPS), ranks, sizes, rates)
def test_bus_and_algorithm_bandwidth_are_inverse(op: str, many: int, size: float, bus: float) -> None:
    seconds = collectives.time_of(op, many, size, bus)
    assert collectives.bus_bandwidth(op, many, size, seconds) == pytest.approx(bus)
    assert collectives.algorithm_bandwidth(op, many, bus) == pytest.approx(size / seconds)


@given(ranks, sizes, rates)
def test_a_ring_fills_the_link_and_bus_bandwidth_is_its_rate(many: int, size: float, rate: float) -> None:
    seconds = collectives.all_reduce(size, many, rate)
    assert collectives.bus_bandwidth("all_reduce", many, size, seconds) == pytest.approx(rate)
    gathered = collectives.all_gather(size, many, rate)
    assert collectives.bus_bandwidth("all_gather", many, size, gathered) == pytest.approx(rate)
    # nccl-tests count what one rank holds, the formula what all hold.
    exchanged = collectives.all_to_all(size, many, rate)
    assert collectives.bus_bandwidth("alltoall", many, size / many, exchanged) == pytest.approx(rate)


def test_bus_bandwidth_as_nccl_tests_print_it() -> None:
    """Rows of published tables: 8 A100, 17 179 869 184 bytes in 127 997 µs; a p4de pair, 2 GiB in 51 406 µs."""
    assert collectives.bus_bandwidth("all_reduce", 8, 17_179_869_184, 0.127997) / 1e9 == pytest.approx(
        234.89, abs=0.005
    )
    assert collectives.bus_bandwidth("all_reduce", 16, 2_147_483_648, 0.051406) / 1e9 == pytest.approx(78.33, abs=0.005)
    assert collectives.bus_bandwidth("alltoall", 8, 134_217_728, 364.47e-6) / 1e9 == pytest.approx(322.22, abs=0.01)
    assert collectives.bus_factor("all_reduce-nvls", 8) == 1.75
    with pytest.raises(KeyError):
        collectives.bus_factor("allreduce", 8)


@given(ranks, sizes, rates, st.floats(0, 1e-3))
def test_small_messages_cost_steps(many: int, size: float, rate: float, step: float) -> None:
    """A ring has 2(N-1) of them, a tree 2 log2(N), a reduction in the switches two, an AllToAll one for each peer."""
    tiny = 1e-30
    assert collectives.all_reduce(tiny, many, rate, step) == pytest.approx(2 * (many - 1) * step, abs=1e-30)
    assert collectives.all_reduce_tree(tiny, many, rate, step) == pytest.approx(
        2 * math.ceil(math.log2(many)) * step, abs=1e-30
    )
    assert collectives.all_reduce_in_network(tiny, many, rate, step) == pytest.approx(2 * step, abs=1e-30)
    assert collectives.all_to_all(tiny, many, rate, step) == pytest.approx((many - 1) * step, abs=1e-30)
    assert collectives.broadcast(tiny, many, rate, 4, step) == pytest.approx((many + 2) * step, abs=1e-30)
    assert collectives.all_reduce_in_network(size, many, rate) < collectives.all_reduce_tree(size, many, rate)


@given(sizes, ranks, rates)
def test_a_broadcast_in_many_chunks_tends_to_the_rate(size: float, many: int, rate: float) -> None:
    assert collectives.broadcast(size, many, rate, chunks=10**9) == pytest.approx(size / rate, rel=1e-5)
    assert collectives.broadcast(size, many, rate) == pytest.approx((many - 1) * size / rate)


def test_a_collective_of_one_rank_takes_no_time() -> None:
    for op in (
        collectives.all_gather,
        collectives.all_reduce,
        collectives.all_reduce_tree,
        collectives.broadcast,
        collectives.all_reduce_in_network,
        collectives.all_to_all,
    ):
        assert op(1e9, 1, 1e9) == 0


@given(st.integers(1, 64), st.integers(2, 512))
def test_distinct_targets_are_no_more_than_the_choices(chosen: int, many: int) -> None:
    share = collectives.distinct(chosen, many)
    assert 0 < share <= min(chosen / many, 1.0) * (many - 1) / many + 1e-12
    assert collectives.distinct(1, many) == pytest.approx((many - 1) / many / many)


@given(sizes, trees)
def test_one_level_is_a_ring_and_more_are_never_faster(size: float, tree: tuple[Level, ...]) -> None:
    first = tree[0]
    assert levels.all_gather(size, tree[:1]) == pytest.approx(collectives.all_gather(size, first.children, first.rate))
    assert levels.all_to_all(size, tree[:1]) == pytest.approx(collectives.all_to_all(size, first.children, first.rate))
    assert levels.all_gather(size, tree) >= levels.all_gather(size, tree[:-1])


def test_groups_of_a_superpod() -> None:
    """Tensor parallel in the node, its replicas one GPU of each node, stages whole units apart."""
    assert levels.group(PODS, 8) == PODS[:1]
    assert levels.group(PODS, 1024) == PODS
    assert levels.group(PODS, 128, 8) == (Level("leaf", 32, 50e9), Level("spine", 4, 1.6e12))
    assert levels.group(PODS, 4, 256) == (Level("spine", 4, 50e9),)
    assert levels.group(PODS, 4, 2) == (Level("node", 4, 450e9),)
    assert levels.group(PODS, 16) == (PODS[0], Level("leaf", 2, 400e9))
    assert levels.group(PODS, 1) == ()


@given(trees)
def test_the_group_of_all_is_all(tree: tuple[Level, ...]) -> None:
    every = levels.ranks_of(tree)
    assert levels.group(tree, every) == tuple(one for one in tree if one.children > 1)


def test_oversubscription_holds_from_the_spine_on() -> None:
    node = Node(8, 450e9, 8, 50e9)
    flat, tapered = (fat_tree(node, 1152, Switches(64, 50e9, over, rails=True)) for over in (1, 3))
    assert [one.name for one in flat] == ["node", "leaf", "spine", "core"]
    assert fabric.bisection(flat) == 1152 * 400e9 / 2
    assert fabric.bisection(tapered) == pytest.approx(fabric.bisection(flat) / 3)
    assert levels.all_to_all(1.0, tapered) > 2 * levels.all_to_all(1.0, flat)


def test_a_plain_tree_has_smaller_units_than_rails() -> None:
    node = Node(8, 450e9, 8, 50e9)
    assert fat_tree(node, 4, Switches(64, 50e9)) == (Level("node", 8, 450e9), Level("leaf", 4, 400e9))
    assert fat_tree(node, 1, Switches(64, 50e9)) == (Level("node", 8, 450e9),)
    assert fat_tree(node, 128, Switches(64, 50e9))[1:] == (Level("leaf", 4, 400e9), Level("spine", 32, 1.6e12))
    # Ports of half of a switch port's rate: four nodes more below a leaf.
    assert fat_tree(Node(8, 300e9, 8, 25e9), 8, Switches(64, 50e9))[1] == Level("leaf", 8, 200e9)


@pytest.mark.parametrize(
    ("nodes", "switches", "says"),
    [
        (0, Switches(64, 50e9), "0 nodes"),
        (9, Switches(8, 50e9), "does not fit on a leaf"),
        (9, Switches(64, 50e9, 0.5), "1 is none"),
        (10**6, Switches(64, 50e9, rails=True), "three tiers of switches with 64 ports reach 8192"),
    ],
)
def test_fabrics_that_cannot_be(nodes: int, switches: Switches, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        fat_tree(Node(8, 450e9, 8, 50e9), nodes, switches)


@given(st.integers(1, 8192), st.sampled_from([32, 64, 128]), st.booleans(), st.floats(1, 4))
def test_trees_have_room_for_all_nodes_and_no_whole_child_too_many(
    nodes: int, radix: int, rails: bool, over: float
) -> None:
    node = Node(8, 450e9, 8, 50e9)
    try:
        tree = fat_tree(node, nodes, Switches(radix, 50e9, over, rails))
    except ValueError:
        return
    assert levels.ranks_of(tree) >= 8 * nodes
    assert levels.below(tree)[-2] < 8 * nodes or len(tree) == 1
    assert all(one.rate > 0 for one in tree)


def test_tori() -> None:
    """Trainium2, 4 x 4 with 128 GB/s to each neighbour; one ring ("How to Scale Your Model": V / W and V / (4 W))."""
    assert fabric.torus_bisection((4, 4), 128e9) == 4 * 2 * 128e9
    assert fabric.torus_all_gather(1e9, (4, 4), 128e9) == pytest.approx(1e9 * 15 / 16 / (4 * 128e9))
    both_ways = 2 * 45e9
    assert fabric.torus_all_gather(1e9, (1000,), 45e9) == pytest.approx(1e9 / both_ways, rel=2e-3)
    assert fabric.torus_all_to_all(1e9, (16,), 45e9) == pytest.approx(1e9 / 4 / both_ways)
    assert fabric.torus_bisection((2, 1), 1e9) == 1e9
    assert fabric.torus_all_gather(1e9, (1,), 1e9) == fabric.torus_all_to_all(1e9, (1,), 1e9) == 0
