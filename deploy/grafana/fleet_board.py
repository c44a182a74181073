"""The fleet: verdicts, active findings, worst links, outliers, and checks that could not be judged."""

from __future__ import annotations

from board import (
    LABELS,
    NO_FINDING,
    NODES,
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
from panels import VERDICTS, bars, lines, number, rows

MUTE = f"count(instance:linkgauge:mute * on (job, instance) {NODES}) or vector(0)"
BY_CODE = f"count by (code) (count by (job, instance, code) ({STANDING}))"
MISSED = 'linkgauge_not_checked{reason!="other-context"}'  # a service cannot read the values of jobs
UNJUDGED = f"instance:linkgauge_check:unjudged{LABELS}"
PLACE = {"node": "Node", "profile": "Machine type", "rack": "Rack", "cluster": "Cluster"}


def fleet_board() -> Dashboard:
    """One page for all nodes."""
    return board(
        "linkgauge-fleet",
        "linkgauge: fleet",
        "Verdicts, findings and their cost, unknown and silent nodes, slowest links, checks that were not judged.",
        choices(),
        [
            Row(4, _counts()),
            Row(10, _findings()),
            Row(9, _costs()),
            Row(8, _history()),
            Row(9, _links()),
            Row(10, _unjudged()),
        ],
    )


def _counts() -> list[Tile]:
    what = {
        "ok": "No warning or critical finding.",
        "degraded": "A fault exists or is likely soon. Jobs still run.",
        "failed": "A job on such a node fails, or loses more than a tenth of the rate of a link.",
        "unknown": "A vital check could not be judged. Unknown is not ok.",
    }
    gates = f"count(count by (job, instance) ({of_nodes('linkgauge_gate_would_drain', 'node')}))"
    gated = f"{gates} or 0 * count({of_nodes('linkgauge_verdict', 'node')})"  # without data it is not 0
    return [
        Tile(number("Nodes", f"count({NODES})", "All nodes, including silent nodes."), 3),
        *(Tile(number(one.capitalize(), _of(one), text, VERDICTS[one]), 3) for one, text in what.items()),
        Tile(number("Silent", MUTE, "The service does not answer, or completes no cycle.", VERDICTS["silent"]), 4),
        Tile(
            number(
                "Would drain",
                gated,
                "Nodes that a gate closes for jobs, or would close if the site file enforced the gate.",
                "orange",
            ),
            5,
        ),
    ]


def _of(verdict: str) -> str:
    """Number of nodes with this verdict."""
    have = of_nodes(f'linkgauge_verdict{{verdict="{verdict}"}}', "node")
    return f"sum({have}) or vector(0)"


def _history() -> list[Tile]:
    verdicts = {one: MUTE if one == "silent" else _of(one) for one in VERDICTS}
    return [
        Tile(
            lines(
                "Verdicts",
                verdicts,
                "Number of nodes with each verdict. A service that completes no cycle is unknown and silent.",
                colours=VERDICTS,
                stacked=True,
            ),
            8,
        ),
        Tile(
            lines(
                "Nodes by code",
                {"{{code}}": f"topk(10, {BY_CODE})"},
                "Number of nodes with a warning or critical finding: the ten codes with the most nodes.",
                stacked=True,
            ),
            8,
            NO_FINDING,
        ),
        Tile(
            bars(
                "Findings by rack",
                f"topk(10, count by (rack) ({STANDING}))",
                "{{rack}}",
                "Number of warnings and critical findings in the ten racks with the most findings.",
            ),
            8,
            NO_FINDING,
        ),
    ]


def _findings() -> list[Tile]:
    found = with_message(STANDING)
    columns = {
        "Value #A": "Severity",
        "Value #B": "Since",
        "node": "Node",
        "message": "Finding and first step",
        "device": "Device and place",
        "code": "Code",
        **{name: heading for name, heading in PLACE.items() if name != "node"},
    }
    units = {"Severity": "severity", "Since": "dateTimeFromNow"}
    what = (
        "All warnings and critical findings that are active. The findings of a silent node stay. "
        "linkgauge explain CODE explains a code."
    )
    table = rows("Active findings", [found, since(found)], what, columns, units, sort="Severity", down=True)
    return [Tile(table, 24, NO_FINDING)]


def _costs() -> list[Tile]:
    """Nodes whose state is not known, and what the findings cost."""
    labels = "cluster, rack, node, profile"
    silent = f"instance:linkgauge:mute * on (job, instance) group_left ({labels}) {NODES}"
    state = (
        f"(instance:linkgauge_verdict:unknown{LABELS}\n"
        f'  or on (job, instance)\nlabel_replace({silent}, "verdict", "silent", "", ""))'
    )
    last = beside(state, "1000 * last_over_time(linkgauge_cycle_timestamp_seconds[1d])", "on (job, instance)")
    priced = with_cost(STANDING)
    worst = "max by (job, instance) (linkgauge_impact_slowdown_ratio < +Inf)"
    cost = {"Value #A": "Severity", "node": "Node", "cost": "Cost", "Value #B": "Slowdown of node"}
    units = {"Severity": "severity", "Cost": "cost", "Slowdown of node": "suffix: times"}
    return [
        Tile(
            rows(
                "Unknown and silent nodes",
                [state, last],
                "Nodes where a vital check could not be judged, and nodes whose service does not answer or completes "
                "no cycle. They are not known to be healthy.",
                {"verdict": "State", "Value #B": "Last cycle", **PLACE},
                {"State": "verdict", "Last cycle": "dateTimeFromNow"},
                sort="Last cycle",
            ),
            11,
            "No node that Prometheus scrapes is unknown or silent",
        ),
        Tile(
            rows(
                "Cost of the findings",
                [priced, beside(priced, worst, "on (job, instance)")],
                "What each active finding costs jobs: they cannot run, they are slower, nothing, or unknown. The "
                "slowdown is the largest of the node with all its findings of known cost.",
                {**cost, "code": "Code", "subject": "Subject"},
                units,
                sort="Severity",
                down=True,
            ),
            13,
            NO_FINDING,
        ),
    ]


def _links() -> list[Tile]:
    flow = {"node": "Node", "profile": "Machine type", "subject": "Subject", "kind": "Kind", "via": "Via"}
    ratio = of_nodes("linkgauge_link_attained_ratio", "node", "profile")
    return [
        Tile(
            rows(
                "Worst links",
                [f"bottomk(20,\n  {ratio}\n)"],
                "The twenty flows with the lowest observed / expected. Good machines reach the expected rate.",
                {"Value #A": "Attained", **flow},
                {"Attained": "reached"},
                sort="Attained",
            ),
            12,
            UNMEASURED,
        ),
        Tile(
            rows(
                "Outliers",
                [f"instance:linkgauge_link_attained_ratio:of_median{LABELS}"],
                "Flows below nine tenths of the median of the same flow on at least five equal machines.",
                {"Value #A": "Ratio to median", **flow},
                {"Ratio to median": "reached"},
                sort="Ratio to median",
            ),
            12,
            "No outlier: needs measured flows of at least five equal machines",
        ),
    ]


def _unjudged() -> list[Tile]:
    missed = f"sum by (check, reason) (\n{of_nodes(MISSED, 'node')}\n)"
    return [
        Tile(
            bars(
                "Not judged",
                f"topk(12, count by (code) ({UNJUDGED}))",
                "{{code}}",
                "Number of nodes where a code applies and could not be judged for all devices: the twelve codes with "
                "the most nodes.",
            ),
            12,
            "No code without a judgement from the nodes that report",
        ),
        Tile(
            rows(
                "Not checked, by reason",
                [missed],
                "Number of values that linkgauge should have read and could not read, sum of all nodes.",
                {"check": "Check", "reason": "Reason", "Value #A": "Count"},
                sort="Count",
                down=True,
            ),
            12,
            "No missing value from the nodes that report",
        ),
    ]
