"""Nodes with GPUs: healthy nodes have no finding, and each broken node has exactly its finding."""

from __future__ import annotations

import pytest

from linkgauge.models.report import Report
from tests.support.nodes.broken_nodes import BROKEN, HGX, Broken
from tests.support.nodes.described import ALL, found, missed, node, report_of

# A virtual machine of a type that no profile describes, with peers: what its made-up PCI tree hides is a warning.
UNDESCRIBED = {"vm-h100": [("pcie-topology-hidden", "node")]}


def complaints(report: Report) -> list[tuple[str, str]]:
    return sorted((one.code, one.subject) for one in report.findings if one.severity != "info")


@pytest.mark.parametrize("name", ALL)
def test_a_healthy_node_is_not_complained_of(name: str) -> None:
    report = report_of(node(name))
    assert complaints(report) == UNDESCRIBED.get(name, [])
    assert report.verdict == "ok" or name in UNDESCRIBED


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_a_broken_node_has_its_finding_and_no_other(broken: Broken) -> None:
    base, report = report_of(node(broken.base)), report_of(node(broken.base, broken.further))
    new = [one for one in found(report) if one not in found(base)]
    assert new == ([broken.finding] if broken.finding else [])
    assert missed(report) - missed(base) == set(broken.gaps)


def test_what_we_cannot_ask_is_unknown() -> None:
    """Nobody says that a GPU is well whose driver was not asked."""
    broken = BROKEN["no library of ours"]
    assert report_of(node(broken.base, broken.further)).verdict == "unknown"


@pytest.mark.parametrize("what", HGX)
def test_one_thing_that_differs_is_one_finding(what: str) -> None:
    further, code, subject, severity = HGX[what]
    base, report = report_of(node("hgx-h100")), report_of(node("hgx-h100", further))
    assert found(base) == []
    assert [(one.code, one.subject, one.severity) for one in report.findings] == [(code, subject, severity)]
    assert all(one.message and one.evidence and one.remedy and one.cause for one in report.findings)
