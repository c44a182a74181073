"""Healthy nodes to break: node descriptions from tests/nodes, and recordings and dumps of real nodes.

The real ones are in ../shared, outside this project. If that folder is absent, there are none.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from bench.accuracy.measured import Measured, healthy, single
from linkgauge.agent.inputs.resolve import from_paths
from linkgauge.agent.pipeline.hang_guard import collect_all
from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.models.facts.records import Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.inventory.snapshot import Snapshot
from linkgauge.models.report import Origin
from linkgauge.models.site.schema import Site
from linkgauge.probes.host.live import Live
from linkgauge.probes.synthetic.build import build

NODES = Path(__file__).parents[2] / "tests/nodes"
SHARED = Path(__file__).parents[3] / "shared"
CLOUDS = ("azure-nd-a100-v4", "azure-nd-h100-v5", "gcp-a3-mega", "oci-h100", "p4d", "p5-slice", "p5-tree", "vm-p5")
DEGRADED = frozenset({"vm-h100"})  # a guest of an unknown type: the hidden PCI tree is a finding
# Node descriptions with one text replaced: other processors, other numbers of GPUs.
CHANGED = (
    ("rtx-pro-6000", "EPYC 9555", "EPYC 9354"),
    ("hgx-h100", "memory = 1_099_511_627_776", "memory = 1_099_511_627_776\nmodel = 'INTEL(R) XEON(R) PLATINUM 8592+'"),
    ("hgx-b200", "sockets = 2", "sockets = 2\nnuma_nodes = 2"),
    ("xe9680", "cores = 56", "cores = 32"),
    ("server-raid", "Gold 6326", "Gold 6338"),
)
# Real nodes whose recording contains the whole machine, or whose dump contains all that a tool prints about the GPUs.
_RECORDS = (
    "data/hwloc/32em64t-2n8c+dax+nvme+mic+dimms.tar.bz2",
    "data/hwloc/32intel64-2p8co2t+8ve.tar.bz2",
    "data/hwloc/40intel64-2g2n4c+pcilocality.tar.bz2",
)
_DUMPS = (
    "data/outputs/lspci/gpud_lspci-vvv.txt",
    "data/outputs/nvidia-smi-capture/linux-x86_64__nvidia-h100-80gb-hbm3__590.48.01.txt",
    "data/outputs/nvidia-smi-capture/linux-x86_64__nvidia-l40s__595.80.txt",
    "data/outputs/nvidia-smi-xml/a100-sxm4-v12.xml",
    "data/outputs/nvidia-smi-xml/a10g.xml",
    "data/outputs/nvlink/simllm_vastai_h200_8x.nvlink-s.txt",
    "data/outputs/nvlink/simllm_perlmutter_a100_4x.nvlink-s.txt",
    "data/nccl_topo/rccl_topo_8p_940.xml",
    "data/nccl_topo/rccl_topo_8p_pcie.xml",
    "data/nccl_topo/azure_ndv4-topo.xml",
    "data/nccl_topo/simllm_vastai_hgx_b200_8x.nccl_topo.xml",
    "data/nccl_topo/simllm_perlmutter_a100_4x.nccl_topo.xml",
    "data/hwloc/nvidiaDGX2.xml",
    "data/hwloc/24em64t-2n6c2t-pci.xml",
    "cases/a100-nvlink-all-up-healthy/dumps",
    "cases/gb200-tray-topo-healthy/dumps",
)


class HealthyNode(Struct, frozen=True, eq=False, dict=True):
    """A healthy node: the records of its sources, and their time."""

    name: str
    records: tuple[Record, ...]
    now: float
    origin: Origin

    @cached_property
    def snapshot(self) -> Snapshot:
        """The snapshot of the node."""
        return assemble(list(self.records), Site(), self.now, origin=self.origin)

    @cached_property
    def rates(self) -> Measured:
        """The rates of copies on the node."""
        return healthy(self.snapshot.topology, single(self.snapshot.topology))


def described() -> Iterator[HealthyNode]:
    """The healthy nodes of tests/nodes, and those with changed texts."""
    for path in sorted(NODES.glob("*.toml")):
        if path.stem not in DEGRADED:
            yield _built(path.stem, path.read_text())
    for name, before, after in CHANGED:
        text = (NODES / f"{name}.toml").read_text()
        if before not in text:
            raise ValueError(f"{name} no longer has {before!r}")
        yield _built(f"{name} with {after.splitlines()[-1]}", text.replace(before, after))


def real() -> Iterator[HealthyNode]:
    """The machines that exist in ../shared."""
    for name in _RECORDS:
        if (SHARED / name).exists():
            yield from _recorded(SHARED / name)
    for name in _DUMPS:
        if (SHARED / name).exists():
            source = from_paths([str(SHARED / name)])
            records = collect_all(source.readers, source.host)
            yield HealthyNode(
                Path(name).parent.name if name.endswith("dumps") else Path(name).name, tuple(records), 2e9, "dumps"
            )


def node_of(name: str) -> HealthyNode:
    """A node of tests/nodes."""
    return _built(name, (NODES / f"{name}.toml").read_text())


def _built(name: str, text: str) -> HealthyNode:
    node = build(text)
    return HealthyNode(name, tuple(collect_all(SOURCES, node)), node.now(), "capture")


def _recorded(archive: Path) -> Iterator[HealthyNode]:
    with TemporaryDirectory() as folder, tarfile.open(archive) as packed:
        trusted: dict[str, Callable[..., object] | str] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        packed.extractall(folder, **trusted)  # type: ignore[arg-type]
        (root,) = Path(folder).iterdir()
        host = Live(str(root))
        yield HealthyNode(archive.name, tuple(collect_all(SOURCES, host)), host.now(), "capture")
