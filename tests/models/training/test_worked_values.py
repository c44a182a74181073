"""Worked values of the sources, to the digits that they print.

BOOK is "How to Scale Your Model", its chapter on GPUs unless said; PLAYBOOK the Smol Training Playbook; GUIDE the
Machine Learning Engineering book; BLOOM its guide to training BLOOM-176B. Where a source cuts digits off instead of
rounding, the test does too, and docs/reference/collectives.md names it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from linkgauge.models.bandwidth import collectives
from linkgauge.models.bandwidth import network_tiers as levels
from linkgauge.models.bandwidth.network_tiers import Level
from linkgauge.models.training.cluster_fabric import Node, Switches, bisection, domain, fat_tree, nvswitch_rates
from linkgauge.models.training.roofline import (
    add_time,
    bubble,
    critical_tokens,
    critical_tokens_two_nodes,
    expert_times,
    expert_width,
    intensity,
    matmul_time,
    pipeline_time,
    state_bytes,
    state_traffic,
    tensor_limit,
    tensor_width_two_nodes,
    train_flops,
    train_seconds,
)

H100, B200, A100 = 990e12, 2250e12, 312e12  # FLOP a second, dense bf16
NVLINK4, NVLINK5, NODE = 450e9, 900e9, 400e9  # bytes a second: a GPU, a GPU, the NICs of a node
SUPERPOD = (Level("node", 8, NVLINK4), Level("leaf", 32, NODE), Level("spine", 4, 12.8e12))
DGX_H100 = Node(8, NVLINK4, 8, 50e9)


def usable(tiers: Sequence[Level]) -> float:
    """Bytes per second of an AllGather."""
    return 1 / levels.all_gather(1.0, tiers)


def sharded(size: float, tiers: Sequence[Level], ranks: int, inner: int) -> float:
    """Seconds of a ReduceScatter of an array that is also sharded over `inner` neighbours."""
    return levels.all_gather(size / inner, levels.group(tiers, ranks // inner, inner))


def digits(value: float, places: int = 3) -> float:
    """To so many digits, cut off, as those sources do that do not round."""
    scale = 10.0 ** (places - 1 - math.floor(math.log10(value)))
    return math.floor(value * scale) / scale


def test_1_a_node_of_h100() -> None:
    """BOOK: 4 switches of 64 ports; 6.4 TB/s of switch, 3.6 used, and as much bisection, both directions summed."""
    assert nvswitch_rates(8, NVLINK4, 4, 64, 25e9) == (6.4e12, 3.6e12)
    assert 2 * bisection(SUPERPOD[:1]) == 3.6e12


def test_2_all_gather_of_a_matrix() -> None:
    """BOOK: bf16[4096, 65536] over 8 H100 in 1.04 ms."""
    assert round(collectives.all_gather(4096 * 65536 * 2, 8, NVLINK4) * 1e3, 2) == 1.04


def test_3_all_gather_with_and_without_its_own_part() -> None:
    """BOOK: bf16[1024, 16384] in 75 µs with B/W, in 65 µs with (N-1)/N."""
    size = 1024 * 16384 * 2
    assert round(size / NVLINK4 * 1e6) == 75
    assert round(collectives.all_gather(size, 8, NVLINK4) * 1e6) == 65


def test_4_a_sparse_all_to_all() -> None:
    """BOOK: 4 of 8 entries are non-zero: half of the time."""
    dense = collectives.all_to_all(1e9, 8, NVLINK4)
    assert collectives.all_to_all_sparse(1e9, 8, NVLINK4, chosen=4) == pytest.approx(dense / 2)
    assert dense == pytest.approx(1e9 * 7 / (NVLINK4 * 64))


def test_5_levels_of_a_superpod() -> None:
    """BOOK: 400 GB/s a node at each level; 514, 413 GB/s and 17.1 TB/s, so 413 GB/s."""
    assert fat_tree(DGX_H100, 128, Switches(64, 50e9, rails=True)) == SUPERPOD
    assert [round(usable([one]) / 1e9) for one in SUPERPOD[:2]] == [514, 413]
    assert round(usable(SUPERPOD[2:]) / 1e12, 1) == 17.1
    assert round(usable(SUPERPOD) / 1e9) == 413
    assert 8 * 64 * 50e9 / 2 / 32 == SUPERPOD[2].rate * 4 / 128 == NODE  # half of a unit's ports; all that go up


def test_6_a_reduction_at_the_spine() -> None:
    """BOOK: sharded 256 ways besides and reduced in the switches, 2 D F / 6.4e12: the spine switches' 25.6 TB/s."""
    array = 2 * 8192 * 28672
    spine = [*SUPERPOD[:2], Level("spine", 4, 25.6e12 / 4)]
    in_network = array * 256 / 256 / spine[2].rate  # once over the link of each unit
    assert in_network == array / 6.4e12
    assert sharded(array, spine, 1024, 256) == pytest.approx(in_network * 3 / 4)  # one pass of a ring


def test_6_reductions_of_sharded_arrays() -> None:
    """BOOK: node time B / (W min(Y, D)); fabric time B D / (W_node max(D, Y)), without their (D-1)/D."""
    nodes = [Level("node", 8, NVLINK4), Level("leaf", 1000, NODE)]
    assert sharded(1.0, nodes, 8000, 4) == pytest.approx(max(1 / (NVLINK4 * 4), 1 / NODE), rel=2e-3)
    assert sharded(1.0, nodes, 8000, 64) == pytest.approx(8 / (NODE * 64), rel=2e-3)


@pytest.mark.parametrize(
    ("flops", "rate", "tokens"),
    [(H100, NVLINK4, 2200), (H100, NODE, 2475), (H100, 300e9, 3300), (B200, NVLINK5, 2500), (B200, NODE, 5625)],
)
def test_7_critical_tokens(flops: float, rate: float, tokens: int) -> None:
    """BOOK: in a node of H100 and beyond it, with H800, in a node of B200 and beyond it."""
    assert critical_tokens(flops, rate) == tokens


def test_7_critical_tokens_of_experts_and_of_two_nodes() -> None:
    """BOOK: 128 experts of which 4 are active; two nodes, where 1237.5 is printed as 1237."""
    assert critical_tokens(H100, NODE, experts=128, active=4) == 79_200
    assert int(critical_tokens_two_nodes(H100, NODE)) == 1237


def test_8_tensor_parallelism() -> None:
    """BOOK: F = 28672 gives 13 ways in the node and 11.6 beyond; over two nodes F > 2475 (Y - 8)."""
    assert round(tensor_limit(28672, H100, NVLINK4)) == 13
    assert round(tensor_limit(28672, H100, NODE), 1) == 11.6
    assert tensor_width_two_nodes(16, H100, NODE) == 2475 * (16 - 8)


def test_9_expert_parallelism() -> None:
    """BOOK: both times, and that wide expert parallelism pays from F = 8 C / W_node on."""
    assert expert_width(H100, NODE) == 19_800
    times = expert_times(1e6, 4096, 19_800, 4, 4096, H100, NODE)
    assert times == pytest.approx(
        (4e6 * 4 * 4096 * 19_800 / (4096 * H100), 4e6 * 4096 * 4088 / (NODE * 4096) * 32 / 4096)
    )
    assert times[0] / times[1] == pytest.approx(1.0, rel=2e-3)


def test_10_pipelines() -> None:
    """BOOK: 2 B D / (W m) for each of m + p - 2 hops, about 1.5 times 2 B D / W; the bubble is (p-1) / (m+p-1)."""
    one = 2 * 4e6 * 8192 / NODE
    assert pipeline_time(4e6, 8192, NODE, micro_batches=32, stages=18) == pytest.approx(1.5 * one)
    assert bubble(8, 32) == 7 / 39


def test_11_llama_3_70b() -> None:
    """BOOK: 700 GB, 9 H100; 6.3e24 FLOP, 3.5e6 s, 40 days; 87.5 GB; 976 tokens a GPU; a bound of 309 with 8 stages."""
    assert state_bytes(70e9, 1, 0, gradients=0, optimizer=8) == 700e9
    assert math.ceil(700e9 / 80e9) == 9
    assert train_flops(70e9, 15e12) == 6.3e24
    seconds = train_seconds(70e9, 15e12, 4096, H100, 0.45)
    assert (round(seconds, -5), round(seconds / 86400)) == (3.5e6, 40)
    assert state_bytes(70e9 / 8, 512, 0, gradients=0, optimizer=8) == 87.5e9
    assert int(4e6 / 4096) == 976 < critical_tokens(H100, NODE)
    assert round(critical_tokens(H100, NODE, stages=8)) == 309 < 976


@pytest.mark.parametrize(("gpus", "batch", "tokens"), [(192, 192, 4096), (768, 384, 2048), (3072, 1536, 2048)])
def test_12_rows_of_megatron(gpus: int, batch: int, tokens: int) -> None:
    """BOOK: sequences of 4096; models of 16B, 70B and 314B parameters."""
    assert batch * 4096 / gpus == tokens


def test_13_deepseek_v3_and_llama_3_405b() -> None:
    """BOOK: 30 720 tokens a GPU; "about 1000" where 16e6 tokens on 16 384 GPUs are 977."""
    assert 62_914_560 / 2048 == 30_720
    assert 8 * 16 * 128 == 16_384
    assert round(16e6 / 16_384, -2) == 1000


def test_14_gradients_of_2b_parameters() -> None:
    """GUIDE: 16 GB at 300 and 450 GB/s (0.0356 s printed as 0.035) and over 200 Gb/s; 65.5 TFLOP a GPU in 0.42 s."""
    moved = 2 * 2e9 * 4
    assert moved == 16e9
    assert [digits(moved / rate, 2) for rate in (300e9, 450e9, 25e9)] == [0.053, 0.035, 0.64]
    work = train_flops(2e9, 2048 * 16, recompute=True) / 8
    assert round(work / 1e12, 1) == 65.5
    assert round(work / 156e12, 2) == 0.42
    assert moved / 25e9 > work / 156e12 > moved / 50e9


def test_15_80b_parameters_once() -> None:
    """GUIDE: fp32 over 200 Gb/s and over 1600."""
    size = 80e9 * 4
    assert [collectives.send_receive(size, rate / 8) for rate in (200e9, 1600e9)] == [12.8, 1.6]


def test_16_zero() -> None:
    """GUIDE, after the ZeRO paper: 4, 8 and N times less memory at 1, 1 and 1.5 times the traffic; 16 GB of 1T."""
    whole, many = state_bytes(1e12, 1, 0), 10**6
    assert whole == 16e12
    assert [round(whole / state_bytes(1e12, many, stage)) for stage in (0, 1, 2)] == [1, 4, 8]
    assert whole / state_bytes(1e12, many, 3) == pytest.approx(many)
    assert [state_traffic(stage) for stage in range(4)] == [1, 1, 1, 1.5]
    assert round(state_bytes(1e12, 1024, 3) / 1e9) == 16


def test_17_bloom() -> None:
    """BLOOM: sizes as du prints them, rounded up and in powers of two; the batch is that of its test runs."""
    parameters = 176_247_271_424
    assert math.ceil(parameters * 2 / 2**30) == 329
    assert math.ceil(10 * parameters * (2 + 12) / 2**40) / 10 == 2.3
    assert 48 * 8 == 384
    assert 8 * 32 * 4 == 1024


def test_18_intensities_and_kernels() -> None:
    """BOOK: 295 (cut) and 281 FLOP a byte, fp8 twice that; 8.6 and 15 µs; 3.84 ms (3.846, cut)."""
    assert [int(intensity(*rates)) for rates in ((H100, 3.35e12), (B200, 8e12), (2 * H100, 3.35e12))] == [295, 281, 591]
    times = [matmul_time(rows, 4096, 8192, B200, 8e12) for rows in (64, 512)]
    assert [round(times[0] * 1e6, 1), round(times[1] * 1e6)] == [8.6, 15]
    assert times[0] > 2 * 64 * 4096 * 8192 / B200  # bound by memory
    assert times[1] == 2 * 512 * 4096 * 8192 / B200  # bound by computing
    assert digits(add_time(2**30, 3.35e12)) == 3.84e-3


def test_19_egress_of_nvl72() -> None:
    """BOOK: 4 NICs of 400 Gb/s on each of 18 trays."""
    rack = domain(4, NVLINK5, trays=18, nics=4, nic_rate=50e9)
    assert (rack.gpus, rack.egress) == (72, 3.6e12)


def test_20_mi300x() -> None:
    """GUIDE: each GPU has a link of 64 GB/s to each of 7 peers, and so a pair has a seventh of the board's rate."""
    board = [Level("node", 8, 448e9, mesh=True)]
    assert levels.group(board, 8) == tuple(board)
    assert levels.group(board, 2) == (Level("node", 2, 64e9, mesh=True),)


def test_beyond_one_node_an_all_to_all_falls_by_more_than_four_times() -> None:
    """BOOK: B (N-1) / (N² W) in a node, B (M-1) / (M² W_node) over M of them; of as many bytes a GPU."""
    one = levels.all_to_all(8e9, SUPERPOD[:1])
    two = levels.all_to_all(16e9, [SUPERPOD[0], Level("leaf", 2, NODE)])
    assert one == pytest.approx(8e9 * 7 / (64 * NVLINK4))
    assert two == pytest.approx(16e9 / 4 / NODE)
    assert two / one > 4


def test_two_nodes_are_held_by_the_node() -> None:
    """BOOK: B / 514e9 in each node, B / 800e9 between them."""
    two = [SUPERPOD[0], Level("leaf", 2, NODE)]
    assert round(usable(two) / 1e9) == 514
    assert usable(two[1:]) == 800e9
    assert levels.slowest(two).name == "node"
