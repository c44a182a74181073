"""Logs of NCCL in the forms that versions give them, whole, cut, in another order, and of rubbish."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.gpu import Gpu, GpuLink
from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import Mount, Nccl, NcclFailure, Port, Rdma, Service, Setting, Transport
from linkgauge.models.facts.records import Evidence, Fact, Observation, Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Finding
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps import recognise
from linkgauge.probes.dumps.benchmarks import nccl, nccl_log
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.core.split import split
from linkgauge.probes.dumps.registry import READERS

SHARED = Path(__file__).parents[3].parent / "shared/data/outputs"
LOG = """\
NCCL version 2.21.5+cuda12.4
n1:100:100 [0] NCCL INFO NCCL_IB_GID_INDEX set by environment to 3.
n1:100:100 [0] NCCL INFO NCCL_P2P_LEVEL set by environment to NVL
n1:100:120 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_bond_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>
n1:100:120 [0] NCCL INFO Using network IB
n1:100:120 [0] NCCL INFO comm 0x55aa rank 0 nranks 4 cudaDev 0 nvmlDev 2 busId 53000 commId 0xabc - Init START
n1:101:121 [1] NCCL INFO comm 0x55ab rank 1 nranks 4 cudaDev 1 nvmlDev 3 busId 1008a010 commId 0xabc - Init START
n2:100:120 [0] NCCL INFO comm 0x55ac rank 2 nranks 4 cudaDev 0 nvmlDev 2 busId 53000 commId 0xabc - Init START
n1:100:120 [0] NCCL INFO NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'
n1:100:120 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 1 'mlx5_bond_1'
n1:100:120 [0] NCCL INFO Channel 00/0 : 0[2] -> 1[3] via P2P/CUMEM/read
n1:101:121 [1] NCCL INFO Channel 01/0 : 1[3] -> 0[2] via SHM/direct/direct
n1:101:121 [1] NCCL INFO Channel 00/0 : 1[3] -> 2[2] [send] via NET/IB/0/GDRDMA
"""


def said(text: str) -> list[Record]:
    assert recognise(text)
    return list(nccl_log.read(Part("log", 1, text)))


def line(number: int, text: str = LOG) -> Evidence:
    return Evidence(f"log:{number}", text.splitlines()[number - 1])


WHOLE = [
    Nccl(
        key="nccl",
        version="2.21.5",
        cuda="12.4",
        network="IB",
        ranks=4,
        cites={"version": line(1), "network": line(5), "ranks": line(6)},
    ),
    Setting(key="NCCL_IB_GID_INDEX", value="3", cites={"value": line(2)}),
    Setting(key="NCCL_P2P_LEVEL", value="NVL", cites={"value": line(3)}),
    Gpu(key="gpu2", address="0000:53:00.0", cites={"address": line(6)}),
    Gpu(key="gpu3", address="0100:8a:01.0", cites={"address": line(7)}),
    Rdma(key="mlx5_0", gpu_direct=True, cites={"gpu_direct": line(9)}),
    Rdma(key="mlx5_bond_1", gpu_direct=False, cites={"gpu_direct": line(10)}),
    Port(key="mlx5_0/1", device="mlx5_0", link_layer="InfiniBand", cites={"link_layer": line(4)}),
    Port(key="mlx5_bond_1/1", device="mlx5_bond_1", link_layer="Ethernet", cites={"link_layer": line(4)}),
    Transport(key="gpu2-gpu3", via=("P2P/CUMEM/read", "SHM/direct/direct"), cites={"via": line(11)}),
]


def test_a_whole_log() -> None:
    assert said(LOG) == WHOLE


@pytest.mark.parametrize("prefix", ["[1,0]<stdout>:", "0: ", "    ", "2026-11-02 03:04:05 | "])
def test_prefixes_of_launchers(prefix: str) -> None:
    told = said("".join(prefix + one for one in LOG.splitlines(keepends=True)))
    assert [(type(one), one.key) for one in told if isinstance(one, Fact)] == [(type(one), one.key) for one in WHOLE]


def test_a_log_cut_at_any_line_says_no_other_things() -> None:
    whole = {(type(one), one.key) for one in WHOLE}
    lines = LOG.splitlines(keepends=True)
    for end in range(1, len(lines)):
        told = said("".join(lines[:end]))
        assert {(type(one), one.key) for one in told if isinstance(one, Fact)} <= whole
    assert said(LOG[:-1]) == WHOLE


@given(st.randoms())
def test_lines_of_ranks_come_in_any_order(order: random.Random) -> None:
    lines = LOG.splitlines(keepends=True)
    tail = lines[8:]
    order.shuffle(tail)
    told = said("".join(lines[:8] + tail))
    assert {(type(one), one.key) for one in told if isinstance(one, Fact)} == {(type(one), one.key) for one in WHOLE}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n [0] NCCL INFO NCCL_IB_DISABLE set to 1\n", [("NCCL_IB_DISABLE", "1")]),
        ("NCCL_P2P_LEVEL set by environment to LOC", [("NCCL_P2P_LEVEL", "LOC")]),
        (
            "NCCL_PROTO set by environment to LL\nNCCL_PROTO set by environment to Simple\n",
            [("NCCL_PROTO", "LL, Simple")],
        ),
        ("NCCL_UNKNOWN set by environment to 1\n", []),
    ],
)
def test_forms_of_variables(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(one.key, one.value) for one in said(text) if isinstance(one, Setting)] == expected


@pytest.mark.parametrize(
    ("text", "key", "error", "size"),
    [
        (
            "include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device",
            "shared memory",
            "No space left on device",
            None,
        ),
        (
            "n:1:2 [0] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-aBc to 9637892 bytes",
            "shared memory",
            None,
            9637892,
        ),
        ("misc/shm.cc:1 NCCL WARN Error while creating shared memory segment x (size 64)", "shared memory", None, 64),
        (
            "ibvwrap.cc:9 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory",
            "memory registration",
            "Cannot allocate memory",
            None,
        ),
        ("n:1:2 [0] NCCL WARN Call to ibv_modify_qp failed with error Bad address", "queue pair", "Bad address", None),
        (
            "n:1:2 [0] NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out, on dev a:1",
            "queue pair",
            "110 Connection timed out, on dev a:1",
            None,
        ),
        (
            "n:1:2 [0] f:3 NCCL WARN NET/OFI Only EFA provider is supported",
            "provider",
            "NET/OFI Only EFA provider is supported",
            None,
        ),
        (
            "n:1:2 [0] NCCL WARN NET/IB : Got completion from peer 10.0.0.2<1> with status=12 opcode=0",
            "completion",
            "status=12",
            None,
        ),
        (
            "n:1:2 [3] enqueue.cc:5 NCCL WARN Cuda failure 719 'unspecified launch failure'",
            "CUDA",
            "unspecified launch failure",
            None,
        ),
        (
            "n:1:2 [3] misc/socket.cc:5 NCCL WARN socketProgress: Connection closed by remote peer n2<1>",
            "connection",
            "Connection closed by remote peer",
            None,
        ),
    ],
)
def test_forms_of_failures(text: str, key: str, error: str | None, size: int | None) -> None:
    cites = {"text": Evidence("log:1", text)}
    assert said(f"{text}\n{text}\n") == [NcclFailure(key=key, error=error, size=size, text=text, count=2, cites=cites)]


def test_logs_before_2_8() -> None:
    """Rings, ranks without addresses, and what is called SHM since then (src/transport/shm.cc of 2.4)."""
    text = """\
n1:7:8 [0] NCCL INFO comm 0x7f00 rank 0 nranks 2 cudaDev 0 nvmlDev 0
n1:7:9 [1] NCCL INFO comm 0x7f01 rank 1 nranks 2 cudaDev 1 nvmlDev 1
n1:7:9 [1] NCCL INFO Ring 00 : 0[0] -> 1[1] via direct shared memory
n1:7:9 [1] NCCL INFO Ring 01 : 0[1a000] -> 1[1b000] via P2P/IPC
"""
    assert said(text)[1:] == [
        Gpu(key="gpu0"),
        Gpu(key="gpu1"),
        Transport(key="gpu0-gpu1", via=("SHM/direct", "P2P/IPC"), cites={"via": line(3, text)}),
    ]


@pytest.mark.parametrize("text", ["", "NCCL", "NCCL INFO", "NCCL_DEBUG=INFO", "$ NCCL_P2P_DISABLE=1 ./all_reduce_perf"])
def test_what_is_no_log(text: str) -> None:
    assert not re.search(nccl_log.BEGIN, text, re.MULTILINE)


words = st.sampled_from(
    [
        *LOG.splitlines(keepends=True),
        "NCCL INFO ",
        "NCCL WARN ",
        "\n",
        " via ",
        "busId ",
        "(size 9",
        "comm 0x1 rank 1",
        "NCCL_PROTO set to ",
        "NET/IB : Using ",
        "[0]mlx5_0:1/IB",
        "Channel 00 : 0[0] -> 1[1] via ",
        "99999999999999999 ",
    ]
)


@given(st.lists(words | st.text(max_size=10), max_size=40).map("".join) | st.text())
def test_any_text(text: str) -> None:
    for one in nccl_log.read(Part("log", 1, text)):
        assert decode(encode(one)) == one


def findings(*facts: Record) -> list[Finding]:
    return list(evaluate(assemble(facts, Site(), 0.0, origin="dumps")).findings)


def told(*facts: Record) -> list[tuple[str, str, str, str]]:
    return [(one.code, one.severity, one.confidence, one.subject) for one in findings(*facts)]


FM = "nvidia-fabricmanager"
GEFORCE, H100 = Gpu(key="gpu0", name="NVIDIA GeForce RTX 4090"), Gpu(key="gpu0", name="NVIDIA H100 80GB HBM3")
EFA = Rdma(key="rdmap16s27", driver="efa")


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ([Setting(key="NCCL_P2P_DISABLE", value="1")], ["nccl-env"]),
        ([Setting(key="NCCL_P2P_DISABLE", value="0")], []),
        ([Setting(key="NCCL_P2P_DISABLE", value="1"), GEFORCE], []),
        (
            [Setting(key="NCCL_P2P_DISABLE", value="1"), GEFORCE, GpuLink(key="gpu0/nvlink0", gpu="gpu0", active=True)],
            ["nccl-env"],
        ),
        ([Setting(key="NCCL_P2P_LEVEL", value="NVL"), H100], []),
        ([Setting(key="NCCL_P2P_LEVEL", value="LOC"), H100], ["nccl-env"]),
        ([Setting(key="NCCL_IB_DISABLE", value="1")], []),
        ([Setting(key="NCCL_IB_DISABLE", value="1"), Rdma(key="mlx5_0")], ["nccl-env"]),
        ([Setting(key="NCCL_IB_DISABLE", value="1"), Rdma(key="rxe0")], []),
        ([Setting(key="NCCL_IB_DISABLE", value="1"), EFA], []),
        ([Setting(key="NCCL_NET", value="Socket"), EFA], ["nccl-env"]),
        ([Setting(key="NCCL_NET_PLUGIN", value="none"), EFA], ["nccl-env"]),
        ([Setting(key="NCCL_NET_PLUGIN", value="none"), Rdma(key="mlx5_0")], []),
        ([Setting(key="NCCL_NET_GDR_LEVEL", value="LOC"), Rdma(key="mlx5_0")], ["nccl-env"]),
        ([Setting(key="NCCL_PROTO", value="LL")], ["nccl-env"]),
        ([Setting(key="NCCL_PROTO", value="LL,LL128,Simple")], []),
        ([Rdma(key="mlx5_0", gpu_direct=False), Rdma(key="mlx5_1", gpu_direct=False)], ["gdr-disabled"]),
        ([Rdma(key="mlx5_0", gpu_direct=True)], []),
        ([Rdma(key="mlx5_0", gpu_direct=False), GEFORCE], []),
    ],
)
def test_what_switches_a_fast_path_off(facts: list[Record], expected: list[str]) -> None:
    assert [one[0] for one in told(*facts)] == expected


FABRIC = [Gpu(key=f"gpu{n}", name="NVIDIA H100 80GB HBM3", nvlinks=18, fabric_state="completed") for n in (0, 1)]
SHM = Transport(key="gpu0-gpu1", via=("SHM/direct/direct",))


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ([*FABRIC, SHM], [("p2p-disabled", "critical", "likely", "gpu0-gpu1")]),
        ([*FABRIC, Transport(key="gpu0-gpu1", via=("P2P/CUMEM",))], []),
        ([*FABRIC, Transport(key="gpu0-gpu1", via=("P2P/IPC", "SHM/direct/direct"))], []),
        ([*FABRIC, SHM, Setting(key="NCCL_P2P_DISABLE", value="1")], [("nccl-env", "critical", "certain", "node")]),
        ([Gpu(key="gpu0"), Gpu(key="gpu1"), SHM], []),
        ([SHM], []),
    ],
)
def test_transports(facts: list[Record], expected: list[tuple[str, str, str, str]]) -> None:
    assert told(*facts) == expected


REGISTRATION = NcclFailure(key="memory registration", error="Cannot allocate memory", text="x")
SPACE = NcclFailure(key="shared memory", error="No space left on device", size=9637888, text="x")


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ([REGISTRATION], ("memlock-low", "critical", "likely", "node")),
        ([REGISTRATION, Setting(key="memlock", value="65536")], ("memlock-low", "critical", "certain", "node")),
        (
            [REGISTRATION, Setting(key="memlock", value="unlimited")],
            ("not-enough-evidence", "info", "possible", "node"),
        ),
        ([SPACE], ("shm-small", "critical", "certain", "node")),
        ([SPACE, Mount(key="/dev/shm", size=64 << 20)], ("shm-small", "critical", "certain", "node")),
        ([NcclFailure(key="shared memory", text="x")], ("shm-small", "critical", "possible", "node")),
        ([NcclFailure(key="provider", text="x")], ("not-enough-evidence", "info", "certain", "node")),
        ([NcclFailure(key="CUDA", text="x")], ("not-enough-evidence", "info", "certain", "node")),
    ],
)
def test_failures(facts: list[Record], expected: tuple[str, str, str, str]) -> None:
    assert told(*facts) == [expected]


def test_a_fabric_that_nobody_set_up() -> None:
    """Error 802 is of NVSwitches; beside cards that have none it is something else. A manager that is down says it."""
    unready = NcclFailure(key="CUDA", error="system not yet initialized", text="x")
    down, runs = ("fabric-manager-down", "critical", "likely", "nvidia-fabricmanager"), Service(key=FM, running=True)
    assert told(unready) == told(unready, Gpu(key="gpu0", name="NVIDIA A100-SXM4-80GB")) == [down]
    assert told(unready, runs) == [("fabric-manager-down", "critical", "possible", "nvidia-fabricmanager")]
    assert told(unready, GEFORCE) == []
    waiting = [Gpu(key=f"gpu{n}", name="NVIDIA H100 80GB HBM3", fabric_state="in progress") for n in (0, 1)]
    (finding,) = findings(unready, *waiting, replace(runs, running=False))
    assert finding.message.startswith("the service nvidia-fabricmanager does not run, and 2 of 2 GPUs")


def test_a_manager_that_does_not_run_and_a_fabric_of_which_nothing_is_told() -> None:
    eight = [Gpu(key=f"gpu{number}", name="NVIDIA H100 80GB HBM3") for number in range(8)]
    assert told(*eight, Service(key=FM, running=False)) == [("fabric-manager-down", "info", "possible", FM)]
    assert told(*eight[:2], Service(key=FM, running=False)) == []


def test_messages() -> None:
    size = Mount(key="/dev/shm", size=64 << 20)
    messages = [one.message for one in findings(REGISTRATION, SPACE, size, Rdma(key="mlx5_0", gpu_direct=False))]
    assert messages == [
        "NCCL does not let mlx5_0 reach GPU memory (GPU Direct RDMA is disabled): each byte to the network goes "
        "through host memory",
        "NCCL could not register memory for RDMA: Cannot allocate memory",
        "NCCL could not create a shared memory segment of 9637888 bytes (9.64 MB): No space left on device; /dev/shm "
        "has 67.1 MB",
    ]


def test_a_log_around_a_table() -> None:
    """As a job with NCCL_DEBUG prints both."""
    heading = "#       size    time   algbw   busbw"
    rows = "  1073741824   8159.5  131.59  230.29\n  2147483648   16215  132.44  231.76\n"
    text = f"# nThread 1 nGpus 8\n{LOG}{heading}\nn1:1:2 [0] NCCL INFO Launch mode Parallel\n{rows}"
    ((family, part),) = split("log", text, 0.0, READERS)
    assert (family and family.name) == "nccl"
    told = list(nccl.read(part))
    assert [one.value for one in told if isinstance(one, Observation)] == [230.29e9, 231.76e9]
    assert [(type(one), one.key) for one in told if isinstance(one, Fact)] == [(type(one), one.key) for one in WHOLE]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded outputs of ../shared are not here")
def test_outputs_of_other_tools_are_no_logs() -> None:
    for path in sorted(SHARED.rglob("*")):
        if path.is_file() and path.stat().st_size < 1 << 20 and not path.name.startswith("nccl_"):
            assert not re.search(nccl_log.BEGIN, path.read_text(errors="replace"), re.MULTILINE), path.name
