"""One node: what stands, its hierarchy expected against observed, trained state, traffic, errors."""

from __future__ import annotations

from board import NODES, Row, Tile, board, choices, of_nodes
from grafana_foundation_sdk.models.dashboard import Dashboard
from panels import LONGER, RED, VERDICTS, WHOLE, YELLOW, bars, lines, number, rows, word

LINK = {"subject": "Subject", "kind": "Kind", "via": "Via"}
WIRES = '{kind=~"pcie|port|nvlink|xgmi|c2c|interconnect"}'
OF_RATED = f"linkgauge_link_trained_bytes_per_second{WIRES}\n  / linkgauge_link_rated_bytes_per_second"
OUR = '{reason!="other-context"}'  # what belongs to jobs a service never sees
BYTES = "Bps"  # Grafana's bytes per second, by thousands


def here(expr: str) -> str:
    """The series of the node that is chosen."""
    return of_nodes(expr, "node")


def node_board() -> Dashboard:
    """One page for one node."""
    return board(
        "linkgauge-node",
        "linkgauge: node",
        "One node: what is wrong, what its links should give and give.",
        choices(nodes=False),
        [
            Row(4, _state()),
            Row(8, _findings()),
            Row(10, _hierarchy()),
            Row(8, _trained()),
            Row(8, _counted()),
            Row(8, _asked()),
        ],
    )


def _state() -> list[Tile]:
    late = f"time() - {here('linkgauge_cycle_timestamp_seconds')}"
    return [
        Tile(word("Verdict", f"{here('linkgauge_verdict')} == 1", "unknown is not ok.", "verdict", VERDICTS), 4),
        Tile(word("Machine type", NODES, "What it was recognised as.", "profile"), 6),
        Tile(word("Rack", NODES, "As the site file or the list of targets has it.", "rack"), 4),
        Tile(
            number(
                "Findings",
                f"count({here('(linkgauge_finding_severity >= 2)')}) or vector(0)",
                "Warnings and criticals.",
                steps=[(None, "green"), (1, YELLOW)],
            ),
            3,
        ),
        Tile(
            number(
                "Looked",
                late,
                "How long ago the last cycle ended.",
                unit="s",
                steps=[(None, "green"), (300, YELLOW), (1800, RED)],
            ),
            4,
        ),
        Tile(number("Cycle", here("linkgauge_cycle_duration_seconds"), "How long it took.", unit="s"), 3),
    ]


def _findings() -> list[Tile]:
    found = here("linkgauge_finding_severity")
    placed = (
        f"{found}\n  * on (job, instance, subject) group_left (class, name, slot, module_id) linkgauge_device_info\n"
        f"  or on (job, instance, code, subject)\n{found}"
    )
    columns = {
        "Value #A": "Severity",
        "code": "Code",
        "subject": "Subject",
        "name": "Device",
        "slot": "Slot",
        "module_id": "Module",
        "class": "Class",
    }
    what = "What was found, with where it is. linkgauge diagnose on the node has both numbers and what to do."
    return [
        Tile(rows("Findings", [placed], what, columns, {"Severity": "severity"}, sort="Severity", down=True), 17),
        Tile(
            bars(
                "What they cost",
                here("linkgauge_impact_slowdown_ratio"),
                "{{collective}}, {{scope}}",
                "How many times as long collectives take in the node and over the fabric, or the steps of a job.",
                "suffix: times",
                steps=LONGER,
            ),
            7,
        ),
    ]


def _hierarchy() -> list[Tile]:
    rates = [here(f"linkgauge_link_{name}_bytes_per_second") for name in ("expected", "observed", "rated")]
    measured = "and on (job, instance, subject, kind, via) linkgauge_link_expected_bytes_per_second"
    flows = [rates[0], f"{rates[1]}\n  {measured}", here("linkgauge_link_attained_ratio"), f"{rates[2]}\n  {measured}"]
    columns = {**LINK, "Value #A": "Expected", "Value #B": "Observed", "Value #C": "Attained", "Value #D": "Rated"}
    units = {"Expected": BYTES, "Observed": BYTES, "Rated": BYTES, "Attained": "reached"}
    # Of a port of which nobody knows what it can do, it is known only that it is down.
    of_rated = f"({here(OF_RATED)})\n  or ({here(f'linkgauge_link_trained_bytes_per_second{WIRES}')} == 0)"
    known = f"\n  and on (job, instance, subject, kind) (\n{of_rated}\n)"
    rated, trained = (
        f"{here(f'linkgauge_link_{name}_bytes_per_second{WIRES}')} {known}" for name in ("rated", "trained")
    )
    wires = {"subject": "Subject", "kind": "Kind", "Value #C": "Rated", "Value #A": "Trained", "Value #B": "Of rated"}
    return [
        Tile(
            rows(
                "Flows: expected and observed",
                flows,
                "Each measured flow, in one direction. Expected is what good machines reach over its links.",
                columns,
                units,
                sort="Attained",
            ),
            13,
        ),
        Tile(
            rows(
                "Links: rated and trained",
                [trained, of_rated, rated],
                "What both ends can do, and what the link runs at now: less at rest where it saves power, 0 where it "
                "is down.",
                wires,
                {"Rated": BYTES, "Trained": BYTES, "Of rated": "whole"},
                sort="Of rated",
            ),
            11,
        ),
    ]


def _trained() -> list[Tile]:
    all_of = "sum by (job, instance, subject) (linkgauge_nvlink_links)"
    active = here(f'linkgauge_nvlink_links{{state="active"}}\n  / on (job, instance, subject) {all_of}')
    return [
        Tile(
            bars(
                "NVLinks that are active", active, "{{subject}}", "Of all NVLinks of each GPU.", "percentunit", 1, WHOLE
            ),
            8,
        ),
        Tile(
            lines(
                "Trained by rated",
                {"{{subject}} {{kind}}": f"({here(OF_RATED)}) < 1"},
                "Links that run below their rate; those of GPUs at rest do.",
                "percentunit",
            ),
            16,
        ),
    ]


def _counted() -> list[Tile]:
    traffic = here('rate(linkgauge_link_traffic_bytes_total{subject!~"ib[^/]*"}[$__rate_interval])')
    errors = here("increase(linkgauge_link_errors_total[$__rate_interval])")
    some = "and on (job, instance, subject, kind) linkgauge_link_errors_total > 0"
    return [
        Tile(
            lines(
                "Traffic",
                {"{{subject}} {{direction}}": traffic},
                "Received above, sent below. Devices of IP over InfiniBand are left out: their ports count it.",
                BYTES,
                mirrored="/transmit$/",
            ),
            12,
        ),
        Tile(
            lines(
                "Errors",
                {"{{subject}} {{kind}}": f"{errors}\n  {some}"},
                "What counters rose by, of those that ever counted. Findings say which rise is a fault.",
            ),
            12,
        ),
    ]


def _asked() -> list[Tile]:
    return [
        Tile(
            rows(
                "Not checked, and why",
                [here(f"linkgauge_not_checked{OUR}")],
                "Things that should have been read and were not. linkgauge diagnose says how to get them.",
                {"check": "What", "reason": "Why", "Value #A": "Things"},
            ),
            12,
        ),
        Tile(
            lines(
                "How long sources take",
                {"{{probe}}": here("linkgauge_probe_duration_seconds")},
                "Seconds that each source took when it was asked last.",
                "s",
            ),
            12,
        ),
    ]
