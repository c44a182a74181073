"""Error counters of ports, NVLinks and GPU memory: by time, against limits and against equal devices."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import pytest
from msgspec.structs import replace

from bench.accuracy.edits import measured, set_fields, together
from bench.accuracy.healthy_nodes import HealthyNode, node_of
from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.machine import Node
from linkgauge.models.facts.records import Evidence, Observation
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site

HOUR, DAY = 3600.0, 86400.0
PORT = "mlx5_2/1"
EQUAL = [f"mlx5_{number}/1" for number in range(2, 10)]


UPTIME = 22 * DAY


@cache
def node() -> HealthyNode:
    """A node that has been up for 22 days."""
    plain = node_of("hgx-h100")
    return replace(plain, records=tuple(set_fields(Node, "node", booted=plain.now - UPTIME)(list(plain.records))))


def report(counts: dict[tuple[str, str], float], past: Iterable[tuple[str, str, float, float]] = ()) -> Report:
    """The report with these counters. `past`: subject, quantity, value and age in seconds."""
    edits = [measured(about, quantity, value, node().now) for (about, quantity), value in counts.items()]
    earlier = [
        Observation(
            about=about,
            quantity=quantity,
            unit="count",
            value=value,
            at=node().now - age,
            evidence=Evidence("then", "x"),
        )
        for about, quantity, value, age in past
    ]
    records = together(*edits)(list(node().records))
    return evaluate(assemble(records, Site(), node().now, past=earlier, origin=node().origin))


def summaries(
    counts: dict[tuple[str, str], float], past: Iterable[tuple[str, str, float, float]] = ()
) -> list[tuple[str, str, str]]:
    """The new findings: code, subject and severity."""
    before = {(one.code, one.subject, one.message) for one in evaluate(node().snapshot).findings}
    found = report(counts, past).findings
    return [
        (one.code, one.subject, one.severity) for one in found if (one.code, one.subject, one.message) not in before
    ]


@pytest.mark.parametrize(
    ("quantity", "steps", "expected"),
    [
        ("symbol_error", 200, ("nic-errors", "warning")),
        ("symbol_error", 9, None),
        ("port_rcv_errors", 200, ("nic-errors", "warning")),
        ("link_error_recovery", 20, ("nic-errors", "warning")),
        ("link_error_recovery", 1, None),
        ("local_link_integrity_errors", 3, ("nic-errors", "warning")),
        ("rx_icrc_encapsulated", 200, ("nic-errors", "warning")),
        ("link_downed", 3, ("nic-port-flapping", "warning")),
        ("link_downed", 1, None),
        ("port_xmit_discards", 10_000, ("nic-congestion", "info")),
        ("packet_seq_err", 10_000, ("nic-congestion", "info")),
        ("packet_seq_err", 100, None),
    ],
)
def test_in_the_last_hour(quantity: str, steps: float, expected: tuple[str, str] | None) -> None:
    """Also if the counter is old and high: only the increase counts."""
    found = summaries({(PORT, quantity): 60 + steps}, [(PORT, quantity, 60, 2 * DAY), (PORT, quantity, 60, HOUR)])
    assert found == ([(expected[0], PORT, expected[1])] if expected else [])


def test_errors_of_the_past_are_history() -> None:
    past = [(PORT, "symbol_error", 50_000, 2 * DAY), (PORT, "symbol_error", 50_000, 60)]
    assert summaries({(PORT, "symbol_error"): 50_000}, past) == []


def test_since_boot() -> None:
    hours = UPTIME / HOUR
    assert summaries({(PORT, "symbol_error"): 130 * hours}) == [("nic-errors", PORT, "warning")]
    assert summaries({(PORT, "symbol_error"): 99}) == []


def test_far_above_equal_ports() -> None:
    """A slow rise is below the limit. Seven equal ports without errors show that it is no property of the network."""
    steps, hours = 1000.0, UPTIME / HOUR
    assert steps / hours < 120
    assert summaries({(PORT, "symbol_error"): steps}) == [("nic-errors", PORT, "warning")]
    assert summaries({(port, "symbol_error"): steps for port in EQUAL}) == []


def test_a_reset_is_no_error() -> None:
    past = [(PORT, "link_downed", 200, 2 * HOUR), (PORT, "link_downed", 0, HOUR)]
    assert summaries({(PORT, "link_downed"): 1}, past) == []
    assert summaries({(PORT, "link_downed"): 9}, past) == [("nic-port-flapping", PORT, "warning")]


@pytest.mark.parametrize(
    ("quantity", "full"), [("local_link_integrity_errors", 15), ("link_downed", 255), ("symbol_error", 65535)]
)
def test_a_full_counter_is_unknown(quantity: str, full: float) -> None:
    found = report({(PORT, quantity): full})
    assert [one for one in found.findings if one.subject == PORT] == []
    (gap,) = [one for one in found.not_checked if one.subject == PORT]
    assert gap.what == f"Port.{quantity}"
    assert "reset the counter" in str(gap.how)


def test_the_network_device_of_an_rdma_port() -> None:
    """One port is one finding, with the counters of both."""
    (finding,) = [
        one
        for one in report({(PORT, "symbol_error"): 1e6, ("ib0", "rx_crc_errors"): 1e6}).findings
        if one.subject == PORT
    ]
    assert "symbol errors" in finding.message
    assert "frames with a wrong checksum (CRC) (ib0)" in finding.message


def test_one_nvlink_with_recoveries() -> None:
    """505 recoveries in 22 days are fewer than one in an hour; no other link has any."""
    rare = {("gpu3/nvlink7", "nvlink_recovery"): 505.0, ("gpu3", "nvlink_recovery"): 505.0}
    past = [(about, quantity, value, 1.5 * DAY) for (about, quantity), value in rare.items()]
    subject = node().snapshot.topology.find("gpu3")
    assert subject
    assert summaries(rare) == [("nvlink-errors", subject.id, "warning")]
    assert summaries(rare, past) == []  # none in the last day


def test_corrected_errors_of_one_gpu_of_eight() -> None:
    past = [(f"gpu{number}", "ecc_corrected", 0, DAY) for number in range(8)]
    subject = node().snapshot.topology.find("gpu5")
    assert subject
    assert summaries({("gpu5", "ecc_corrected"): 20_000}, past) == [("gpu-ecc", subject.id, "warning")]
    assert summaries({(f"gpu{number}", "ecc_corrected"): 9_000 for number in range(8)}, past) == []
    assert len(summaries({(f"gpu{number}", "ecc_corrected"): 20_000 for number in range(8)}, past)) == 8
