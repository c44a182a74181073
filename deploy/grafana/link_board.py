"""A class of links or flows over all nodes: how many run below their rate, how rates spread, which are worst."""

from __future__ import annotations

from board import Row, Tile, Variable, board, choice, choices, of_nodes
from grafana_foundation_sdk.models.dashboard import Dashboard
from node_board import BYTES
from panels import BLUE, RED, YELLOW, lines, number, rows

LINKS = '{kind="$link"}'
FLOWS = '{kind="$flow"}'
KINDS = "pcie|port|nvlink|xgmi|c2c|interconnect|memory"


def link_board() -> Dashboard:
    """One page for one class of links, and one of flows."""
    both = "linkgauge_link_trained_bytes_per_second", "linkgauge_link_attained_ratio"
    variables: list[Variable] = [
        *choices(),
        choice("link", "Links", f'label_values({both[0]}{{kind=~"{KINDS}"}}, kind)', all=False),
        choice("flow", "Flows", f"label_values({both[1]}, kind)", all=False),
    ]
    return board(
        "linkgauge-links",
        "linkgauge: link class",
        "Links and flows of one kind on all nodes.",
        variables,
        [Row(4, _counts()), Row(9, _links()), Row(8, _counted()), Row(8, _flows()), Row(9, _worst())],
    )


def _rate(name: str, selector: str) -> str:
    return of_nodes(f"linkgauge_link_{name}{selector}", "node", "profile")


TRAINED = _rate("trained_bytes_per_second", LINKS)
OF_RATED = _rate("trained_bytes_per_second", f"{LINKS} / linkgauge_link_rated_bytes_per_second")
RATIO = _rate("attained_ratio", FLOWS)
COUNTED = "on (job, instance, subject, kind) linkgauge_link_errors_total > 0"
SAME = "on (job, instance, subject) linkgauge_link_rated_bytes_per_second"
PARTS = {"median": 0.5, "tenth": 0.1, "least": 0}


def _counts() -> list[Tile]:
    return [
        Tile(
            number(
                "Links of this kind", f"count({TRAINED}) or vector(0)", "Links of which it is known what they run at."
            ),
            6,
        ),
        Tile(
            number(
                "Below their rate",
                f"count({OF_RATED} < 1) or vector(0)",
                "Links that run below what both ends can do; GPUs and ports at rest do.",
                YELLOW,
            ),
            6,
        ),
        Tile(number("Down", f"count({TRAINED} == 0) or vector(0)", "Links that carry nothing.", RED), 6),
        Tile(
            number(
                "Median attained",
                f"quantile(0.5, {RATIO})",
                "Of all flows of the kind that is chosen: observed by expected.",
                BLUE,
                "percentunit",
            ),
            6,
        ),
    ]


def _links() -> list[Tile]:
    columns = {"node": "Node", "profile": "Machine type", "subject": "Subject", "Value #A": "Of rated"}
    spread = {name: f"quantile({part}, {OF_RATED})" for name, part in PARTS.items()}
    return [
        Tile(
            rows(
                "$link: furthest below their rate",
                [f"bottomk(20,\n{OF_RATED}\n)"],
                "Trained by rated, the lowest first.",
                columns,
                {"Of rated": "whole"},
                sort="Of rated",
            ),
            12,
        ),
        Tile(
            lines(
                "$link: trained by rated",
                spread,
                "Of all links of this kind: the median, the lowest tenth, the least.",
                "percentunit",
            ),
            12,
        ),
    ]


def _counted() -> list[Tile]:
    traffic = of_nodes("rate(linkgauge_link_traffic_bytes_total[$__rate_interval])", "node")
    errors = of_nodes("increase(linkgauge_link_errors_total[1h])", "node")
    counted = f"sum by (kind) (\n{errors}\n  and {SAME}{LINKS}\n  and {COUNTED}\n)"
    return [
        Tile(
            lines(
                "Busiest ports",
                {"{{node}} {{subject}} {{direction}}": f"topk(5,\n{traffic}\n)"},
                "The five ports and network devices that move most, whatever kind is chosen.",
                BYTES,
            ),
            12,
        ),
        Tile(
            lines(
                "$link: errors in an hour",
                {"{{kind}}": counted},
                "What the ends of these links counted within an hour, on all nodes together.",
            ),
            12,
        ),
    ]


def _flows() -> list[Tile]:
    spread = {name: f"quantile({part}, {RATIO})" for name, part in PARTS.items()}
    by_type = f"quantile by (profile) (0.5,\n{RATIO}\n)"
    return [
        Tile(lines("$flow: attained", spread, "Observed by expected, of all flows of this kind.", "percentunit"), 12),
        Tile(
            lines(
                "$flow: attained by machine type",
                {"{{profile}}": by_type},
                "The median of each machine type.",
                "percentunit",
            ),
            12,
        ),
    ]


def _worst() -> list[Tile]:
    who = {"node": "Node", "profile": "Machine type", "subject": "Subject", "via": "Via"}
    observed, expected = (_rate(f"{name}_bytes_per_second", FLOWS) for name in ("observed", "expected"))
    least = f"bottomk(20,\n{RATIO}\n)"
    same = "and on (job, instance, subject, kind, via)"
    medians = 'profile:linkgauge_link_attained_ratio:median{cluster=~"$cluster",profile=~"$profile",kind="$flow"}'
    return [
        Tile(
            rows(
                "$flow: worst",
                [least, f"{observed}\n  {same} {least}", f"{expected}\n  {same} {least}"],
                "The twenty that reach least of what is expected.",
                {**who, "Value #A": "Attained", "Value #B": "Observed", "Value #C": "Expected"},
                {"Attained": "reached", "Observed": BYTES, "Expected": BYTES},
                sort="Attained",
            ),
            14,
        ),
        Tile(
            rows(
                "$flow: medians of equal machines",
                [medians],
                "Of the same flow on at least five machines of a type: what outliers are held against.",
                {"profile": "Machine type", "subject": "Subject", "via": "Via", "Value #A": "Median attained"},
                {"Median attained": "reached"},
                sort="Median attained",
            ),
            10,
        ),
    ]
