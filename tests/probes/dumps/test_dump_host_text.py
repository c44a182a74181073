"""What is stated in a line each: environment, versions, uname, the command line, modules, limits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.gpu import Driver, Gpu
from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import NcclFailure, Node, Rdma, Setting
from linkgauge.models.facts.records import Fact, Record
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.host import environment, host_text

OUTPUTS = Path(__file__).parents[3].parent / "shared/data/outputs"

STATED = """\
export NCCL_P2P_DISABLE=1
NCCL_IB_GID_INDEX="3"
PATH=/usr/bin
NCCL_NOBODY_KNOWS=1
NCCL_P2P_LEVEL=LOC: works, but slowly
driver 580.82.09
Kernel: 6.16.3-generic
instance type: p5.48xlarge
gpu0 0000:41:00.0
GPU1: 00000000:C1:00.0
all_reduce_perf: hangs between GPU 0 and 1
nccl 2.25.1 (also 2.27.5)
os Ubuntu 24.04.3
"""
HANGS = "all_reduce_perf: hangs between GPU 0 and 1"
STATED_FACTS = [
    Setting(key="NCCL_P2P_DISABLE", value="1"),
    Setting(key="NCCL_IB_GID_INDEX", value="3"),
    Driver(key="nvidia", version="580.82.09"),
    Node(key="node", kernel="6.16.3-generic"),
    Node(key="node", instance="p5.48xlarge"),
    Gpu(key="gpu0", address="0000:41:00.0"),
    Gpu(key="gpu1", address="0000:c1:00.0"),
    NcclFailure(key="hang", error=HANGS, text=HANGS),
]
HOST = """\
Linux node7 6.8.0-90-generic #91-Ubuntu SMP PREEMPT_DYNAMIC x86_64 GNU/Linux
PRETTY_NAME="Ubuntu 24.04.3 LTS"
BOOT_IMAGE=/vmlinuz root=UUID=ab ro intel_iommu=on iommu=pt transparent_hugepage=never numa_balancing=disable
Module                  Size  Used by
nvidia_peermem         16384  0
nvidia              54571008  12 nvidia_peermem
ib_core               446464  3 rdma_ucm
core file size          (blocks, -c) 0
max locked memory       (kbytes, -l) 64
open files                      (-n) 1024
"""
HOST_FACTS = [
    Node(key="node", hostname="node7", kernel="6.8.0-90-generic"),
    Setting(key="iommu", value="identity"),
    Setting(key="transparent_hugepage", value="never"),
    Setting(key="numa_balancing", value="0"),
    Setting(key="peer_memory", value="nvidia_peermem"),
    Setting(key="memlock", value="65536"),
]
BOTH = pytest.mark.parametrize(
    ("family", "text", "facts"), [(environment, STATED, STATED_FACTS), (host_text, HOST, HOST_FACTS)]
)


def said(family: ModuleType, text: str) -> list[Record]:
    return list(family.read(Part("dump", 1, text)))


def plain(told: list[Record]) -> list[Record]:
    return [replace(one, cites={}) if isinstance(one, Fact) else one for one in told]


def begins(family: ModuleType, text: str) -> bool:
    return re.search(family.BEGIN, text, re.MULTILINE) is not None


@BOTH
def test_all_of_it(family: ModuleType, text: str, facts: list[Fact]) -> None:
    assert plain(said(family, text)) == facts


@BOTH
def test_each_fact_cites_its_line(family: ModuleType, text: str, facts: list[Fact]) -> None:
    lines = text.splitlines()
    for one in said(family, text):
        assert isinstance(one, Fact)
        for cite in one.cites.values():
            assert cite.text == lines[int(cite.source.removeprefix("dump:")) - 1].strip()


@BOTH
def test_cut_at_every_line(family: ModuleType, text: str, facts: list[Fact]) -> None:
    lines = text.splitlines()
    for end in range(len(lines) + 1):
        told = plain(said(family, "\n".join(lines[:end])))
        assert told == facts[: len(told)]


@BOTH
def test_the_order_of_lines_does_not_matter(family: ModuleType, text: str, facts: list[Fact]) -> None:
    lines = text.splitlines()
    assert sorted(plain(said(family, "\n".join(lines[::-1]))), key=str) == sorted(facts, key=str)


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        ("gpus: 2x RTX 4090", [Gpu(key="gpu0", name="RTX 4090"), Gpu(key="gpu1", name="RTX 4090")]),
        ("gpus: 8x Something New", []),
        ("gpus: 99x RTX 4090", []),
        ("driver 6.12.12", []),  # amdgpu's
        ("NVIDIA driver version: 535.54", [Driver(key="nvidia", version="535.54")]),
        ("-x NCCL_NET=Socket", [Setting(key="NCCL_NET", value="Socket")]),
        ("NCCL_NET=", []),
        (
            "RuntimeError: Error 802: system not yet initialized",
            [
                NcclFailure(
                    key="CUDA",
                    error="system not yet initialized",
                    text="RuntimeError: Error 802: system not yet initialized",
                )
            ],
        ),
        ("CUDA error: out of memory", []),
        ("# NCCL_P2P_DISABLE=1", []),
        ("memlock=1", []),
    ],
)
def test_single_statements(line: str, fact: list[Fact]) -> None:
    assert plain(said(environment, line)) == fact


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("$ mpirun -np 2 ulimit -l\n8192", [Setting(key="memlock", value="8388608")]),
        ("-l: locked-in-memory size (kbytes)  64\n", [Setting(key="memlock", value="65536")]),  # zsh
        ("ulimit -l\nunlimited\n", [Setting(key="memlock", value="unlimited")]),
        ("max locked memory           (kbytes, -l) unlimited", [Setting(key="memlock", value="unlimited")]),
        ("max locked memory           (furlongs, -l) 7", []),
        (
            "Limit                     Soft Limit           Hard Limit           Units     \n"
            "Max locked memory         8388608              unlimited            bytes     \n",
            [Setting(key="memlock", value="8388608")],
        ),
        (
            "[n1:7:0:7]       ib_log.c:246  UCX  ERROR mlx5_0: ibv_create_cq() failed: Cannot allocate memory. Please "
            "set max locked memory (ulimit -l) to 'unlimited' (current: 64 kbytes)",
            [Setting(key="memlock", value="65536"), Rdma(key="mlx5_0")],
        ),
        ("root=/dev/sda1 intel_iommu=on quiet", [Setting(key="iommu", value="DMA")]),
        ("root=/dev/sda1 iommu.passthrough=1", [Setting(key="iommu", value="identity")]),
        ("root=/dev/sda1 amd_iommu=on quiet", []),
        ("nvidia_fs             327680  0", [Setting(key="gds_module", value="nvidia_fs")]),
    ],
)
def test_limits_modules_and_the_command_line(text: str, fact: list[Fact]) -> None:
    assert begins(host_text, text)
    assert plain(said(host_text, text)) == fact


@pytest.mark.parametrize(
    "line",
    [
        "",
        "NCCL version 2.18.3+cuda12.1",
        "node1:12:12 [0] NCCL INFO NCCL_P2P_LEVEL set by environment to LOC",
        "[    0.000000] kernel: 1.2",
        "driver",
        "the kernel 6.1 is old",
        "GPU 00000000:41:00.0",
        "nvidia-smi 535.54",
        "Driver Version                            : 535.104.05",
        "CUDA Version: 12.2",
        "memlock unlimited",
    ],
)
def test_what_is_no_beginning(line: str) -> None:
    assert not begins(environment, line)
    assert not begins(host_text, line)


def words(text: str) -> st.SearchStrategy[str]:
    parts = [
        *text.splitlines(keepends=True),
        "\n",
        "NCCL_",
        "=",
        "'",
        '"',
        "ulimit -l\n",
        "(kbytes, -l)",
        "99x ",
        "gpu",
    ]
    return st.lists(st.sampled_from(parts) | st.text(max_size=6), max_size=30).map("".join) | st.text()


def check_any(family: ModuleType) -> Callable[[str], None]:
    def check(text: str) -> None:
        begins(family, text)
        for one in said(family, text):
            assert isinstance(one, Fact)
            assert decode(encode(one)) == one

    return check


@given(words(STATED))
def test_any_statement(text: str) -> None:
    check_any(environment)(text)


@given(words(HOST))
def test_any_text_of_a_host(text: str) -> None:
    check_any(host_text)(text)


def others() -> Iterator[Path]:
    for path in sorted(OUTPUTS.rglob("*")) if OUTPUTS.is_dir() else ():
        if path.is_file() and path.suffix != ".tsv":
            yield path


@pytest.mark.skipif(not OUTPUTS.is_dir(), reason="the recorded outputs of ../shared are not here")
@pytest.mark.parametrize("family", [environment, host_text])
def test_no_other_tool_begins_so(family: ModuleType) -> None:
    assert [path.name for path in others() if begins(family, path.read_text(errors="replace"))] == []
