"""The recorded outputs of ../shared: the readers that recognise them, and their records."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from linkgauge.models.facts.gpu import Gpu, GpuLink
from linkgauge.models.facts.machine import Disk, Pci, Rdma
from linkgauge.models.facts.records import Fact, Flow, NotChecked, Observation, Record
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.core.reader import Reader
from linkgauge.probes.dumps.core.split import split
from linkgauge.probes.dumps.jobs import nccl_log
from linkgauge.probes.dumps.registry import READERS
from tests.support.dump_samples import AT
from tests.support.paths import SHARED
from tests.support.samples import BY_NAME, read

OUTPUTS = SHARED / "data/outputs"
pytestmark = pytest.mark.skipif(not OUTPUTS.is_dir(), reason="the recorded outputs of ../shared are not here")

# The readers with recorded outputs, and their folders and files. Their expressions match no other file.
BEGIN_IN = {
    "dmon": r"nvidia-smi-capture/.*",
    "fio": r"superbench-tests/disk_.*",
    "gpu_copy": r"superbench-tests/gpu_copy.*",
    "kernel_text": r"kmsg/.*",
    "lspci": r"lspci/.*",
    "nccl_log": r"[\w-]+/nccl_.*",
    "nvbandwidth": r"nvbandwidth/.*",
    "perftest": r"[\w-]+/ib_loopback_all_sizes\.log",  # SuperBench keeps tables of perftest in it
    "rocm_copy": r"superbench-tests/rocm_memory_h2d_bw\.log",
    "rocm_smi": r"rocm-smi/.*",
    "storage_json": r"lsblk/.*",
    "storage_text": r"lsblk/.*",
}
NONE = (
    "amd_smi cpu_text cuda_bandwidth dcgm environment fi_info gds host_text hwloc_text hwloc_xml iperf "
    "net_tools numactl p2p_bandwidth pairwise rdma_tools simple_tools stream sysfs_text"
)


def texts() -> Iterator[tuple[str, str]]:
    for path in sorted(OUTPUTS.rglob("*")):
        if path.is_file() and path.suffix not in (".gz", ".tsv") and path.stat().st_size < 1 << 20:
            yield str(path.relative_to(OUTPUTS)), path.read_text(errors="replace")


@pytest.mark.parametrize("reader", [*BEGIN_IN, *NONE.split()])
def test_no_output_of_another_tool_begins_so(reader: str) -> None:
    begin = re.compile(nccl_log.BEGIN if reader == "nccl_log" else BY_NAME[reader].begin, re.MULTILINE)
    found = [name for name, text in texts() if begin.search(text)]
    assert [name for name in found if not re.fullmatch(BEGIN_IN.get(reader, ""), name)] == []
    assert bool(found) == (reader in BEGIN_IN) or reader in ("storage_text", "perftest", "nccl_log")


@cache
def parts_of(path: Path) -> tuple[tuple[Reader | None, Part], ...]:
    return tuple(split(path.name, path.read_text("utf-8", "replace"), AT, READERS))


def of_reader(path: Path, reader: str) -> list[Record]:
    return [one for family, part in parts_of(path) if family and family.name == reader for one in family.read(part)]


DUMPS = sorted(path for pattern in ("data/outputs/*/*", "cases/*/dumps/*") for path in SHARED.glob(pattern))
of_gpus = pytest.mark.parametrize("path", DUMPS, ids=lambda path: f"{path.parent.name}/{path.name}")


@of_gpus
def test_tables_and_columns_of_nvidia_smi(path: Path) -> None:
    """Each capture has one GPU at rest and one under load. Other outputs have none."""
    for reader in ("smi_csv", "smi_table"):
        found = of_reader(path, reader)
        gpus = [one for one in found if isinstance(one, Gpu) and not one.failure]
        assert path.parents[1] != OUTPUTS or len(gpus) == (2 if path.name.startswith("linux-x86_64") else 0)
        if reader == "smi_csv":
            assert all(one.name and one.name.startswith("NVIDIA") for one in gpus)
            assert not [one for one in found if isinstance(one, NotChecked)]
        else:
            assert all(one.temperature and one.power and one.memory for one in gpus if path.parents[1] == OUTPUTS)


@of_gpus
def test_matrices_and_logs(path: Path) -> None:
    """Every matrix is complete. No other output has a matrix or a log of the fabric manager."""
    found = of_reader(path, "smi_topology")
    named = "topo_m" in path.name or "topo-m" in path.name or "nvidia-smi-capture/linux" in str(path)
    assert bool(found) == named
    assert all(one.cpus and one.numa is not None for one in found if isinstance(one, Gpu))
    assert not [one for one in found if isinstance(one, NotChecked)]
    readers = [family.name if family else "" for family, _ in parts_of(path)]
    assert "fabric_log" not in readers or re.search("fabric.*(log|txt)$", path.name)
    assert "fabric_log" in readers or path.parents[1] != OUTPUTS or "fabric" not in path.name


@pytest.mark.parametrize(
    "path",
    [path for path in DUMPS if "data/outputs" in str(path) or "healthy" in str(path)],
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_links_of_good_machines(path: Path) -> None:
    """All links are up. No output of another tool has a list of links."""
    found = of_reader(path, "smi_nvlink")
    listed = "nvlink" in path.name or path.name.startswith("linux-x86_64")
    assert bool(found) == (listed and path.suffix != ".tsv")
    assert all(one.active for one in found if isinstance(one, GpuLink))
    gpus = [one for one in found if isinstance(one, Gpu) and one.nvlinks_present]
    assert all(one.nvlinks == one.nvlinks_present and one.nvlink_rate == 25e9 for one in gpus)


def test_looks_at_gpus() -> None:
    """Each output gives one Gpu with a name. Outputs of other tools give none."""
    seen = 0
    for path in sorted(OUTPUTS.rglob("*.*")):
        found = of_reader(path, "smi_query") if path.suffix in (".txt", ".xml", ".log", ".md", ".json") else []
        gpus = [one for one in found if isinstance(one, Gpu)]
        assert not found or path.parent.name.startswith("nvidia-smi"), path
        assert not [one for one in found if isinstance(one, NotChecked)], path
        assert all(one.name or one.remap_pending is False for one in gpus), path
        seen += len(gpus)
    assert seen == 18


OUT, BACK = ("nvme0n1", "host"), ("host", "nvme0n1")


@pytest.mark.parametrize(
    ("name", "number", "last"),
    [
        ("fio superbench-tests/disk_performance.log", 2, (Flow("write", BACK, 4096, beside=(OUT,)), 348450387.0)),
        ("gpu_copy superbench-tests/gpu_copy_bw_performance.log", 44, None),
        ("nccl nccl-tests/aws_p4de_2node_allreduce.txt", 29, (16, 78.33e9)),
        ("nccl nccl-tests/aws_p5_1node_allreduce.txt", 32, (8, 483.05e9)),
        ("nccl nccl-tests/stas00_a100_8x_allreduce.txt", 20, (8, 234.89e9)),
        ("nvbandwidth nvbandwidth/nvbandwidth_README_samples_a100.txt", 56 + 8 + 8, None),
        # two sizes are slower than a smaller one
        ("rocm_copy superbench-tests/rocm_memory_h2d_bw.log", 18, (Flow("copy", ("host", "gpu"), 256 << 20), 25.328e9)),
    ],
)
def test_rates(name: str, number: int, last: tuple[Flow | int, float] | None) -> None:
    """The number of rates and the last rate; for collectives, the number of ranks."""
    reader, file = name.split()
    rates = [one for one in read(reader, (OUTPUTS / file).read_text()) if isinstance(one, Observation)]
    assert len(rates) == number
    flows = [one.about for one in rates if isinstance(one.about, Flow)]
    if reader == "nccl":
        assert {(flow.op, len(flow.ends)) for flow in flows} == {("all_reduce", last[0] if last else 0)}
        assert rates[-1].value == (last[1] if last else 0)
    elif last:
        assert (flows[-1], rates[-1].value) == last
    if reader == "fio":
        assert (flows[0], rates[0].value) == (Flow("read", OUT, 4096, beside=(BACK,)), 348743777.0)


@pytest.mark.parametrize(("name", "disks"), [("lsblk.1.json", 17), ("lsblk.3.json", 12)])
def test_disks(name: str, disks: int) -> None:
    told = read("storage_json", (OUTPUTS / "lsblk" / name).read_text())
    assert not any(isinstance(one, NotChecked) for one in told)
    assert len({one.key for one in told if isinstance(one, Disk)}) == disks


def test_functions_of_a_machine() -> None:
    told = read("lspci", (OUTPUTS / "lspci/gpud_lspci-vvv.txt").read_text())
    known = [one for one in told if isinstance(one, Pci)]
    gpus = [one for one in known if one.device == 0x2330]
    assert (len(known), len(gpus)) == (517, 8)
    seen = {(one.speed, one.width, one.bar1, one.bar1_max, one.numa) for one in gpus}
    assert seen <= {(32e9, 16, 128 << 30, 128 << 30, numa) for numa in (0, 1)}
    assert all(one.parent for one in known)


@pytest.mark.parametrize(
    ("name", "gpus", "functions", "adapters"),
    [("nvidiaDGX2", 16, 84, 0), ("24em64t-2n6c2t-pci", 3, 15, 1), ("40intel64-2g2n4c+pcilocality", 0, 37, 1)],
)
def test_machines_of_hwloc(name: str, gpus: int, functions: int, adapters: int) -> None:
    text = (SHARED / f"data/hwloc/{name}.xml").read_text()
    told = [one for one in read("hwloc_xml", text[text.index("<topology") :]) if isinstance(one, Fact)]
    pci = [one for one in told if isinstance(one, Pci)]
    displays = [one for one in pci if one.vendor == 0x10DE and (one.pci_class or 0) >> 16 == 3]
    assert (len(displays), len(pci), len([one for one in told if isinstance(one, Rdma)])) == (gpus, functions, adapters)
    assert all(one.parent for one in pci)
