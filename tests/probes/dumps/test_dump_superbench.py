"""Result files of SuperBench: summaries of nodes, results of one process, old and new names, cut, and rubbish."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.records import Evidence, Flow, NotChecked, Observation, Record
from linkgauge.probes.dumps import recognise
from linkgauge.probes.dumps.benchmarks import superbench
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.core.split import split
from linkgauge.probes.dumps.registry import READERS

AT = 1795230000.0
RANKS = tuple(f"rank{rank}" for rank in range(8))
NUMA, PEER = ("numa1", "gpu0"), ("gpu0", "gpu1")
# Each metric, and what it says: a flow and its rate.
SAID: dict[str, tuple[float, Flow, float]] = {
    "mem-bw/H2D_Mem_BW:3": (26.1, Flow("copy", ("host", "gpu3")), 26.1e9),
    "mem-bw/D2H_Mem_BW_GPU:3": (25.5, Flow("copy", ("gpu3", "host")), 25.5e9),
    "mem-bw:pinned/0/h2d_bw:2": (26.0, Flow("copy", ("host", "gpu2")), 26e9),
    "mem-bw/d2h_bw": (24.5, Flow("copy", ("gpu0", "host")), 24.5e9),
    "gpu-copy-bw:perf/cpu_to_gpu0_by_dma_under_numa1_bw:0": (26.2, Flow("copy", NUMA), 26.2e9),
    "gpu-copy-bw/gpu0_to_gpu1_read_by_sm_bw": (262.5, Flow("copy-sm", PEER), 262.5e9),
    "gpu-copy-bw:perf/gpu0_and_gpu1_write_by_dma_bw": (531.0, Flow("copy", PEER, beside=(PEER[::-1],)), 265.5e9),
    "ib-loopback/IB_write_8388608_Avg_3:0": (20000.0, Flow("write", ("IB3", "IB3/1"), 8388608), 20000.0 * 2**20),
    "ib-loopback/IB_read_4096_Avg_0:1": (1000.0, Flow("read", ("IB0/1", "IB0"), 4096), 1000.0 * 2**20),
    "ib-loopback/ib_write_bw_8388608:5:1": (23.9, Flow("write", ("IB5", "IB5/1"), 8388608), 23.9e9),
    "rdma-loopback/ib_send_bw_65536:mlx5_2": (23.0, Flow("send", ("mlx5_2", "mlx5_2/1"), 65536), 23e9),
}
# What says nothing of a link of this node, or not under which conditions.
PASSED: dict[str, Any] = {
    "kernel-launch/event_overhead:0": 0.006,
    "mem-bw/D2D_Mem_BW:0": 1118.0,
    "mem-bw/return_code": 0,
    "gpu-copy-bw:correctness/cpu_to_gpu0_by_dma_under_numa0_bw": 0.9,
    "gpu-copy-bw:perf/gpu0_to_gpu0_by_sm_bw": 680.0,
    "gpu-copy-bw:perf/gpu_all_to_gpu0_write_by_sm_bw": 56.2,
    "nccl-bw:gdr-only/allreduce_8388608_busbw:0": 60.0,
    "nccl-bw/allreduce_0_1:8388608_busbw": 90.0,
    "nvbandwidth/host_to_device_memcpy_ce_sum_bw": 400.0,
    "ib-traffic/ib_write_bw_8388608_cpu-to-cpu_0_0:n1_n2": 24.0,
    "mem-bw/H2D_Mem_BW:9": 0,
    "mem-bw/H2D_Mem_BW:8": None,
    "monitor/gpu_temperature:0": 50,
    "bert_models/pytorch-bert-base/steptime_train_float32": 114.5,
}
NUMBERS = {**PASSED, **{key: value for key, (value, _, _) in SAID.items()}, "node": "sb-01"}
SAMPLES = (json.dumps(NUMBERS), json.dumps(NUMBERS, indent=2))


def read(text: str, file: str = "results-summary.jsonl") -> list[Record]:
    assert recognise(text)
    return list(superbench.read(Part(file, 1, text, AT)))


def rates(told: list[Record]) -> list[tuple[Flow | str, float]]:
    return [(one.about, one.value) for one in told if isinstance(one, Observation)]


def test_metrics_with_their_units_and_directions() -> None:
    told = read(json.dumps(NUMBERS) + "\n")
    assert rates(told) == [(flow, rate) for _, flow, rate in SAID.values()]
    assert told[0] == Observation(
        about=Flow("copy", ("host", "gpu3")),
        quantity="rate",
        unit="bytes_per_second",
        value=26.1e9,
        at=AT,
        busy=True,
        evidence=Evidence("results-summary.jsonl:1", "mem-bw/H2D_Mem_BW:3: 26.1"),
    )
    assert told[-4:] == [Gpu(key=f"gpu{number}") for number in (3, 2, 0, 1)]


def test_the_summary_of_one_node_over_many_lines() -> None:
    """results-summary.json has no name of a node, and is indented."""
    text = json.dumps({key: value for key, value in NUMBERS.items() if key != "node"}, indent=2)
    assert rates(read(text)) == [(flow, rate) for _, flow, rate in SAID.values()]


def test_of_several_nodes_the_first() -> None:
    lines = [json.dumps({**NUMBERS, "node": name}) for name in ("n1", "n2", "n1", "n3")]
    told = read("\n".join(lines))
    assert rates(told) == [(flow, rate) for _, flow, rate in SAID.values()] * 2
    left = [one for one in told if isinstance(one, NotChecked)]
    assert [one.why for one in left] == ["results of 3 nodes, and one is judged here: n1 is, the others are not read"]


def test_collectives_over_as_many_ranks_as_the_ratio_tells() -> None:
    metrics = {}
    for size, algorithm in ((1048576, 7.65), (8589934592, 130.0)):
        metrics[f"nccl-bw:default/allreduce_{size}_busbw:0"] = algorithm * 1.75
        metrics[f"nccl-bw:default/allreduce_{size}_algbw:0"] = algorithm
        metrics[f"nccl-bw:default/allreduce_{size}_time:0"] = 40.0
    metrics["rccl-bw/NCCL_allgather_1024_busbw"] = 0.7
    metrics["rccl-bw/NCCL_allgather_1024_algbw"] = 0.8
    told = [one for one in read(json.dumps(metrics)) if isinstance(one, Observation)]
    assert [(one.about, one.quantity, one.value) for one in told] == [
        (Flow("all_reduce", RANKS, 1048576), "bus_bandwidth", pytest.approx(13.3875e9)),
        (Flow("all_reduce", RANKS, 8589934592), "bus_bandwidth", pytest.approx(227.5e9)),
        (Flow("all_gather", RANKS, 1024), "bus_bandwidth", 0.7e9),
    ]


def test_tables_of_nvbandwidth() -> None:
    metrics = {
        "nvbandwidth/host_to_device_memcpy_ce_cpu0_gpu0_bw": 55.6,
        "nvbandwidth/host_to_device_memcpy_ce_cpu0_gpu1_bw": 27.8,
        "nvbandwidth/device_to_device_memcpy_read_ce_gpu0_gpu1_bw": 390.0,
        "nvbandwidth/device_to_device_bidirectional_memcpy_read_ce_gpu0_gpu1_bw": 390.0,  # of which stream is not told
    }
    assert rates(read(json.dumps(metrics))) == [
        (Flow("copy", ("host", "gpu0")), 55.6e9),
        (Flow("copy", ("host", "gpu1")), 27.8e9),
        (Flow("copy", PEER[::-1]), 390e9),
    ]


def test_disks_by_their_operations_and_blocks() -> None:
    metrics = {
        "disk-benchmark/nvme0n1_seq_read_bs": 131072.0,
        "disk-benchmark/nvme0n1_seq_read_read_iops": 50000.0,
        "disk-benchmark/nvme0n1_rand_readwrite_bs": 4096,
        "disk-benchmark/nvme0n1_rand_readwrite_read_iops": 80000.0,
        "disk-benchmark/nvme0n1_rand_readwrite_write_iops": 20000.0,
        "disk-benchmark/sda_seq_read_read_iops": 10.0,
    }
    here, there = ("nvme0n1", "host"), ("host", "nvme0n1")
    assert rates(read(json.dumps(metrics))) == [
        (Flow("read", here, 131072), 6.5536e9),
        (Flow("read", here, 4096, beside=(there,)), 327.68e6),
        (Flow("write", there, 4096, beside=(here,)), 81.92e6),
    ]


def test_results_of_one_process() -> None:
    """Its rank is in the path."""
    results = [
        {
            "name": "mem-bw",
            "type": "micro",
            "run_count": 2,
            "return_code": 0,
            "raw_data": {"raw_output_htod": ["x"]},
            "result": {"return_code": [0], "H2D_Mem_BW": [25.6, 25.8]},
            "reduce_op": {"H2D_Mem_BW": None},
        },
        None,
    ]
    told = read(json.dumps(results, indent=2), "nodes/n1/benchmarks/mem-bw/rank5/results.json")
    assert rates(told) == [(Flow("copy", ("host", "gpu5")), 25.6e9), (Flow("copy", ("host", "gpu5")), 25.8e9)]


def test_a_file_that_was_cut() -> None:
    text = "\n".join([json.dumps(NUMBERS)] * 2)
    half = read(text[: len(text) * 3 // 4])
    assert rates(half) == [(flow, rate) for _, flow, rate in SAID.values()]
    assert [one.why for one in half if isinstance(one, NotChecked)] == [
        "results-summary.jsonl:2: no whole JSON text begins here: it was cut, or is none"
    ]


@pytest.mark.parametrize("text", ['{"a": 1}', '{"fio version" : "3"}', '{"name": "x", "type": "disk"}', "mem-bw/x: 1"])
def test_what_is_no_result(text: str) -> None:
    assert not re.search(superbench.BEGIN, text, re.MULTILINE)


def test_a_summary_is_one_part() -> None:
    text = json.dumps(NUMBERS, indent=2)
    assert [family and family.name for family, _ in split("f", text, AT, READERS)] == ["superbench"]


values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5), st.lists, max_leaves=5
)
keys = st.sampled_from([*NUMBERS, "name", "result", "type", "disk-benchmark/sda_seq_read_bs"]) | st.text(max_size=9)


@given(st.lists(st.dictionaries(keys, values, max_size=6).map(json.dumps) | st.text(max_size=9)).map("\n".join))
def test_any_text(text: str) -> None:
    for one in superbench.read(Part("f", 1, text)):
        assert decode(encode(one)) == one
