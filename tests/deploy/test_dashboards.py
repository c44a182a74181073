"""The dashboards: written by their program, well laid out, every query answered by a Prometheus that scraped nodes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from linkgauge.exporters.metrics.catalog import METRICS
from tests.support.peers.prometheus_server import Prometheus
from tests.support.programs.fleet_pages import RULES, SILENT, watched

FOLDER = Path(__file__).parents[2] / "deploy" / "grafana"
BOARDS: Mapping[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))
}
CHOSEN = {"node": "n1", "link": "pcie", "flow": "copy", "__rate_interval": "10s", "cluster": ".*", "profile": ".*"}


class Query(NamedTuple):
    """One query of a panel."""

    board: str
    panel: str
    expr: str


def queries() -> Iterator[Query]:
    """Of all nodes, and on the node's own page of n1."""
    for name, board in BOARDS.items():
        chosen = CHOSEN if name == "linkgauge-node" else {**CHOSEN, "node": ".*"}
        for panel in board["panels"]:
            for target in panel["targets"]:
                yield Query(name, f"{panel['title']} {target['refId']}", filled(target["expr"], chosen))


def filled(expr: str, chosen: Mapping[str, str]) -> str:
    """The query with what was chosen in the place of variables."""
    return re.sub(r"\$(\w+)", lambda found: chosen[found[1]], expr)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    if not shutil.which("prometheus"):
        pytest.skip("prometheus is not installed")
    with watched(tmp_path_factory.mktemp("prometheus")) as server:
        yield server


@pytest.mark.skipif(not find_spec("grafana_foundation_sdk"), reason="grafana-foundation-sdk is not installed")
def test_the_files_are_what_the_program_writes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(FOLDER / "write_boards.py"), str(tmp_path)], check=True, timeout=120)
    assert {path.stem: json.loads(path.read_text()) for path in tmp_path.iterdir()} == BOARDS


@pytest.mark.parametrize("name", BOARDS)
def test_panels_lie_side_by_side(name: str) -> None:
    panels = BOARDS[name]["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [panel["gridPos"] for panel in panels]
    assert all(place["x"] >= 0 and place["w"] > 0 and place["x"] + place["w"] <= 24 for place in places)
    for one, other in combinations(places, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or below, (one, other)


@pytest.mark.parametrize("name", BOARDS)
def test_panels_say_what_they_show(name: str) -> None:
    assert all(panel["title"] and panel["description"].endswith(".") for panel in BOARDS[name]["panels"])
    assert all(panel["datasource"]["uid"] == "${datasource}" for panel in BOARDS[name]["panels"])
    variables = [one["name"] for one in BOARDS[name]["templating"]["list"]]
    assert variables[:4] == ["datasource", "cluster", "profile", "node"]


@pytest.mark.parametrize("name", BOARDS)
def test_an_empty_panel_claims_no_health(name: str) -> None:
    """It is also empty if nothing sends data: its text says what is missing. Without data no number of faults is 0."""
    panels = BOARDS[name]["panels"]
    for text in (panel["fieldConfig"]["defaults"]["noValue"] for panel in panels):
        assert re.match(r"No .*(report|sends? data|measured|scrapes|counts its|says|known cost)", text), text
    faults = [one for one in panels if one["title"] in ("Findings", "Down", "Below their rate", "Would drain")]
    assert faults
    assert all("vector(0)" not in target["expr"] for panel in faults for target in panel["targets"])


@pytest.mark.parametrize("query", list(queries()), ids=lambda query: f"{query.board}: {query.panel}")
def test_every_query_has_an_answer(query: Query, server: Prometheus) -> None:
    server.ask(query.expr)  # which raises where there is an error
    assert server.wait(query.expr)


@pytest.mark.parametrize("name", BOARDS)
def test_every_variable_has_values(name: str, server: Prometheus) -> None:
    for variable in BOARDS[name]["templating"]["list"]:
        if variable["type"] == "query":
            found = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"])
            assert found, variable
            series = re.sub(r"\$\w+", ".*", found[1])
            assert server.ask(f"count by ({found[2]}) ({series}) > 0")


def test_queries_ask_for_metrics_that_there_are() -> None:
    recorded = re.findall(r"record: (\S+)", (RULES / "rules.yml").read_text())
    for query in queries():
        names = re.findall(r"(?:\w+:)?linkgauge\w*(?::\w+)?", re.sub(r'"[^"]*"', "", query.expr))
        assert names
        assert set(names) - {*recorded, *METRICS} == set()


def test_numbers_of_the_fleet(server: Prometheus) -> None:
    """The first row of the dashboard for eleven nodes. One of the nodes sends no data."""
    shown = {panel["title"]: panel["targets"][0]["expr"] for panel in BOARDS["linkgauge-fleet"]["panels"][:6]}
    values = {title: server.ask(re.sub(r"\$\w+", ".*", expr))[""] for title, expr in shown.items()}
    assert values == {"Nodes": 11, "Ok": 3, "Degraded": 4, "Failed": 2, "Unknown": 1, "Silent": 1}


def test_findings_of_a_silent_node_stay(server: Prometheus) -> None:
    """With the message, and with an unknown cost. Without a node, no number of findings is 0."""
    fleet = {one["title"]: one["targets"][0]["expr"] for one in BOARDS["linkgauge-fleet"]["panels"]}
    chosen = {**CHOSEN, "node": SILENT}
    labels = "job=linkgauge,node=n9,profile=hgx-h100-8,rack=r2,subject=0000:3e:00.0"
    cost = {f"cluster=west,code=nvlink-inactive,cost=unknown,{labels}": 3}
    assert server.ask(filled(fleet["Cost of the findings"], chosen)) == cost
    number, table = (
        one["targets"][0]["expr"] for one in BOARDS["linkgauge-node"]["panels"] if one["title"] == "Findings"
    )
    (found,) = server.ask(filled(table, chosen))
    assert "message=gpu3 (module 4, 3e:00.0) has 1 of 18 NVLinks inactive" in found
    assert [server.ask(filled(number, {**CHOSEN, "node": name})) for name in (SILENT, "n7", "none")] == [
        {"": 1},
        {"": 0},
        {},
    ]
