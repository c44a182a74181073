"""A class of links or flows on all nodes: links below their rate, distribution of rates, worst links."""

from __future__ import annotations

from board import UNMEASURED, Row, Tile, Variable, board, choice, choices, of_nodes
from grafana_foundation_sdk.models.dashboard import Dashboard
from node_board import BYTES
from panels import BLUE, RED, YELLOW, lines, number, rows

LINKS = '{kind="$link"}'
FLOWS = '{kind="$flow"}'
NO_RATE = "No link of this kind says its rate"
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
PARTS = {"median": 0.5, "10th percentile": 0.1, "minimum": 0}


def _counts() -> list[Tile]:
    return [
        Tile(
            number("Links of this kind", f"count({TRAINED}) or vector(0)", "Links with a known trained rate."),
            6,
        ),
        Tile(
            number(
                "Below their rate",
                f"count({OF_RATED} < 1) or 0 * count({OF_RATED})",
                "Links below the rate that both ends support. Links of idle GPUs and ports are below it too.",
                YELLOW,
            ),
            6,
        ),
        Tile(
            number("Down", f"count({TRAINED} == 0) or 0 * count({TRAINED})", "Links with the trained rate 0.", RED), 6
        ),
        Tile(
            number(
                "Median observed / expected",
                f"quantile(0.5, {RATIO})",
                "Median of observed / expected of all flows of the selected kind.",
                BLUE,
                "percentunit",
            ),
            6,
            UNMEASURED,
        ),
    ]


def _links() -> list[Tile]:
    columns = {"node": "Node", "profile": "Machine type", "subject": "Subject", "Value #A": "Trained / rated"}
    spread = {name: f"quantile({part}, {OF_RATED})" for name, part in PARTS.items()}
    return [
        Tile(
            rows(
                "Links with the lowest trained rate / rated rate",
                [f"bottomk(20,\n{OF_RATED}\n)"],
                "The twenty links with the lowest ratio, lowest first.",
                columns,
                {"Trained / rated": "whole"},
                sort="Trained / rated",
            ),
            12,
            NO_RATE,
        ),
        Tile(
            lines(
                "Trained rate / rated rate",
                spread,
                "Median, 10th percentile and minimum of all links of this kind.",
                "percentunit",
            ),
            12,
            NO_RATE,
        ),
    ]


def _counted() -> list[Tile]:
    traffic = of_nodes("rate(linkgauge_link_traffic_bytes_total[$__rate_interval])", "node")
    errors = of_nodes('increase(linkgauge_link_errors_total{link=""}[1h])', "node")
    counted = f"sum by (kind) (\n{errors}\n  and {SAME}{LINKS}\n  and {COUNTED}\n)"
    return [
        Tile(
            lines(
                "Busiest ports",
                {"{{node}} {{subject}} {{direction}}": f"topk(5,\n{traffic}\n)"},
                "The five ports and network devices with the most traffic. The selected kind has no effect.",
                BYTES,
            ),
            12,
            "No port counts its traffic",
        ),
        Tile(
            lines(
                "Errors in an hour",
                {"{{kind}}": f"topk(10,\n{counted}\n)"},
                "Errors that the ends of these links counted in an hour, sum of all nodes. The ten most frequent.",
                "short",
            ),
            12,
            "No reported counter of errors is above zero",
        ),
    ]


def _flows() -> list[Tile]:
    spread = {name: f"quantile({part}, {RATIO})" for name, part in PARTS.items()}
    by_type = f"quantile by (profile) (0.5,\n{RATIO}\n)"
    return [
        Tile(
            lines(
                "Observed rate / expected rate",
                spread,
                "Median, 10th percentile and minimum of observed / expected of all flows of this kind.",
                "percentunit",
            ),
            12,
            UNMEASURED,
        ),
        Tile(
            lines(
                "Observed rate / expected rate by machine type",
                {"{{profile}}": f"bottomk(10,\n{by_type}\n)"},
                "Median of each machine type: the ten lowest.",
                "percentunit",
            ),
            12,
            UNMEASURED,
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
                "Slowest flows",
                [least, f"{observed}\n  {same} {least}", f"{expected}\n  {same} {least}"],
                "The twenty flows with the lowest observed / expected.",
                {**who, "Value #A": "Attained", "Value #B": "Observed", "Value #C": "Expected"},
                {"Attained": "reached", "Observed": BYTES, "Expected": BYTES},
                sort="Attained",
            ),
            14,
            UNMEASURED,
        ),
        Tile(
            rows(
                "Medians of equal machines",
                [medians],
                "Median of the same flow on at least five machines of a type. Outliers are below nine tenths of it.",
                {"profile": "Machine type", "subject": "Subject", "via": "Via", "Value #A": "Median attained"},
                {"Median attained": "reached"},
                sort="Median attained",
            ),
            10,
            "No median: needs measured flows of at least five equal machines",
        ),
    ]
