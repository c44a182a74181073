"""The same files give the same report: under --root, as a folder, as an archive, and with dumps beside them."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from linkgauge.agent.inputs.resolve import Input, from_paths, live
from linkgauge.agent.pipeline.diagnose import read_snapshot
from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.machine import Setting
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.host.recorded import dump
from tests.support.nodes.described import ALL, BROKEN, node
from tests.support.nodes.trees import write

TREE = ("sys", "proc", "etc", "dev", "run", "usr", "var", "lib")
LIMITS = "max locked memory       (kbytes, -l) 64\n"
PACKINGS = ("in/n1", "in", "n1.tar")  # the tree, a folder with it, an archive of it
# Some nodes in all packings; each other node in one of them, because a node has thousands of files.
CASES = [
    pytest.param("server-raid", "", PACKINGS),
    pytest.param("hgx-h100", BROKEN, PACKINGS, marks=pytest.mark.slow),
    pytest.param("p5-tree", "", PACKINGS, marks=pytest.mark.slow),
    *(
        pytest.param(name, "", (PACKINGS[number % len(PACKINGS)],), marks=pytest.mark.slow)
        for number, name in enumerate(sorted({*ALL} - {"server-raid", "p5-tree"}))
    ),
]


def report(source: Input) -> Report:
    return evaluate(read_snapshot(source.host, source.readers, Site()))


def shown(one: Report) -> object:
    """What must be equal. The reasons of gaps name the kind of the input."""
    findings = sorted((finding.code, finding.severity, finding.subject, finding.message) for finding in one.findings)
    return one.verdict, one.checks, findings, sorted((gap.what, gap.subject) for gap in one.not_checked)


@pytest.mark.parametrize(("name", "further", "packings"), CASES)
def test_a_tree_in_any_packing(name: str, further: str, packings: tuple[str, ...], tmp_path: Path) -> None:
    entries = node(name, further).entries
    root = tmp_path / "in/n1"
    write(root, {path: entry for path, entry in entries.items() if path.partition("/")[0] in TREE})
    if "n1.tar" in packings:
        # As tar(1) writes by default. Python's default is a further header for each file, as long as the file.
        with tarfile.open(tmp_path / "n1.tar", "w", format=tarfile.GNU_FORMAT) as archive:
            archive.add(root, "n1")
    expected = shown(report(live(str(root))))
    for packing in packings:
        assert shown(report(from_paths([str(tmp_path / packing)]))) == expected


def test_a_capture_a_tree_and_dumps_together(tmp_path: Path) -> None:
    """One report: the machine of the capture, and the dumps. The tree is of another machine, which a gap names."""
    capture, limits, tree = tmp_path / "n1.capture", tmp_path / "limits.txt", tmp_path / "n2"
    recorded = node("desktop")
    capture.write_text(dump(recorded))
    limits.write_text(LIMITS)
    write(tree, {path: entry for path, entry in recorded.entries.items() if path.partition("/")[0] in TREE})
    alone = from_paths([str(capture)])
    both = from_paths([str(capture), str(limits), str(tree)])
    snapshot = read_snapshot(both.host, both.readers, Site())
    assert "memlock" in snapshot.of(Setting)
    assert [gap.subject for gap in snapshot.not_checked if "another machine" in gap.detail] == ["n2/"]
    kept = {finding.code for finding in evaluate(snapshot).findings}
    assert {finding.code for finding in report(alone).findings} <= kept


def test_the_sys_folder_alone(tmp_path: Path) -> None:
    """A folder that is itself /sys is read like a folder with /sys in it."""
    write(
        tmp_path / "n1", {path: entry for path, entry in node("server-raid").entries.items() if path.startswith("sys")}
    )
    alone = from_paths([str(tmp_path / "n1/sys")])
    assert shown(report(alone)) == shown(report(from_paths([str(tmp_path / "n1")])))
    assert report(alone).topology.devices
