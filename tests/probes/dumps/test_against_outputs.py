"""Real outputs of tools: each is recognised and read, or is out of scope."""

from __future__ import annotations

from pathlib import Path

import pytest

from linkgauge.models.facts.records import Record, Run
from linkgauge.probes.dumps.core.split import split
from linkgauge.probes.dumps.registry import READERS

FOLDER = Path(__file__).parents[3].parent / "shared/data/outputs"
FILES = sorted(
    str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*") if path.is_file() and path.name != "SOURCES.tsv"
)
# Files that are not read, with the reason.
OUT_OF_SCOPE = {
    "catalog/dcgm_diag-skus.yaml": "thresholds of DCGM, no output of a machine",
    "catalog/pci.ids": "a list of names, no output of a machine",
    "superbench-tests/ib_traffic_topo_aware_ibstat.txt": "names and GUIDs of ibstat without states and rates",
    # Files that are read and have no record for a healthy machine.
    "kmsg/kmsg.2.peermem.log": "a kernel log without an event that matters",
}


def told(name: str) -> list[Record]:
    text = (FOLDER / name).read_text(encoding="utf-8", errors="replace")
    return [one for family, part in split(name, text, 0.0, READERS) if family for one in family.read(part)]


@pytest.mark.skipif(not FILES, reason="no ../shared beside the project: the outputs are not here")
def test_each_file_is_read_or_known_to_be_out_of_scope() -> None:
    said = {name: told(name) for name in FILES}
    assert [name for name in FILES if not said[name]] == [name for name in FILES if name in OUT_OF_SCOPE]
    assert not any(isinstance(one, Run) for several in said.values() for one in several)


@pytest.mark.skipif(not FILES, reason="no ../shared beside the project: the outputs are not here")
def test_each_thing_that_is_said_cites_a_line_of_the_file() -> None:
    for name in FILES:
        lines = (FOLDER / name).read_text(encoding="utf-8", errors="replace").count("\n") + 1
        for one in told(name):
            for cite in getattr(one, "cites", {}).values():
                file, _, line = cite.source.rpartition(":")
                assert file == name
                assert 1 <= int(line) <= lines
