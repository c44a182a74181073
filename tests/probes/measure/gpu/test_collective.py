"""Collectives by a program that prints what nccl-tests print, and what is said where neither it nor NCCL is there."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.agent.pipeline.diagnose import diagnose
from linkgauge.agent.pipeline.registry import SOURCES, measure_nothing
from linkgauge.agent.pipeline.source import Source
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, Flow, NotChecked, Observation, Record
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.host.live import Live
from linkgauge.probes.measure.gpu import collective
from linkgauge.probes.measure.gpu.nccl_algorithm import algorithms
from linkgauge.probes.measure.probe import Probe, Scope
from tests.support.nodes.described import found, node, report_of
from tests.support.programs.processes import children

pytestmark = pytest.mark.slow

SIZES = (64 << 20, 256 << 20, 1 << 30)
OPTIONS = "-b 67108864 -e {} -f 4 -g 2 -n 20 -w 5 -c 0"
GPUS = ("gpu0=0000:53:00.0", "gpu1=0000:64:00.0")
HEAD = """# nThread 1 nGpus 2 minBytes 67108864 maxBytes 1073741824 step: 4(factor) warmup iters: 5 iters: 20
#
# Using devices
#  Rank  0 Group  0 Pid  11 on    node1 device  0 [0000:53:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid  11 on    node1 device  1 [0000:64:00] NVIDIA H100 80GB HBM3
NCCL version 2.27.3+cuda12.9
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""
NEW = "node1:11:42 [0] NCCL INFO AllReduce: {} Bytes -> Algo {} proto SIMPLE channel{{Lo..Hi}}={{0..23}}\n"
OLD = "node1:11:42 [0] NCCL INFO {} Bytes -> Algo {} proto 2 time 170.421005\n"


def table(line: str, algorithm: str, rates: dict[int, float]) -> str:
    rows = (
        f"{line.format(size, algorithm) if line else ''}"
        f"{size:>13} {size // 4:>12}     float     sum      -1   100.00  {rate:6.2f}  {rate:6.2f}    N/A   100.00"
        f"  {rate:6.2f}  {rate:6.2f}    N/A\n"
        for size, rate in rates.items()
    )
    return f"{HEAD}{''.join(rows)}# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 300.1\n"


@pytest.fixture
def tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is searched for programs before all others."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    return tmp_path


def program(folder: Path, text: str, op: str = "all_reduce", then: str = "") -> None:
    (folder / "output").write_text(text)
    script = folder / f"{op}_perf"
    script.write_text(
        f'#!/bin/sh\necho "$NCCL_DEBUG $NCCL_DEBUG_SUBSYS $CUDA_DEVICE_ORDER $*" > {folder}/asked\n'
        f"cat {folder}/output\n{then}\n"
    )
    script.chmod(0o755)


def call(op: str, deadline: float = 60) -> list[Record]:
    return list(Live().call("collective", op, *GPUS, deadline=deadline))


def rates(said: list[Record]) -> list[tuple[Flow, float, str]]:
    return [
        (one.about, one.value, one.evidence.text)
        for one in said
        if isinstance(one, Observation) and one.quantity == "bus_bandwidth" and isinstance(one.about, Flow)
    ]


@pytest.mark.parametrize(
    ("line", "algorithm", "op", "told"),
    [
        (NEW, "RING", "all_reduce", "RING SIMPLE"),
        (OLD, "4", "all_reduce-nvls", "NVLS SIMPLE"),
        (NEW, "NVLS", "all_reduce-nvls", "NVLS SIMPLE"),
    ],
)
def test_the_algorithm_that_ran_is_part_of_the_flow(tests: Path, line: str, algorithm: str, op: str, told: str) -> None:
    program(tests, table(line, algorithm, {67108864: 250.5, 268435456: 300.25}))
    assert rates(call("all_reduce")) == [
        (Flow(op, ("gpu0", "gpu1"), size), rate * 1e9, f"{size} bytes, 20 times, algorithm {told}")
        for size, rate in ((67108864, 250.5), (268435456, 300.25))
    ]
    asked = (tests / "asked").read_text().split(maxsplit=3)
    assert asked[:3] == ["INFO", "TUNING", "PCI_BUS_ID"]
    assert asked[3].strip() == OPTIONS.format(67108864)  # nobody says how much memory is free


def test_an_algorithm_that_is_not_said_is_nobodys_expectation(tests: Path) -> None:
    program(tests, table("", "", {67108864: 250.5}))
    assert rates(call("all_reduce")) == [
        (Flow("all_reduce", ("rank0", "rank1"), 67108864), 250.5e9, "67108864 bytes, 20 times, algorithm unknown")
    ]


def test_an_exchange_has_no_algorithms(tests: Path) -> None:
    program(tests, table("", "", {67108864: 250.5}), "alltoall")
    said = call("alltoall")
    assert [(flow, text) for flow, _, text in rates(said)] == [
        (Flow("alltoall", ("gpu0", "gpu1"), 67108864), "67108864 bytes, 20 times")
    ]
    (moved,) = (one for one in said if isinstance(one, Observation) and one.quantity == "bytes_moved")
    assert moved.value == 2 * 20 * 2 * 0.5 * 67108864


@pytest.mark.parametrize(
    ("text", "then", "why"),
    [
        (
            HEAD,
            "echo 'Test CUDA failure common.cu:1: out of memory'; exit 2",
            "all_reduce: all_reduce_perf: Test CUDA failure common.cu:1: out of memory",
        ),
        ("", "", f"all_reduce: all_reduce_perf {OPTIONS.format(67108864)}: it printed no bandwidth"),
    ],
)
def test_a_program_that_fails(tests: Path, text: str, then: str, why: str) -> None:
    program(tests, text, then=then)
    assert call("all_reduce") == [NotChecked(what="collective", subject="node", reason=Reason.OTHER, detail=why)]


def test_a_program_that_hangs_dies_with_its_deadline(tests: Path) -> None:
    """The program is the child of a child."""
    program(tests, "", then=f"echo $$ > {tests}/pid\nexec sleep 1000")
    (said,) = call("all_reduce", 8)
    assert isinstance(said, NotChecked)
    assert (said.what, said.why) == ("collective", "no answer within 8 s")
    assert children() == []
    assert gone(int((tests / "pid").read_text()))


def gone(pid: int) -> bool:
    """Whether the process ends: it was killed, and dies when it gets a processor."""
    try:
        process = psutil.Process(pid)
        process.wait(timeout=60)
    except psutil.NoSuchProcess:
        return True
    except psutil.TimeoutExpired:
        return process.status() == psutil.STATUS_ZOMBIE
    return True


def test_neither_program_nor_library(tests: Path) -> None:
    (said,) = call("all_reduce")
    assert isinstance(said, NotChecked)
    assert (said.what, said.subject) == ("collective", "node")
    assert said.why.startswith("all_reduce: ")
    assert said.how


@given(st.text())
def test_any_log_says_which_algorithms_or_nothing(text: str) -> None:
    assert algorithms(text) == {}
    assert algorithms(f"{text}\n{NEW.format(4, 'RING')}") == {4: "RING SIMPLE"}


def test_the_last_choice_holds_and_unknown_ones_keep_their_name() -> None:
    log = NEW.format(8, "RING") + NEW.format(8, "Nvls") + OLD.format(16, "9")
    assert algorithms(log) == {8: "NVLS SIMPLE", 16: "9 SIMPLE"}


def planned(name: str) -> list[Probe]:
    report = report_of(node(name))
    ends = frozenset(device.id for device in report.topology.devices)
    assert list(collective.plan(report, Scope(effort="quick", ends=ends))) == []
    return list(collective.plan(report, Scope(effort="full", ends=ends)))


def test_plans_are_over_all_gpus_at_full_effort() -> None:
    reduce, exchange = planned("hgx-h100")
    assert (reduce.args[0], exchange.args[0], len(reduce.args)) == ("all_reduce", "alltoall", 9)
    assert reduce.kinds == {("gpu",) * 8}
    assert max(reduce.seconds, exchange.seconds) <= 15
    assert planned("desktop") == planned("mi300x") == []
    assert sum(probe.seconds for probe in planned("rtx-pro-6000")) <= 60


def evaluated(rate: float, op: str = "all_reduce-nvls", ends: str = "gpu") -> Report:
    flows = [Flow(op, tuple(f"{ends}{number}" for number in range(8)), size) for size in SIZES]
    evidence = Evidence("all_reduce_perf", "busbw")
    said = [
        Observation(
            about=flow,
            quantity="bus_bandwidth",
            unit="bytes_per_second",
            value=rate * share,
            at=1.0,
            busy=True,
            evidence=evidence,
        )
        for flow, share in zip(flows, (0.68, 0.84, 0.95), strict=True)
    ]
    return diagnose(node("hgx-h100"), [*SOURCES, Source("said", lambda _: said)], measure_nothing, Site()).report


def test_bus_bandwidth_is_judged_on_the_curve_at_its_size() -> None:
    """Of 64 MiB two thirds of the peak are as good as nearly all of it of 1 GiB; NVLink SHARP is above the wire."""
    good = evaluated(480e9)
    assert (good.verdict, found(good)) == ("ok", [])
    typical = [level.expected[0].typical for level in good.levels]
    assert typical == sorted(typical)
    assert typical[0] < 0.8 * typical[2]
    slow = evaluated(200e9)
    assert found(slow) == [("bandwidth-low", "gpu0-...-gpu7")]
    assert slow.findings[0].limits == {}
    assert "3 flows that have gpu0-...-gpu7 in common" in slow.findings[0].message
    unknown = evaluated(200e9, "all_reduce", "rank")  # short ones of an algorithm that nobody said
    assert [bool(level.expected) for level in unknown.levels] == [False, False, True]
