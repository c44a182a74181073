"""The topology as hwloc's XML: hwloc reads it, and so does our own reader, with the same facts."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from linkgauge.agent.cli.main import main
from linkgauge.agent.pipeline.diagnose import read_snapshot
from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.exporters.formats.hwloc_xml import as_hwloc_xml
from linkgauge.models.facts.machine import Numa, Package, Pci, Rdma
from linkgauge.models.facts.records import NotChecked
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.inventory.snapshot import Snapshot
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.read import read_text
from tests.support.nodes.described import ALL, NAMES, node


def snapshot_of(name: str) -> Snapshot:
    return read_snapshot(node(name), SOURCES, Site())


@pytest.mark.parametrize("name", [one if one in NAMES else pytest.param(one, marks=pytest.mark.slow) for one in ALL])
def test_our_reader_gives_the_same_facts(name: str) -> None:
    before = snapshot_of(name)
    if not any(one.cpus for one in before.of(Numa).values()):
        pytest.skip("without NUMA nodes hwloc reads nothing")
    records = list(read_text("topology.xml", as_hwloc_xml(before), 0.0))
    assert not [one for one in records if isinstance(one, NotChecked)]
    after = assemble(records, Site(), 0.0, origin="dumps")
    cpus = {key: one.cpus for key, one in before.of(Package).items() if one.cpus}
    assert {key: one.cpus for key, one in after.of(Package).items()} == cpus
    memory = {key: one.memory for key, one in before.of(Numa).items()}
    assert {key: one.memory for key, one in after.of(Numa).items()} == memory
    assert after.of(Rdma).keys() <= before.of(Rdma).keys()
    for key, one in after.of(Pci).items():
        known = before.of(Pci)[key]
        assert (one.parent, one.vendor, one.device) == (known.parent, known.vendor, known.device)
        assert (one.pci_class or 0) >> 8 == (known.pci_class or 0) >> 8
    for kind in ("gpu", "nic"):
        below = {one.key for one in before.functions(kind) if one.parent}
        assert {one.key for one in after.functions(kind)} == below


@pytest.mark.skipif(not shutil.which("lstopo"), reason="lstopo (Debian: hwloc-nox) is not installed")
@pytest.mark.parametrize("name", NAMES)
def test_hwloc_reads_it(name: str, tmp_path: Path) -> None:
    snapshot = snapshot_of(name)
    (path := tmp_path / "topology.xml").write_text(as_hwloc_xml(snapshot))
    command = ["lstopo", "-i", str(path), "--of", "console", "--no-factorize", "--no-collapse", "--filter", "io:all"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    assert done.stderr == ""
    for gpu in snapshot.functions("gpu"):
        assert f"PCI {gpu.key.removeprefix('0000:')} " in done.stdout
    assert done.stdout.count("NUMANode L#") == len(snapshot.of(Numa))
    assert done.stdout.count("PU L#") == sum(len(one.cpus or ()) for one in snapshot.of(Numa).values())


def test_a_machine_without_known_processors(tmp_path: Path) -> None:
    (path := tmp_path / "numbers.txt").write_text("driver 550.54.15\n")
    done = CliRunner().invoke(main, ["topology", "--format", "hwloc-xml", "--from", str(path)])
    assert done.exit_code == 64
    assert "--format hwloc-xml: the NUMA nodes and their processors are not known" in done.stderr
