"""A fault campaign: each file of a node in turn missing, unreadable, or rubbish. Nothing else may change."""

from __future__ import annotations

import re

import pytest
from nodes import files, found, missed, node, report_of, with_entry

from linkgauge.models.catalog import codes
from linkgauge.models.report import Report
from linkgauge.probes.entries import Entry, Refused

FAULTS: dict[str, Entry | None] = {
    "missing": None,
    "unreadable": Refused(5, "Input/output error"),
    "rubbish": "\x7fELF\x02 ~ rubbish \ufffd",
}
# What a kernel has or has not: without the file there is nothing to judge.
OPTIONAL = {"cpu-governor", "cpu-throttled", "host-memory-errors"}
# What hides a link of a GPU or NIC, whether it is there, or whether its port is up: never ok without it.
# Two readers want these: each says so. A call that was made with other arguments then was not recorded.
SHARED = re.compile(r"^proc/(cpuinfo|self/mounts|self/status)$|/nvme\d+/model$|/net/\w+/type$")
VITAL = re.compile(r"/0000:[0-9a-f:.]+/(current_link_width|max_link_width)$|/infiniband/mlx5_\d+/ports/1/state$")


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", ["desktop", "server-raid", "hgx-h100"])
def test_each_file_in_turn(name: str, fault: str) -> None:
    healthy = node(name)
    base = report_of(healthy)
    assert base.verdict == "ok", base.findings
    broken: dict[str, list[str]] = {}
    for path in files(healthy):
        report = report_of(with_entry(healthy, path, FAULTS[fault]))
        if problems := broken_promises(base, report, exactly=fault != "missing" and not SHARED.search(path)):
            broken[path] = problems
    assert broken == {}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_vital_makes_the_verdict_unknown(fault: str) -> None:
    healthy = node("hgx-h100")
    linked = {link.b for link in report_of(healthy).topology.links if link.kind == "pcie"}
    kinds = {device.id: device.kind for device in report_of(healthy).topology.devices}
    judged = 0
    for path in filter(VITAL.search, files(healthy)):
        address = path.split("/")[-2]
        if "/ports/" in path or (address in linked and kinds[address] in ("gpu", "nic", "nvswitch", "upstream-port")):
            report = report_of(with_entry(healthy, path, FAULTS[fault]))
            assert report.verdict == "unknown", path
            judged += 1
    assert judged > 40


def broken_promises(base: Report, report: Report, exactly: bool) -> list[str]:
    """What changed that should not have."""
    problems = [f"source {run.name} broke" for run in report.runs if not run.ok]
    problems += [f"new finding {finding}" for finding in found(report) if finding not in found(base)]
    gone = {code for code, subject in found(base) if (code, subject) not in found(report)}
    problems += [f"{code} is gone and called judged" for code in gone if report.checks.get(code)]
    gaps = missed(report) - missed(base)
    if exactly and len(gaps) > 1:
        problems.append(f"more than one gap: {gaps}")
    unwanted = {code for code in OPTIONAL if code not in report.checks and not exactly}
    lost = {code for code, judged in base.checks.items() if judged and not report.checks.get(code)} - unwanted
    if (lost or gone) and not gaps:
        problems.append(f"not judged without a word: {lost | gone}")
    blind = any(codes()[code].vital for code, judged in report.checks.items() if not judged)
    if report.verdict != ("unknown" if blind else base.verdict):
        problems.append(f"verdict {report.verdict}, blind: {blind}")
    return problems
