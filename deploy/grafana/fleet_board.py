"""The fleet: verdicts, active findings, worst links, outliers, and checks that could not be judged."""

from __future__ import annotations

from board import LABELS, NODES, STANDING, Row, Tile, board, choices, of_nodes
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
        "State of the links of all nodes, worst links, and checks that could not be judged.",
        choices(),
        [Row(4, _counts()), Row(8, _history()), Row(9, _findings()), Row(9, _links()), Row(10, _unknown())],
    )


def _counts() -> list[Tile]:
    what = {
        "ok": "No warning or critical finding.",
        "degraded": "A fault exists or is likely soon. Jobs still run.",
        "failed": "A job on such a node fails, or loses more than a tenth of the rate of a link.",
        "unknown": "A vital check could not be judged. Unknown is not ok.",
    }
    gated = f"count(count by (job, instance) ({of_nodes('linkgauge_gate_would_drain', 'node')})) or vector(0)"
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
                {"{{code}}": BY_CODE},
                "Number of nodes with a warning or critical finding, by code.",
                stacked=True,
            ),
            8,
        ),
        Tile(
            bars(
                "Findings by rack",
                f"topk(10, count by (rack) ({STANDING}))",
                "{{rack}}",
                "Number of warnings and critical findings in the ten racks with the most findings.",
            ),
            8,
        ),
    ]


def _findings() -> list[Tile]:
    columns = {"Value #A": "Severity", "code": "Code", "subject": "Subject", **PLACE}
    what = "All active warnings and critical findings. linkgauge explain CODE explains a code."
    impact = of_nodes("linkgauge_impact_slowdown_ratio", "node")
    cost = {"node": "Node", "collective": "Collective", "scope": "Scope", "Value #A": "Slowdown"}
    return [
        Tile(
            rows("Active findings", [STANDING], what, columns, {"Severity": "severity"}, sort="Severity", down=True), 16
        ),
        Tile(
            rows(
                "Cost of the findings",
                [f"topk(20,\n{impact} > 1\n)"],
                "How many times longer collectives or job steps take on a node with all its findings.",
                cost,
                sort="Slowdown",
                down=True,
            ),
            8,
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
        ),
    ]


def _unknown() -> list[Tile]:
    missed = f"sum by (check, reason) (\n{of_nodes(MISSED, 'node')}\n)"
    return [
        Tile(
            bars(
                "Not judged",
                f"topk(12, count by (code) ({UNJUDGED}))",
                "{{code}}",
                "Number of nodes where a code applies and could not be judged for all devices.",
            ),
            12,
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
        ),
    ]
