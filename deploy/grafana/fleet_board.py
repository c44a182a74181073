"""The fleet: verdicts, what stands where, the worst links, outliers, and what nobody looked at."""

from __future__ import annotations

from board import LABELS, NODES, STANDING, Row, Tile, board, choices, of_nodes
from grafana_foundation_sdk.models.dashboard import Dashboard
from panels import VERDICTS, bars, lines, number, rows

MUTE = f"count(instance:linkgauge:mute * on (job, instance) {NODES}) or vector(0)"
BY_CODE = f"count by (code) (count by (job, instance, code) ({STANDING}))"
MISSED = 'linkgauge_not_checked{reason!="other-context"}'  # what belongs to jobs a service never sees
UNJUDGED = f"instance:linkgauge_check:unjudged{LABELS}"
PLACE = {"node": "Node", "profile": "Machine type", "rack": "Rack", "cluster": "Cluster"}


def fleet_board() -> Dashboard:
    """One page for all nodes."""
    return board(
        "linkgauge-fleet",
        "linkgauge: fleet",
        "How the links of all nodes are, which are worst, and what nobody looked at.",
        choices(),
        [Row(4, _counts()), Row(8, _history()), Row(9, _findings()), Row(9, _links()), Row(10, _unknown())],
    )


def _counts() -> list[Tile]:
    what = {
        "ok": "Nothing is wrong.",
        "degraded": "Something is wrong or will be; jobs still run.",
        "failed": "A job placed there fails, or loses more than a tenth of a link.",
        "unknown": "A vital check could not be judged. Unknown is not ok.",
    }
    kept = f"count(count by (job, instance) ({of_nodes('linkgauge_gate_would_drain', 'node')})) or vector(0)"
    return [
        Tile(number("Nodes", f"count({NODES})", "Nodes that are known, silent ones too."), 3),
        *(Tile(number(one.capitalize(), _of(one), text, VERDICTS[one]), 3) for one, text in what.items()),
        Tile(number("Silent", MUTE, "The service does not answer, or its cycle stands still.", VERDICTS["silent"]), 4),
        Tile(
            number(
                "Would drain",
                kept,
                "Nodes that a gate keeps jobs away from, or would if the site enforced it.",
                "orange",
            ),
            5,
        ),
    ]


def _of(verdict: str) -> str:
    """How many nodes have it."""
    have = of_nodes(f'linkgauge_verdict{{verdict="{verdict}"}}', "node")
    return f"sum({have}) or vector(0)"


def _history() -> list[Tile]:
    verdicts = {one: MUTE if one == "silent" else _of(one) for one in VERDICTS}
    return [
        Tile(
            lines(
                "Verdicts",
                verdicts,
                "Nodes of each verdict; a service that stands still is unknown and silent.",
                colours=VERDICTS,
                stacked=True,
            ),
            8,
        ),
        Tile(
            lines(
                "Nodes by code",
                {"{{code}}": BY_CODE},
                "Nodes that have a warning or critical, by its code.",
                stacked=True,
            ),
            8,
        ),
        Tile(
            bars(
                "Findings by rack",
                f"topk(10, count by (rack) ({STANDING}))",
                "{{rack}}",
                "Warnings and criticals in the ten racks that have most.",
            ),
            8,
        ),
    ]


def _findings() -> list[Tile]:
    columns = {"Value #A": "Severity", "code": "Code", "subject": "Subject", **PLACE}
    what = "All warnings and criticals that stand. linkgauge explain CODE says what each means."
    impact = of_nodes("linkgauge_impact_slowdown_ratio", "node")
    cost = {"node": "Node", "collective": "Collective", "scope": "Scope", "Value #A": "Times as long"}
    return [
        Tile(rows("What stands", [STANDING], what, columns, {"Severity": "severity"}, sort="Severity", down=True), 16),
        Tile(
            rows(
                "What it costs",
                [f"topk(20,\n{impact} > 1\n)"],
                "How many times as long collectives take on a node with all its findings, or the steps of a job.",
                cost,
                sort="Times as long",
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
                "Of what was measured: observed by expected. Expected is what good machines reach.",
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
                {"Value #A": "Of the median", **flow},
                {"Of the median": "reached"},
                sort="Of the median",
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
                "On how many nodes a code was wanted and could not be judged everywhere.",
            ),
            12,
        ),
        Tile(
            rows(
                "Not checked, and why",
                [missed],
                "How many things should have been read and were not, on all nodes together.",
                {"check": "What", "reason": "Why", "Value #A": "Things"},
                sort="Things",
                down=True,
            ),
            12,
        ),
    ]
