"""nvidia-bug-report.log: its own reader reads each section, and binary dumps are skipped."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from linkgauge.agent.inputs.resolve import from_paths as input_of
from linkgauge.agent.pipeline.diagnose import read_snapshot
from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.machine import Event, Node, Pci, Service, Setting
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.core.split import is_filler, split
from linkgauge.probes.dumps.registry import READERS
from tests.support.dump_samples import SAMPLES, text_of

TEXT = text_of(SAMPLES / "nvidia/bug_report/report.txt")
# The readers of the sections in their order; bug_report reads the headline of each.
SECTIONS = """
bug_report host_text bug_report bug_report bug_report fabric_log bug_report lspci bug_report lspci_tree bug_report
cpu_text bug_report kernel_text bug_report kernel_text bug_report bug_report bug_report host_text bug_report cpu_text
bug_report bug_report host_text bug_report bug_report bug_report bug_report smi_query bug_report smi_topology
bug_report smi_nvlink bug_report  bug_report
"""


def test_each_section_is_found() -> None:
    """Only the lines between the sections are not read."""
    found = list(split("log", TEXT, 0.0, READERS))
    assert [family.name for family, _ in found if family] == SECTIONS.split()
    assert all(is_filler(part) for family, part in found if family is None)


@pytest.mark.parametrize("packed", [False, True])
def test_what_a_whole_report_says(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / ("nvidia-bug-report.log.gz" if packed else "nvidia-bug-report.log")
    path.write_bytes(gzip.compress(TEXT.encode()) if packed else TEXT.encode())
    source = input_of([str(path)])
    case = read_snapshot(source.host, source.readers, Site())
    node, gpu = case.of(Node)["node"], case.of(Gpu)["gpu0"]
    assert (node.hostname, node.kernel, node.vendor) == ("gpu01", "6.8.0-45-generic", "A.")
    assert (gpu.address, gpu.uuid, gpu.vbios) == (
        "0000:1b:00.0",
        "GPU-01234567-89ab-cdef-0123-456789abcdef",
        "96.00.89.00.01",
    )
    assert case.of(Pci)["0000:1b:00.0"].driver == "nvidia"
    assert case.of(Pci)["0000:1b:00.0"].parent == "0000:1a:01.0"
    assert [event.code for event in case.of(Event).values() if event.kind == "xid"] == [79]
    assert {key: fact.value for key, fact in case.of(Setting).items()} == {
        "iommu": "identity",
        "peer_memory": "nvidia_peermem",
    }
    assert case.of(Service)["nvidia-fabricmanager"].running
    assert [one.what for one in case.not_checked] == ["Gpu.nvlinks"]  # the report lists one link of 18
