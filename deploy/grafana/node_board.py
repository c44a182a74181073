"""One node: active findings, expected and observed rates, trained links, traffic, errors."""

from __future__ import annotations

from board import (
    LABELS,
    NODES,
    SAME,
    STANDING,
    UNMEASURED,
    Row,
    Tile,
    beside,
    board,
    choices,
    of_nodes,
    since,
    with_cost,
    with_message,
)
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


# All findings, and after the node has become silent its warnings and critical findings.
FOUND = f"({here('linkgauge_finding_severity')}\n  or {SAME}\n{STANDING})"
NONE = "No finding is reported. Verdict shows whether the node was judged"


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
            Row(8, _costs()),
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
                f"count({STANDING}) or 0 * count({here('linkgauge_verdict')})",
                "Number of warnings and critical findings. Those of a silent node stay.",
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
    found = with_message(FOUND)
    columns = {
        "Value #A": "Severity",
        "Value #B": "Since",
        "message": "Finding and first step",
        "device": "Device and place",
        "code": "Code",
        "Value #C": "Stale",
    }
    units = {"Severity": "severity", "Since": "dateTimeFromNow", "Stale": "bool_yes_no"}
    what = "Active findings. Stale: it could not be judged again, and stays. linkgauge ticket ADDRESS shows all steps."
    queries = [found, since(found), beside(found, "linkgauge_finding_stale")]
    return [Tile(rows("Findings", queries, what, columns, units, sort="Severity", down=True), 24, NONE)]


def _costs() -> list[Tile]:
    cost = {"Value": "Severity", "cost": "Cost", "code": "Code", "subject": "Subject"}
    return [
        Tile(
            rows(
                "Cost of each finding",
                [with_cost(FOUND)],
                "What each finding costs jobs: they cannot run, they are slower, nothing, or unknown.",
                cost,
                {"Severity": "severity", "Cost": "cost"},
                sort="Severity",
                down=True,
            ),
            12,
            NONE,
        ),
        Tile(
            bars(
                "Slowdown by all findings of known cost",
                here("linkgauge_impact_slowdown_ratio"),
                "{{collective}}, {{scope}}",
                "How many times longer collectives (node, fabric), copies, computing or job steps take.",
                "suffix: times",
                steps=LONGER,
            ),
            12,
            "No finding has a known cost",
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
            UNMEASURED,
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
            "No link says its rate",
        ),
    ]


def _trained() -> list[Tile]:
    all_of = "sum by (job, instance, subject) (linkgauge_nvlink_links)"
    active = here(f'linkgauge_nvlink_links{{state="active"}}\n  / on (job, instance, subject) {all_of}')
    return [
        Tile(
            bars("Active NVLinks", active, "{{subject}}", "Share of all NVLinks of each GPU.", "percentunit", 1, WHOLE),
            8,
            "No GPU says that it has NVLinks",
        ),
        Tile(
            lines(
                "Links below their rated rate",
                {"{{subject}} {{kind}}": f"bottomk(10, ({here(OF_RATED)}) < 1)"},
                "Trained rate / rated rate of the ten lowest links. Links of idle GPUs are below their rated rate too.",
                "percentunit",
            ),
            16,
            "No link that reports its rates is below its rated rate",
        ),
    ]


def _counted() -> list[Tile]:
    traffic = here(
        'rate(linkgauge_link_traffic_bytes_total{subject!~"ib[^/]*",direction="DIRECTION"}[$__rate_interval])'
    )
    errors = here("increase(linkgauge_link_errors_total[$__rate_interval])")
    some = "and on (job, instance, subject, kind) linkgauge_link_errors_total > 0"
    return [
        Tile(
            lines(
                "Traffic",
                {
                    f"{{{{subject}}}} {direction}": f"topk(5,\n{traffic.replace('DIRECTION', direction)}\n)"
                    for direction in ("receive", "transmit")
                },
                "The five busiest links in each direction. Received above zero, sent below zero. Without IP over "
                "InfiniBand devices: their ports count it.",
                BYTES,
                mirrored="/transmit$/",
            ),
            12,
            "No link counts its traffic",
        ),
        Tile(
            lines(
                "Errors",
                {"{{subject}} {{link}} {{kind}}": f"topk(10,\n{errors}\n  {some}\n)"},
                "Increase of the ten error counters that rise most. Findings show which increase is a fault.",
                "short",
            ),
            12,
            "No reported counter of errors is above zero",
        ),
    ]


def _sources() -> list[Tile]:
    return [
        Tile(
            rows(
                "Not judged",
                [f"instance:linkgauge_check:unjudged{LABELS}"],
                "Codes that apply to the node and could not be judged for all devices.",
                {"code": "Code"},
                sort="Code",
            ),
            6,
            "No code without a judgement is reported",
        ),
        Tile(
            rows(
                "Not checked, by reason",
                [here(f"linkgauge_not_checked{OUR}")],
                "Values that linkgauge should have read and could not read. linkgauge diagnose shows how to get them.",
                {"check": "Check", "reason": "Reason", "Value #A": "Count"},
                sort="Count",
                down=True,
            ),
            9,
            "No missing value is reported",
        ),
        Tile(
            lines(
                "Slowest sources",
                {"{{probe}}": f"topk(10, {here('linkgauge_probe_duration_seconds')})"},
                "Duration of the last read of the ten slowest sources.",
                "s",
            ),
            9,
        ),
    ]
