"""Topology files of clouds, and files that NCCL and RCCL wrote: each loads, gives no finding, and has NCCL's paths.

The files lie outside of this project; without them, nothing is compared.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

from linkgauge.agent.inputs.resolve import from_paths
from linkgauge.agent.pipeline.diagnose import diagnose
from linkgauge.agent.pipeline.registry import measure_nothing
from linkgauge.exporters.formats.nccl_xml import as_nccl_xml
from linkgauge.models.facts.machine import Pci
from linkgauge.models.facts.pci_classes import kind_of
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.core.split import split
from linkgauge.probes.dumps.registry import READERS
from tests.support.gpu.nccl_paths import paths
from tests.support.nodes.topo_xml import path_types, snapshot_of

FILES = Path(__file__).parents[3] / "shared/data/nccl_topo"
# GPUs, NICs, and the pairs of each type, both directions; with all functions where the file has no classes.
SHOWN = {
    "aws_g5.48xl-topo.xml": (0, 0, {"SYS": 40, "PHB": 32}),
    "aws_p4d-24xl-topo.xml": (8, 4, {"SYS": 72, "PHB": 36, "PIX": 24}),
    "aws_p5.48xl-topo_2023_official.xml": (0, 0, {"SYS": 512, "PHB": 384, "PIX": 96}),
    "azure_ndv2-topo.xml": (8, 1, {"SYS": 40, "PHB": 32}),
    "azure_ndv4-topo.xml": (8, 8, {"SYS": 192, "PIX": 48}),
    "rccl_topo_8p_90a.xml": (8, 1, {"PHB": 48, "NVL": 24}),
    "rccl_topo_8p_940.xml": (8, 8, {"SYS": 96, "PHB": 72, "NVL": 56, "PXB": 16}),
    "rccl_topo_8p_pcie.xml": (8, 1, {"PHB": 40, "PXB": 32}),
    "simllm_perlmutter_a100_4x.nccl_topo.xml": (4, 4, {"SYS": 36, "NVL": 12, "PHB": 8}),
    "simllm_vastai_hgx_b200_8x.nccl_topo.xml": (8, 0, {"NVL": 56}),
}
BRIDGED = {"rccl_topo_8p_90a.xml": 32}  # pairs that NCCL joins through a third GPU (NVB)

pytestmark = pytest.mark.skipif(not FILES.is_dir(), reason=f"the topology files are not here: {FILES}")


def test_all_files_are_compared() -> None:
    assert {path.name for path in FILES.glob("*.xml")} == set(SHOWN)


@pytest.mark.parametrize("name", SHOWN)
def test_paths_are_those_of_nccl(name: str) -> None:
    """Without detours through other GPUs: our GPUs do not forward. NCCL counts a detour as a path of its own."""
    text = (FILES / name).read_text()
    snapshot, system = snapshot_of(text), ElementTree.fromstring(text)
    theirs = paths(system, bridged=False)
    ours = path_types(snapshot, sorted({end for pair in theirs for end in pair}))
    assert ours == theirs
    kinds = Counter(kind_of(function) for function in snapshot.of(Pci).values())
    assert (kinds["gpu"], kinds["nic"], Counter(ours.values())) == SHOWN[name]
    assert Counter(paths(system).values())["NVB"] == BRIDGED.get(name, 0)


@pytest.mark.parametrize("name", SHOWN)
def test_no_alarm(name: str) -> None:
    """No finding for wrong speeds in the files, and none for missing values."""
    path = FILES / name
    source = from_paths([str(path)])
    report = diagnose(source.host, source.readers, measure_nothing, Site()).report
    assert [(f.code, f.subject) for f in report.findings if f.severity != "info"] == []
    # A cloud's file gives the links that a machine should have, and one of GPUs without evidence shows no state either.
    bare = name.startswith(("aws_", "azure_")) or name == "rccl_topo_8p_90a.xml"
    assert (report.verdict, report.not_checked) == ("unknown" if bare else "ok", ())


@pytest.mark.parametrize("name", SHOWN)
def test_written_again(name: str) -> None:
    """The file that we write has the same content. Reading and writing it again gives the same text."""
    text = (FILES / name).read_text()
    snapshot = snapshot_of(text)
    written = as_nccl_xml(snapshot)
    assert as_nccl_xml(snapshot_of(written)) == written
    ends = [address for address, function in snapshot.of(Pci).items() if kind_of(function) in ("gpu", "nic")]
    theirs = {pair: path for pair, path in paths(ElementTree.fromstring(text)).items() if set(pair) <= set(ends)}
    assert paths(ElementTree.fromstring(written)) == theirs


@pytest.mark.parametrize("name", SHOWN)
def test_no_other_family_takes_it(name: str) -> None:
    text = (FILES / name).read_text()
    assert {family.name for family, _ in split("x", text, 0.0, READERS) if family} == {"nccl_topo"}
