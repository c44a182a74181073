"""GPUDirect Storage: a gdscheck of several versions, results of gdsio with and without their command, and rubbish."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.gpu import Driver, Gpu
from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import Node, Setting
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, Flow, NotChecked, Observation, Record
from linkgauge.probes.dumps import recognise
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.core.split import means_nothing, split
from linkgauge.probes.dumps.nvidia import gds
from linkgauge.probes.dumps.registry import READERS

SHARED = Path(__file__).parents[3].parent / "shared/data/outputs"
AT = 1795230000.0
CHECK = """\
 GDS release version: 1.13.0.11
 nvidia_fs version:  2.24 libcufile version: 2.12
 Platform: x86_64
 ============
 ENVIRONMENT:
 ============
 CUFILE_LOGGING_LEVEL : TRACE
 =====================
 DRIVER CONFIGURATION:
 =====================
 NVMe P2PDMA        : Unsupported
 NVMe               : Supported
 NVMeOF             : Unsupported
 Userspace RDMA     : Unsupported
 --Mellanox PeerDirect : Enabled
 =====================
 CUFILE CONFIGURATION:
 =====================
 properties.use_pci_p2pdma : false
 properties.use_compat_mode : true
 miscellaneous.api_check_aggressive : false
 =========
 GPU INFO:
 =========
 GPU index 0 NVIDIA H100 80GB HBM3 bar:1 bar size (MiB):131072 supports GDS, IOMMU State: Disabled
 GPU index 1 NVIDIA GH200 120GB supports GDS, IOMMU State: Pass-through or Enabled
 ==============
 PLATFORM INFO:
 ==============
 IOMMU: disabled
 Found ACS enabled for switch 0001:40:01.1
 Found ACS enabled for switch 86:10.0
 Nvidia Driver Info Status: Supported(Nvidia Open Driver Installed)
 Cuda Driver Version Installed:  12080
 Platform: Example 9000, Arch: x86_64(Linux 5.15.0-105-generic)
 Platform verification succeeded
"""
BETA = """\
   GDS release version (beta): 0.9.1.5
   nvidia_fs version:  2.4 libcufile version: 2.3
   cuFile CONFIGURATION:
   NVMe           : Supported
   NVMeOF         : Unsupported
   properties.use_compat_mode : 0
   GPU INFO:
   GPU index 0 Quadro P400 bar:1 bar size (MiB):256 supports GDS
   IOMMU : disabled
   Platform verification succeeded
"""
RESULT = (
    "IoType: READ XferType: GPUD Threads: 4 DataSetSize: 16777216/10485760(KiB) IOSize: 1024(KiB) "
    "Throughput: 6.500000 GiB/sec, Avg_Latency: 588.400000 usecs ops: 16384 total_time 2.461538 secs\n"
)
COMMAND = "[root@node002 src]# /usr/local/cuda/gds/tools/gdsio -f /dev/nvme3n1 -d 2 -w 4 -s 10G -x 0 -I 0 -i 1M\n"


def said(text: str) -> list[Record]:
    assert recognise(text)
    return list(gds.read(Part("log", 1, text, AT)))


def cite(text: str, number: int) -> Evidence:
    return Evidence(f"log:{number}", text.splitlines()[number - 1].strip())


def at(text: str, number: int, *names: str) -> dict[str, Evidence]:
    return dict.fromkeys(names, cite(text, number))


NAME = "NVIDIA H100 80GB HBM3"
path, ACS = "log", "gdscheck finds ACS switched on, and does not say which of its controls"
WHOLE: list[Record] = [
    Setting(key="gds_module", value="nvidia_fs", cites=at(CHECK, 2, "value")),
    Gpu(key="gpu0", name=NAME, bar1=128 << 30, cites=at(CHECK, 25, "name", "bar1")),
    Gpu(key="gpu1", name="NVIDIA GH200 120GB", cites=at(CHECK, 26, "name")),
    Setting(key="iommu", value="disabled", cites=at(CHECK, 30, "value")),
    Setting(key="kernel_module", value="Open Kernel Module", cites=at(CHECK, 33, "value")),
    Driver(key="nvidia", cuda="12.8", cites=at(CHECK, 34, "cuda")),
    Node(key="node", product="Example 9000", kernel="5.15.0-105-generic", cites=at(CHECK, 35, "product", "kernel")),
    NotChecked(
        what="controls of ACS at",
        subject="0001:40:01.1",
        reason=Reason.OTHER,
        path=path,
        detail=ACS,
        how="lspci -vvv, as root",
    ),
    NotChecked(
        what="controls of ACS at",
        subject="0000:86:10.0",
        reason=Reason.OTHER,
        path=path,
        detail=ACS,
        how="lspci -vvv, as root",
    ),
]


def test_a_whole_check() -> None:
    assert said(CHECK) == WHOLE


@pytest.mark.parametrize("text", [CHECK, BETA])
def test_the_rules_around_headings_belong_to_it(text: str) -> None:
    parts = [(family, part) for family, part in split("log", text, AT, READERS) if not means_nothing(part)]
    assert [family and family.name for family, _ in parts] == ["gds"]
    assert list(gds.read(parts[0][1])) == said(text)


def test_an_old_version() -> None:
    assert said(BETA) == [
        Setting(key="gds_module", value="nvidia_fs", cites=at(BETA, 2, "value")),
        Gpu(key="gpu0", name="Quadro P400", bar1=256 << 20, cites=at(BETA, 8, "name", "bar1")),
        Setting(key="iommu", value="disabled", cites=at(BETA, 9, "value")),
    ]


@pytest.mark.parametrize("state", ["enabled", "Pass-through or enabled"])
def test_an_iommu_that_is_on_may_translate_or_not(state: str) -> None:
    told = said(CHECK.replace("IOMMU: disabled", f"IOMMU: {state}"))
    assert not [one for one in told if isinstance(one, Setting) and one.key == "iommu"]
    assert [(one.what, one.subject) for one in told if isinstance(one, NotChecked)][0] == ("IOMMU", "node")


def rate(text: str, number: int, flow: Flow, value: float = 6.5 * (1 << 30)) -> Observation:
    return Observation(
        about=flow, quantity="rate", unit="bytes_per_second", value=value, at=AT, busy=True, evidence=cite(text, number)
    )


@pytest.mark.parametrize(
    ("old", "new", "flow"),
    [
        ("", "", Flow("read", ("nvme3n1", "gpu2"), 1 << 20)),
        ("READ", "RANDREAD", Flow("read", ("nvme3n1", "gpu2"), 1 << 20)),
        ("READ", "WRITE", Flow("write", ("gpu2", "nvme3n1"), 1 << 20)),
        ("GPUD", "CPU_GPU", Flow("read", ("nvme3n1", "gpu2"), 1 << 20, "host")),
        ("GPUD", "CPUONLY", Flow("read", ("nvme3n1", "host"), 1 << 20)),
    ],
)
def test_results_of_a_disk(old: str, new: str, flow: Flow) -> None:
    text = COMMAND + RESULT.replace(old, new)
    assert said(text) == [rate(text, 2, flow), Gpu(key="gpu2")]
    assert [family and family.name for family, _ in split("log", text, AT, READERS)] == ["gds"]


@pytest.mark.parametrize(
    "command",
    ["", "gdsio -f /mnt/file -d 0 -w 4\n", "$ ./gdsio -D /dev/shm -d 0\n", "gdsio -f /dev/sda -d 0 -f /dev/sdb -d 1\n"],
)
def test_results_of_unknown_disks(command: str) -> None:
    """One remark for all of them."""
    told = said(command + RESULT + RESULT)
    assert [(one.what, one.subject) for one in told if isinstance(one, NotChecked)] == [("Observation", "node")]
    assert len(told) == 1


def test_what_says_nothing_of_a_disk() -> None:
    """The page cache; sizes that vary."""
    assert said(COMMAND + RESULT.replace("GPUD", "CPU_CACHED_GPU")) == []
    assert said(COMMAND + RESULT.replace("1024(KiB)", "4-1024-4(KiB)")) == []


def test_cut_at_any_line() -> None:
    lines = CHECK.splitlines(keepends=True)
    for end in range(len(lines)):
        told = list(gds.read(Part("log", 1, "".join(lines[:end]), AT)))
        assert [one for one in WHOLE if one in told] == told


@pytest.mark.parametrize(
    "text", ["", "gdscheck", "GPU INFO:", "ENVIRONMENT:", "======== x", "NVMe : a disk", "IOMMU: on", "the gdsio -x 0"]
)
def test_what_is_no_output(text: str) -> None:
    assert not re.search(gds.BEGIN, text, re.MULTILINE)


lines = [*CHECK.splitlines(keepends=True), *BETA.splitlines(keepends=True), RESULT, COMMAND]
words = st.sampled_from([*lines, "\n", "gdsio -f /dev/a -d 0", "IOMMU: enabled\n", "0.000000"])


@given(st.lists(words | st.text(max_size=10), max_size=40).map("".join) | st.text())
def test_any_text(text: str) -> None:
    for one in gds.read(Part("log", 1, text)):
        assert decode(encode(one)) == one


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded outputs of ../shared are not here")
def test_outputs_of_other_tools_are_none() -> None:
    for path in sorted(SHARED.rglob("*")):
        if path.is_file() and path.stat().st_size < 1 << 20:
            assert not re.search(gds.BEGIN, path.read_text(errors="replace"), re.MULTILINE), path.name
