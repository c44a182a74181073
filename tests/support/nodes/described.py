"""The described nodes of tests/nodes: built, broken and diagnosed."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from functools import cache
from pathlib import Path

import pytest
from msgspec.structs import replace

from linkgauge.agent.pipeline.diagnose import diagnose
from linkgauge.agent.pipeline.registry import SOURCES, measure_nothing
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.capture.recorder import Recording
from linkgauge.probes.host.entries import Entry
from linkgauge.probes.host.recorded import Recorded
from linkgauge.probes.synthetic.build import build

FOLDER = Path(__file__).parents[2] / "nodes"
NAMES = ("desktop", "server-raid", "hgx-h100", "vm-p5")  # nodes with golden files of all outputs
ALL = tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))
# For tests that diagnose each node many times: all nodes but a few are slow.
EACH = tuple(name if name in NAMES else pytest.param(name, marks=pytest.mark.slow) for name in ALL)


@cache
def node(name: str, further: str = "") -> Recorded:
    """A node of the folder. `further` is TOML appended to it."""
    return build((FOLDER / f"{name}.toml").read_text() + further)


def with_entry(recorded: Recorded, path: str, entry: Entry | None) -> Recorded:
    """The node with another entry at the path. None removes the entry."""
    if entry is not None and isinstance(recorded.entries.get(path), str):
        changed = copy(recorded)  # with the same names and links, which need not be found again
        changed.entries = {**recorded.entries, path: entry}
        return changed
    entries = {**recorded.entries, path: entry} if entry is not None else dict(recorded.entries)
    if entry is None:
        del entries[path]
    return Recorded(recorded.taken, entries, recorded.calls)


def report_of(recorded: Recorded, site: Site | None = None) -> Report:
    return diagnose(recorded, SOURCES, measure_nothing, site or Site()).report


def found(report: Report) -> list[tuple[str, str]]:
    return sorted((finding.code, finding.subject) for finding in report.findings)


def missed(report: Report) -> set[tuple[str, str]]:
    return {(one.what, one.subject) for one in report.not_checked}


def files(recorded: Recorded) -> Iterable[str]:
    """The files that are read; other files cannot change the report."""
    host = Recording(recorded)
    for reader in SOURCES:
        list(reader.read(host))
    return [path for path, entry in host.recorded().entries.items() if isinstance(entry, str)]


BROKEN = """
[device.gpu1]
width = 8
[device.nvme3]
width = 2
[device.mlx5_4]
up = false
"""


def steady(report: Report) -> Report:
    """The report without the values that differ between runs."""
    return replace(report, runs=tuple(replace(run, seconds=0.0) for run in report.runs))
