"""A fault campaign: each file of a node in turn is missing, unreadable, or rubbish. Nothing else may change."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import cache, partial
from pathlib import PurePosixPath

import pytest
from msgspec.structs import replace

from linkgauge.agent.pipeline.diagnose import diagnose
from linkgauge.agent.pipeline.registry import SOURCES, measure_nothing
from linkgauge.models.catalog import codes
from linkgauge.models.facts.records import Record
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.capture.recorder import Recording
from linkgauge.probes.host.entries import Entry, UnreadableFile
from linkgauge.probes.host.host import Host
from tests.support.nodes.described import files, found, missed, node, report_of, steady, with_entry

pytestmark = pytest.mark.slow

# LINKGAUGE_CAMPAIGN=1 breaks each file. CI breaks each third one, so that it ends in time.
EVERY = int(os.environ.get("LINKGAUGE_CAMPAIGN", "3"))
FAULTS: dict[str, Entry | None] = {
    "missing": None,
    "unreadable": UnreadableFile(5, "Input/output error"),
    "rubbish": "\x7fELF\x02 ~ rubbish \ufffd",
}
# What a kernel has or has not: without the file there is nothing to judge.
OPTIONAL = {"cpu-governor", "cpu-throttled", "cpu-missing", "host-memory-errors"}
# What hides a link of a GPU or NIC, whether it is there, or whether its port is up: never ok without it.
# Two sources read these files, or they give two values, so each reports the fault. The capture has no call with other
# arguments.
SHARED = re.compile(
    r"^proc/(cpuinfo|self/mounts|self/status)$|/nvme\d+/(model|state|transport)$|/net/\w+/type$|/iommu_groups/\d+/type$"
)
VITAL = re.compile(r"/0000:[0-9a-f:.]+/(current_link_width|max_link_width)$|/infiniband/mlx5_\d+/ports/1/state$")


SHARES = 8  # of the files of the largest node, so that several workers share them
WHOLE = {"desktop": 1, "server-raid": 1, "hgx-h100": SHARES}  # number of tests that share the files of a node
NUMBER = re.compile(r"\d+")


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", ["desktop", "hgx-h100"])
def test_a_report_with_kept_records_is_the_report_of_a_whole_reading(name: str, fault: str) -> None:
    """The kind of a file is its name without numbers. Each tenth kind is compared."""
    kinds = {NUMBER.sub("*", path.rpartition("/")[2]): path for path in read_of(name)}
    assert len(kinds) > 50
    for path in list(kinds.values())[::10]:
        whole = report_of(with_entry(node(name), path, FAULTS[fault]))
        assert steady(with_fault(name, fault, path)) == steady(whole), path


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    ("name", "share"), [(name, share) for name, shares in WHOLE.items() for share in range(shares)]
)
def test_each_file_in_turn(name: str, share: int, fault: str) -> None:
    assert broken_by(name, fault, read_of(name)[share :: WHOLE[name]][::EVERY]) == {}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_vital_makes_the_verdict_unknown_of_one_of_each_kind(fault: str) -> None:
    kinds = {(kind, path.rpartition("/")[2]): path for path, kind in vital_files()}
    assert len(kinds) == 9
    for path in kinds.values():
        assert report_of(with_entry(node("hgx-h100"), path, FAULTS[fault])).verdict == "unknown", path


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_vital_makes_the_verdict_unknown(fault: str) -> None:
    vital = vital_files()
    assert len(vital) > 40
    for path, _ in vital:
        assert report_of(with_entry(node("hgx-h100"), path, FAULTS[fault])).verdict == "unknown", path


@cache
def healthy(name: str) -> Report:
    report = report_of(node(name))
    assert report.verdict == "ok", report.findings
    return report


@cache
def places_and_records(name: str) -> dict[str, tuple[frozenset[str], tuple[Record, ...]]]:
    """The places that each source reads or lists on the healthy node, and its records, by the name of the source."""
    found = {}
    for source in SOURCES:
        host = Recording(node(name))
        records = tuple(source.read(host))
        found[source.name] = frozenset(host.recorded().entries), records
    return found


def _same(records: tuple[Record, ...], host: Host) -> Iterator[Record]:
    return iter(records)


def with_fault(name: str, fault: str, path: str) -> Report:
    """The report of the node with the fault at the path. A source that does not read the path, nor a folder above it,
    gives its records of the healthy node: reading them again takes most of the time of a diagnosis.
    """
    touched = {path, *(str(folder) for folder in PurePosixPath(path).parents)} if fault == "missing" else {path}
    readers = []
    for source in SOURCES:
        places, records = places_and_records(name)[source.name]
        kept = places.isdisjoint(touched)
        readers.append(replace(source, read=partial(_same, records)) if kept else source)
    return diagnose(with_entry(node(name), path, FAULTS[fault]), readers, measure_nothing, Site()).report


@cache
def read_of(name: str) -> list[str]:
    return list(files(node(name)))


def vital_files() -> list[tuple[str, str]]:
    """The files without which nothing is known of a link that matters, each with what the link leads to."""
    topology = healthy("hgx-h100").topology
    linked = {link.b for link in topology.links if link.kind == "pcie"}
    kinds = {device.id: device.kind for device in topology.devices}
    vital = []
    for path in filter(VITAL.search, read_of("hgx-h100")):
        address = path.split("/")[-2]
        if "/ports/" in path:
            vital.append((path, "port"))
        elif address in linked and kinds[address] in ("gpu", "nic", "nvswitch", "upstream-port"):
            vital.append((path, kinds[address]))
    return vital


def broken_by(name: str, fault: str, paths: Iterable[str]) -> dict[str, list[str]]:
    """Unexpected changes, by the file with the fault."""
    broken = {}
    for path in paths:
        report = with_fault(name, fault, path)
        exactly = fault != "missing" and not SHARED.search(path)
        if problems := broken_promises(healthy(name), report, exactly):
            broken[path] = problems
    return broken


def broken_promises(base: Report, report: Report, exactly: bool) -> list[str]:
    """Unexpected changes."""
    problems = [f"source {run.name} broke" for run in report.runs if not run.ok]
    problems += [f"new finding {finding}" for finding in found(report) if finding not in found(base)]
    gone = {code for code, subject in found(base) if (code, subject) not in found(report)}
    problems += [f"{code} is gone and called judged" for code in gone if report.checks.get(code)]
    gaps = missed(report) - missed(base)
    if exactly and len(gaps) > 1:
        problems.append(f"more than one gap: {gaps}")
    unwanted = {code for code in OPTIONAL if code not in report.checks and not exactly}
    lost = {code for code, evaluated in base.checks.items() if evaluated and not report.checks.get(code)} - unwanted
    if (lost or gone) and not gaps:
        problems.append(f"not judged without a word: {lost | gone}")
    blind = any(codes()[code].vital for code, evaluated in report.checks.items() if not evaluated)
    if report.verdict != ("unknown" if blind else base.verdict):
        problems.append(f"verdict {report.verdict}, blind: {blind}")
    return problems
