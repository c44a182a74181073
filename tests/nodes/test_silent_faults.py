"""Faults that once gave `ok`: each is named at its place, or coverage lists the value because nothing supports it.

bench/accuracy/silence makes the faults and judges the reports. tests/models/rules has the numbers of each rule.
"""

from __future__ import annotations

from functools import cache

import pytest

from bench.accuracy.faults import Case
from bench.accuracy.healthy_nodes import node_of
from bench.accuracy.silence.outcomes import broken, cases_of, judged
from linkgauge.models.evaluate import evaluate
from linkgauge.models.report import Report

NAMED = (
    ("hgx-h100", "PCIe width of a gpu: both"),  # a bifurcated slot
    ("hgx-h100", "PCIe speed of a gpu: both"),  # a slot one generation down
    ("hgx-h100", "PCIe width of a gpu: device"),
    ("hgx-h100", "PCIe speed of a gpu: device"),
    ("hgx-h100", "PCIe width of a switch: both"),
    ("hgx-h100", "PCIe speed of a switch: both"),
    ("hgx-h100", "PCIe speed of a nic: trained"),
    ("hgx-h100", "PCIe speed of a nvme: trained"),
    ("hgx-h100", "PCIe width of a nic: both, and the log says so"),
    ("hgx-h100", "removal of a gpu"),
    ("azure-nd-h100-v5", "removal of a nvme"),  # the machine type counts them
    ("azure-nd-h100-v5", "removal of a nic"),
    ("hgx-h100", "removal of a nic"),  # an empty position below equal switches; all: listed
    ("hgx-h100", "counter symbol_error in an hour"),
    ("hgx-h100", "counter port_rcv_errors in an hour"),
    ("hgx-h100", "counter link_downed in an hour"),
    ("hgx-h100", "counter link_error_recovery in an hour"),
    ("hgx-h100", "counter rx_crc_errors in an hour"),
    ("hgx-h100", "counter carrier_changes in an hour"),
    ("hgx-h100", "RDMA port at half rate"),
    ("hgx-h100", "GPU: BAR1 of 256 MiB"),
    ("hgx-h100", "GPU: memory at 80 %"),
    ("hgx-h100", "GPU: busy at 20 % of its clock"),
    ("hgx-h100", "GPU: corrected errors"),
    ("hgx-h100", "counter nvlink_recovery since boot"),
    ("perlmutter", "all links of a GPU down"),
    ("hgx-h100", "NUMA node with 7/8 of its memory"),
    ("hgx-h100", "file system read-only"),
    *(("hgx-h100", f"log: Xid {code} eight times") for code in (48, 62, 64, 74, 79, 94, 95, 109)),
)
LISTED = (
    ("gcp-a3-mega", "removal of a nic"),  # no machine type counts them, and no earlier state
    ("mi300x", "removal of a nvme"),
)


@cache
def healthy(node: str) -> Report:
    return evaluate(broken(node_of(node), []))


@cache
def cases(node: str) -> tuple[Case, ...]:
    return tuple(cases_of(node_of(node), "*", quick=True))


def outcomes(node: str, kind: str) -> set[str]:
    """What the reports say of the fault at one of equal places and at all of them. Nothing else is reported."""
    healthy_node = node_of(node)
    results = [judged(healthy_node, healthy(node), case) for case in cases(node) if case.kind == kind]
    assert results
    assert [result.extra for result in results if result.extra] == []
    return {result.outcome for result in results}


@pytest.mark.parametrize(("node", "kind"), NAMED)
def test_a_fault_is_named(node: str, kind: str) -> None:
    """Where nothing supports the value (a management port, a disk of its own kind), it is listed."""
    found = outcomes(node, kind)
    assert "named" in found
    assert found <= {"named", "info", "uncorroborated"}


@pytest.mark.parametrize(("node", "kind"), LISTED)
def test_a_value_without_evidence_is_listed(node: str, kind: str) -> None:
    assert outcomes(node, kind) == {"uncorroborated"}
