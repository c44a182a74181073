"""One node: active findings, expected and observed rates, trained links, traffic, errors."""

from __future__ import annotations

from board import NODES, Row, Tile, board, choices, of_nodes
from grafana_foundation_sdk.models.dashboard import Dashboard
from panels import LONGER, RED, VERDICTS, WHOLE, YELLOW, bars, lines, number, rows, word

LINK = {"subject": "Subject", "kind": "Kind", "via": "Via"}
WIRES = '{kind=~"pcie|port|nvlink|xgmi|c2c|interconnect"}'
OF_RATED = f"linkgauge_link_trained_bytes_per_second{WIRES}\n  / linkgauge_link_rated_bytes_per_second"
OUR = '{reason!="other-context"}'  # a service cannot read the values of jobs
BYTES = "Bps"  # unit of Grafana: bytes per second, decimal prefixes


def here(expr: str) -> str:
    """The series of the selected node."""
    return of_nodes(expr, "node")


def node_board() -> Dashboard:
    """One page for one node."""
    return board(
        "linkgauge-node",
        "linkgauge: node",
        "One node: findings, and the expected and observed rates of its links.",
        choices(nodes=False),
        [
            Row(4, _state()),
            Row(8, _findings()),
            Row(10, _hierarchy()),
            Row(8, _trained()),
            Row(8, _counted()),
            Row(8, _sources()),
        ],
    )


def _state() -> list[Tile]:
    age = f"time() - {here('linkgauge_cycle_timestamp_seconds')}"
    return [
        Tile(
            word(
                "Verdict",
                f"{here('linkgauge_verdict')} == 1",
                "Verdict on the node. Unknown is not ok.",
                "verdict",
                VERDICTS,
            ),
            4,
        ),
        Tile(word("Machine type", NODES, "The recognised machine type.", "profile"), 6),
        Tile(word("Rack", NODES, "From the site file or the list of targets.", "rack"), 4),
        Tile(
            number(
                "Findings",
                f"count({here('(linkgauge_finding_severity >= 2)')}) or vector(0)",
                "Number of warnings and critical findings.",
                steps=[(None, "green"), (1, YELLOW)],
            ),
            3,
        ),
        Tile(
            number(
                "Last cycle",
                age,
                "Time since the end of the last cycle.",
                unit="s",
                steps=[(None, "green"), (300, YELLOW), (1800, RED)],
            ),
            4,
        ),
        Tile(
            number("Cycle duration", here("linkgauge_cycle_duration_seconds"), "Duration of the last cycle.", unit="s"),
            3,
        ),
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
    what = "Active findings with their location. linkgauge diagnose on the node shows both numbers and the remedy."
    return [
        Tile(rows("Findings", [placed], what, columns, {"Severity": "severity"}, sort="Severity", down=True), 17),
        Tile(
            bars(
                "Cost of the findings",
                here("linkgauge_impact_slowdown_ratio"),
                "{{collective}}, {{scope}}",
                "How many times longer collectives (in the node, over the fabric) or job steps take.",
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
    # A port without a known rated rate appears only while it is down.
    of_rated = f"({here(OF_RATED)})\n  or ({here(f'linkgauge_link_trained_bytes_per_second{WIRES}')} == 0)"
    known = f"\n  and on (job, instance, subject, kind) (\n{of_rated}\n)"
    rated, trained = (
        f"{here(f'linkgauge_link_{name}_bytes_per_second{WIRES}')} {known}" for name in ("rated", "trained")
    )
    wires = {
        "subject": "Subject",
        "kind": "Kind",
        "Value #C": "Rated",
        "Value #A": "Trained",
        "Value #B": "Trained / rated",
    }
    return [
        Tile(
            rows(
                "Flows: expected and observed",
                flows,
                "Each measured flow, in one direction. Good machines reach the expected rate over these links.",
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
                "Rated: both ends support this rate. Trained: the present rate. It is lower while the link saves power "
                "and 0 while the link is down.",
                wires,
                {"Rated": BYTES, "Trained": BYTES, "Trained / rated": "whole"},
                sort="Trained / rated",
            ),
            11,
        ),
    ]


def _trained() -> list[Tile]:
    all_of = "sum by (job, instance, subject) (linkgauge_nvlink_links)"
    active = here(f'linkgauge_nvlink_links{{state="active"}}\n  / on (job, instance, subject) {all_of}')
    return [
        Tile(
            bars("Active NVLinks", active, "{{subject}}", "Share of all NVLinks of each GPU.", "percentunit", 1, WHOLE),
            8,
        ),
        Tile(
            lines(
                "Trained / rated",
                {"{{subject}} {{kind}}": f"({here(OF_RATED)}) < 1"},
                "Links below their rated rate. Links of idle GPUs are below it too.",
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
                "Received above zero, sent below zero. Without IP over InfiniBand devices: their ports count it.",
                BYTES,
                mirrored="/transmit$/",
            ),
            12,
        ),
        Tile(
            lines(
                "Errors",
                {"{{subject}} {{link}} {{kind}}": f"{errors}\n  {some}"},
                "Increase of each error counter that is not zero. Findings show which increase is a fault.",
            ),
            12,
        ),
    ]


def _sources() -> list[Tile]:
    return [
        Tile(
            rows(
                "Not checked, by reason",
                [here(f"linkgauge_not_checked{OUR}")],
                "Values that linkgauge should have read and could not read. linkgauge diagnose shows how to get them.",
                {"check": "Check", "reason": "Reason", "Value #A": "Count"},
            ),
            12,
        ),
        Tile(
            lines(
                "Duration of sources",
                {"{{probe}}": here("linkgauge_probe_duration_seconds")},
                "Duration of the last read of each source.",
                "s",
            ),
            12,
        ),
    ]
