"""The matrix of GPUs and NICs: each cell equals nvidia-smi's output on real machines; and its text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.agent.cli.main import main
from linkgauge.agent.pipeline.diagnose import read_snapshot
from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.exporters.text.matrix import as_matrix
from linkgauge.exporters.text.terminal import cells
from linkgauge.models.bandwidth.path_matrix import Matrix, Row, copies, matrix
from linkgauge.models.facts.gpu import Gpu, GpuLink, GpuPair
from linkgauge.models.facts.machine import HostBridge, Numa, Package, Pci, Rdma
from linkgauge.models.facts.records import Fact
from linkgauge.models.graph.path_types import DevicePath
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.read import read_text
from tests.support.nodes.described import node

SHARED = Path(__file__).parents[4] / "shared"
OUTPUTS, CASES = SHARED / "data/outputs/topo-m", SHARED / "cases"
PORT, GPU, NIC = 0x060400, 0x030200, 0x020700


class Machine:
    """A machine of given facts. GPUs and NICs are numbered in the order in which they are added."""

    def __init__(self, *cpus: str) -> None:
        """One package and one NUMA node for each list of processors."""
        lists = [ranges(one) for one in cpus]
        self.facts: list[Fact] = [Package(key=f"package{n}", cpus=one) for n, one in enumerate(lists)]
        self.facts += [Numa(key=f"numa{n}", cpus=one) for n, one in enumerate(lists)]
        self.gpus: list[str] = []
        self._nics = self._buses = self._numa = 0

    def root(self, numa: int) -> str:
        """A host bridge."""
        name, self._numa = f"pci0000:{self._bus():02x}", numa
        self.facts.append(HostBridge(key=name, numa=numa))
        return name

    def port(self, parent: str, pci_class: int = PORT) -> str:
        """A function below another one, on a link of 16 lanes at 32 GT/s."""
        address = f"0000:{self._bus():02x}:00.0"
        self.facts.append(
            Pci(
                key=address,
                parent=parent,
                pci_class=pci_class,
                vendor=0x10DE,
                max_speed=32e9,
                max_width=16,
                numa=self._numa,
            )
        )
        return address

    def switch(self, parent: str, ports: int = 1) -> list[str]:
        """The downstream ports of a switch below `parent`."""
        up = self.port(parent)
        return [self.port(up) for _ in range(ports)]

    def gpu(self, parent: str) -> None:
        address = self.port(parent, GPU)
        self.facts.append(Gpu(key=f"gpu{len(self.gpus)}", address=address, nvlink_rate=25e9))
        self.gpus.append(address)

    def nic(self, parent: str) -> None:
        self.facts.append(Rdma(key=f"mlx5_{self._nics}", address=self.port(parent, NIC)))
        self._nics += 1

    def join(self, a: int, b: int, count: int) -> None:
        """NVLinks between two GPUs."""
        for here, there in ((a, b), (b, a)):
            for number in range(count):
                self.link(here, f"{there}{number:02}", self.gpus[there], "gpu")

    def switched(self, count: int, down: Mapping[int, int] | None = None) -> None:
        """NVLinks of all GPUs to invisible switches. For some GPUs a number of links is down."""
        for gpu in range(len(self.gpus)):
            for number in range(count):
                self.link(gpu, str(number), None, "switch", number >= (down or {}).get(gpu, 0))

    def link(self, gpu: int, number: str, remote: str | None, kind: str, up: bool = True) -> None:
        self.facts.append(
            GpuLink(
                key=f"gpu{gpu}/nvlink{number}",
                gpu=f"gpu{gpu}",
                kind="nvlink",
                active=up,
                remote=remote,
                remote_kind=kind,
            )
        )

    def matrix(self) -> Matrix:
        return matrix(assemble(self.facts, Site(), 100.0))

    def _bus(self) -> int:
        self._buses += 1
        return self._buses - 1


def ranges(text: str) -> tuple[int, ...]:
    """ "0-3,8" """
    ends = (part.partition("-") for part in text.split(","))
    return tuple(n for first, _, last in ends for n in range(int(first), int(last or first) + 1))


def h200() -> Machine:
    """Eight GPUs, each with a NIC under a switch on a root of its own."""
    built = Machine("0-95", "96-191")
    for n in range(8):
        ports = built.switch(built.port(built.root(n // 4)), 2)
        built.gpu(ports[0])
        built.nic(ports[1])
    built.switched(18)
    return built


def perlmutter() -> Machine:
    """Four A100 on four NUMA nodes, the first on the last; four NVLinks between each two."""
    built = Machine(*(f"{16 * n}-{16 * n + 15},{16 * n + 64}-{16 * n + 79}" for n in range(4)))
    for numa in (3, 2, 1, 0):
        built.gpu(built.port(built.root(numa)))
    for a in range(4):
        for b in range(a):
            built.join(a, b, 4)
    return built


def quad_3090() -> Machine:
    """Two root ports on each of two host bridges; bridges join GPUs of one with those of the other."""
    built = Machine("0-23")
    for _ in range(2):
        root = built.root(0)
        built.gpu(built.port(root))
        built.gpu(built.port(root))
    built.join(0, 2, 4)
    built.join(1, 3, 4)
    return built


def gb200() -> Machine:
    """A tray: a PCI domain for each GPU, NVLinks into the rack, C2C to the processors."""
    built = Machine("0-71", "72-143")
    for numa in (0, 0, 1, 1):
        built.gpu(built.port(built.root(numa)))
    built.switched(18)
    built.facts = [replace(one, c2c_links=5, c2c_rate=45e9) if isinstance(one, Gpu) else one for one in built.facts]
    return built


def nested_switches() -> Machine:
    """Two GPUs behind two switches one below the other; two below one switch."""
    built = Machine("0-27,56-83", "28-55,84-111")
    outer = built.switch(built.port(built.root(0)), 2)
    for port in outer:
        built.gpu(built.switch(port)[0])
    for port in built.switch(built.port(built.root(1)), 2):
        built.gpu(port)
    return built


def two_roots() -> Machine:
    built = Machine("0-63")
    for _ in range(2):
        built.gpu(built.port(built.root(0)))
    return built


REAL: Mapping[Path, Callable[[], Machine]] = {
    OUTPUTS / "simllm_vastai_h200_8x.topo-m.txt": h200,
    OUTPUTS / "simllm_perlmutter_a100_4x.topo-m.txt": perlmutter,
    CASES / "quad-3090-nvlink-pairs-healthy/dumps/topo_m.txt": quad_3090,
    CASES / "gb200-tray-topo-healthy/dumps/topo_m.txt": gb200,
    CASES / "vtd-acs-pxb-pix-hang/dumps/topo_m.txt": nested_switches,
    CASES / "acs-amd-root-ports-5880ada-hang/dumps/topo_m.txt": two_roots,
}


@pytest.mark.parametrize(
    "path", REAL, ids=lambda path: path.parent.parent.name if path.parent.name == "dumps" else path.stem
)
def test_real_machines(path: Path) -> None:
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    ours = REAL[path]().matrix()
    rows = [
        re.split(r"[\t ]+", line.strip()) for line in path.read_text().splitlines() if re.match("(GPU|NIC)[0-9]", line)
    ]
    names = [row[0] for row in rows]
    theirs = {
        (row[0], name): cell for row in rows for name, cell in zip(names, row[1:], strict=False) if row[0] != name
    }
    assert {ends: found_path.type for ends, found_path in ours.paths.items()} == theirs
    places = {row[0]: row[len(names) + 1 : len(names) + 3] for row in rows if row[0].startswith("GPU")}
    shown = {
        row.split()[0]: row.split() for row in as_matrix(replace(ours, nics=())).splitlines() if row.startswith("GPU")
    }
    assert {name: shown[name][len(places) + 1 : len(places) + 3] for name in places} == places


TYPES = """\
      GPU0  GPU1  GPU2  NIC0  NIC1  NIC2  CPU Affinity  NUMA Affinity  GPU NUMA ID
GPU0   X    PIX   SYS   PIX   NODE  NODE  0-1,4-5       0              N/A
GPU1  PIX    X    SYS   PIX   NODE  NODE  0-1,4-5       0              N/A
GPU2  SYS   SYS    X    SYS   SYS   SYS   2-3           1              N/A
NIC0  PIX   PIX   SYS    X    NODE  NODE
NIC1  NODE  NODE  SYS   NODE   X    PHB
NIC2  NODE  NODE  SYS   NODE  PHB    X

Legend:
  X    = itself
"""
RATES = """\
      GPU0  GPU1  GPU2  NIC0  NIC1  NIC2
GPU0   X    63.0  63.0  63.0  63.0  63.0
GPU1  63.0   X    63.0  63.0  63.0  63.0
GPU2  63.0  63.0   X    63.0  63.0  63.0
NIC0  63.0  63.0  63.0   X    63.0  63.0
NIC1  63.0  63.0  63.0  63.0   X    -
NIC2  63.0  63.0  63.0  63.0  -      X

Rates: GB/s in one direction
"""
NAMES = """
NIC Legend:
  NIC0: mlx5_0
  NIC1: mlx5_1
  NIC2: mlx5_2

Nearest NIC:
  GPU0: mlx5_0 (PIX)
  GPU1: mlx5_0 (PIX)
  GPU2: mlx5_0, mlx5_1, mlx5_2 (SYS)
"""


def small() -> Machine:
    """A switch with two GPUs and a NIC; two NICs in a chipset; a GPU on the other socket. No NVLink is up."""
    built = Machine("0,1,4,5", "2,3")
    ports = built.switch(built.port(built.root(0)), 3)
    built.gpu(ports[0])
    built.gpu(ports[1])
    built.nic(ports[2])
    chipset = built.root(0)
    built.nic(chipset)
    built.nic(chipset)
    built.gpu(built.port(built.root(1)))
    built.switched(18, {0: 18, 1: 18, 2: 18})
    return built


def test_text() -> None:
    # What a GPU without an NVLink that is up reaches over PCIe, as nvidia-smi shows it.
    types, rates = as_matrix(small().matrix()), as_matrix(small().matrix(), rates=True)
    assert types.startswith(TYPES)
    assert rates.startswith(RATES.rstrip())
    assert types.endswith(NAMES)
    assert rates.endswith(NAMES)


def test_links_that_are_down_do_not_count() -> None:
    built = h200()
    built.facts = [one for one in built.facts if not isinstance(one, GpuLink)]
    built.switched(18, {3: 1, 5: 18})
    paths = built.matrix().paths
    found = [paths["GPU3", name] for name in ("GPU0", "GPU5", "NIC3")]
    assert [path.type for path in found] == ["NV17", "SYS", "PIX"]
    assert [path.rate for path in found] == pytest.approx([425e9, 63.015e9, 63.015e9], rel=1e-3)
    assert paths["GPU5", "GPU4"].type == "NODE"


def test_c2c_carries_what_nvidia_smi_calls_otherwise() -> None:
    built = gb200()
    assert built.matrix().paths["GPU0", "GPU1"] == DevicePath("NV18", 450e9)  # not through their processor
    built.facts = [one for one in built.facts if not isinstance(one, GpuLink)]
    assert built.matrix().paths["GPU0", "GPU3"] == DevicePath("SYS", 225e9)


def test_functions_of_one_card_are_near() -> None:
    built = Machine("0")
    port = built.port(built.root(0))
    built.nic(port)
    second = "0000:02:00.1"
    built.facts += [Pci(key=second, parent=port, pci_class=NIC), Rdma(key="mlx5_1", address=second)]
    assert built.matrix().paths["NIC0", "NIC1"].type == "PIX"


def test_without_a_tree_nvml_is_believed() -> None:
    pairs = [GpuPair(key="gpu0-gpu1", path="INTERNAL"), GpuPair(key="gpu2-gpu10", path="SYS")]
    found = matrix(assemble([*(Gpu(key=f"gpu{n}") for n in (0, 1, 2, 10)), *pairs], Site(), 100.0))
    assert [row.label for row in found.gpus] == ["GPU0", "GPU1", "GPU2", "GPU10"]
    assert {ends: path.type for ends, path in found.paths.items()} == {
        ("GPU0", "GPU1"): "PIX",
        ("GPU1", "GPU0"): "PIX",
        ("GPU2", "GPU10"): "SYS",
        ("GPU10", "GPU2"): "SYS",
    }


def test_a_gpu_that_no_driver_numbers_has_its_address() -> None:
    built = two_roots()
    built.facts = [one for one in built.facts if one.key != "gpu0"]
    assert [row.label for row in built.matrix().gpus] == ["GPU1", "02:00.0"]


def test_nics_of_a_topology_file_without_their_names() -> None:
    """As in topology files of Azure (ndv4-topo.xml, azhpc-images) and AWS (p4d-24xl-topo.xml, aws-ofi-nccl): NICs are
    PCI functions without a network device. A management NIC is none of an RDMA network.
    """
    text = """<system version="1">
  <cpu numaid="0">
    <pci busid="ffff:ff:01.0" class="0x060400" link_speed="16 GT/s" link_width="16">
      <pci busid="0003:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"/>
      <pci busid="0103:00:00.0" class="0x020700" link_speed="16 GT/s" link_width="16"/>
      <pci busid="0104:00:00.0" class="0x020000" vendor="0x1d0f" device="0xefa0"/>
    </pci>
    <pci busid="0105:00:00.0" class="0x020000" vendor="0x8086" device="0x1563"/>
  </cpu>
</system>
"""
    made = matrix(assemble(list(read_text("topo.xml", text, 0.0)), Site(), 0.0, origin="dumps"))
    assert [(row.label, row.name) for row in made.nics] == [("NIC0", "0103:00:00.0"), ("NIC1", "0104:00:00.0")]
    assert {made.paths["0003:00:00.0", nic].type for nic in ("NIC0", "NIC1")} == {"PIX"}


def of_text(text: str) -> Matrix:
    return matrix(assemble(list(read_text("topo.xml", text, 0.0)), Site(), 0.0, origin="dumps"))


def test_functions_of_a_cloud_file_without_classes() -> None:
    """Amazon's files say neither class nor product. What is below one switch is near each other."""
    text = """<system version="1">
  <cpu numaid="0">
    <pci busid="0000:45:00.0">
      <pci busid="0000:4f:00.0" link_speed="32 GT/s PCIe/s" link_width="16"/>
      <pci busid="0000:50:00.0" link_speed="32 GT/s PCIe/s" link_width="16"/>
    </pci>
    <pci busid="0000:56:00.0"/>
  </cpu>
</system>
"""
    made = of_text(text)
    assert [row.name for row in made.nics] == ["0000:4f:00.0", "0000:50:00.0", "0000:56:00.0"]
    assert (made.paths["PCI0", "PCI1"].type, made.paths["PCI0", "PCI2"].type) == ("PIX", "PHB")
    assert "GPUs and NICs, of unknown kind:\n  PCI0: 0000:4f:00.0\n" in as_matrix(made)


def test_links_between_gpus_without_switches() -> None:
    text = "\tGPU0\tGPU1\tGPU2\tCPU Affinity\nGPU0\t X \tNV4\tNV8\t0-15\n"
    text += "GPU1\tNV4\t X \tSYS\t0-15\nGPU2\tNV8\tSYS\t X \t0-15\n"
    made = of_text(text)
    assert {key: path.type for key, path in made.paths.items() if key < key[::-1]} == {
        ("GPU0", "GPU1"): "NV4",
        ("GPU0", "GPU2"): "NV8",
        ("GPU1", "GPU2"): "SYS",
    }


def test_nothing_there() -> None:
    assert as_matrix(Machine("0").matrix()) == "no GPU and no RDMA device\n"


def test_command() -> None:
    node = str(Path(__file__).parents[2] / "golden" / "synthetic_small.capture")
    for options, first in (([], "numa0"), (["--matrix"], "Legend:"), (["--rates"], "Rates:")):
        done = CliRunner().invoke(main, ["topology", "--from", node, *options])
        assert done.exit_code == 0
        assert first in done.output
    refused = CliRunner().invoke(main, ["topology", "--from", node, "--matrix", "--format", "json"])
    assert refused.exit_code == 64


names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)


@st.composite
def matrices(draw: st.DrawFn) -> Matrix:
    """Any number of GPUs and NICs with any names, and some of the paths between them."""
    gpus = tuple(
        Row(f"GPU{n}", f"d{n}", draw(names), draw(st.none() | st.just((0, 1, 5))))
        for n in range(draw(st.integers(0, 20)))
    )
    nics = tuple(Row(f"NIC{n}", f"n{n}", draw(names)) for n in range(draw(st.integers(0, 30))))
    path = st.builds(DevicePath, st.sampled_from(["NV18", "XGMI", "SYS", "PIX"]), st.none() | st.floats(0, 1e13))
    labels = [row.label for row in (*gpus, *nics)] or ["none"]
    paths = draw(st.dictionaries(st.tuples(st.sampled_from(labels), st.sampled_from(labels)), path, max_size=30))
    return Matrix(gpus, nics, paths)


@given(matrices(), st.booleans())
def test_any_matrix_fits_and_has_every_row_and_column(made: Matrix, rates: bool) -> None:
    text = as_matrix(made, rates)
    assert all(cells(line) < 100 and line.isprintable() for line in text.splitlines())
    labels = [row.label for row in (*made.gpus, *made.nics)]
    table = text.partition("Rates:" if rates else "Legend:")[0]
    heads = [
        word for line in table.splitlines() if line.startswith(" ") for word in re.findall("(?:GPU|NIC)[0-9]+", line)
    ]
    assert sorted(heads) == sorted(labels)
    assert set(labels) <= {line.split()[0] for line in table.splitlines() if line.strip()} | (
        {"no"} if not labels else set()
    )


def test_what_copies_reach() -> None:
    """Four A100 joined by four NVLinks each (Perlmutter): 94 GB/s a pair; the last line tells how to ask why."""
    snapshot = read_snapshot(node("perlmutter"), SOURCES, Site())
    reached = copies(snapshot)
    assert {pair: path.type for pair, path in reached.paths.items()} == {
        pair: path.type for pair, path in matrix(snapshot).paths.items()
    }
    assert {round((path.rate or 0) / 1e9, 1) for path in reached.paths.values()} == {93.3}
    text = as_matrix(reached, rates=True, copies=True)
    assert text.splitlines()[1] == "GPU0   X    93.3  93.3  93.3"
    assert "'linkgauge expect GPU0 GPU1' explains a rate" in text
