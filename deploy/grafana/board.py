"""Common parts of the dashboards: layout of panels, variables, and joins of queries with nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models.dashboard import (
    Dashboard,
    DashboardLinkType,
    DataSourceRef,
    GridPos,
    Panel,
    RowPanel,
    VariableModel,
    VariableRefresh,
    VariableSort,
)

SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
# The recording rules of ../prometheus keep all nodes, including silent nodes.
LABELS = '{cluster=~"$cluster",profile=~"$profile",node=~"$node"}'
NODES = f"instance:linkgauge_node_info:last{LABELS}"
STANDING = f"instance:linkgauge_finding_severity:standing{LABELS}"
SAME = "on (job, instance, code, subject)"
# Texts of empty panels. A panel is also empty if nothing sends data, so no text says that all is well.
NO_FINDING = "No finding from the nodes that report"
UNMEASURED = "No measured flow: [probes] in linkgauge.toml schedules measurements"


def with_message(findings: str) -> str:
    """The findings with their device and message. A node that is silent keeps both."""
    message = "instance:linkgauge_finding_message:last"
    return f"({findings}\n  * {SAME} group_left (device, message) {message}\n  or {SAME}\n{findings})"


def with_cost(findings: str) -> str:
    """The findings with their cost. That of a silent node is unknown."""
    unknown = f'label_replace({findings}, "cost", "unknown", "", "")'
    return f"({findings}\n  * {SAME} group_left (cost) linkgauge_finding_cost\n  or {SAME}\n{unknown})"


def beside(findings: str, other: str, match: str = SAME) -> str:
    """The values of `other` with the labels of the findings, so that a table shows both in one row."""
    return f"0 * {findings}\n  + {match} group_left () ({other})"


def since(findings: str) -> str:
    """When each finding appeared first, in milliseconds as Grafana wants it."""
    return beside(findings, "1000 * linkgauge_finding_timestamp_seconds")


class Tile(NamedTuple):
    """A panel and its width: a number of the 24 columns. `empty`: what the panel says without data."""

    panel: Builder[Panel]
    width: int
    empty: str = "No node sends data"


class Row(NamedTuple):
    """Panels side by side."""

    height: int
    tiles: Sequence[Tile]


Variable: TypeAlias = Builder[VariableModel]


def of_nodes(expr: str, *labels: str) -> str:
    """The series of the selected nodes, with these labels of the nodes."""
    return f"{expr}\n  * on (job, instance) group_left ({', '.join(labels)}) {NODES}"


def choice(name: str, label: str, query: str, all: bool = True) -> build.QueryVariable:
    """A variable with values from Prometheus. `all`: the user can select several values; the default is all values."""
    variable = (
        build.QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query(query)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
    )
    # ".*" instead of a list of all names: it also matches nodes without a cluster or machine type.
    return variable.multi(True).include_all(True).all_value(".*") if all else variable


def choices(nodes: bool = True) -> list[Variable]:
    """Data source, cluster, machine type, node. `nodes`: the user can select several nodes."""
    known = "instance:linkgauge_node_info:last"
    return [
        build.DatasourceVariable("datasource").label("Data source").type("prometheus"),
        choice("cluster", "Cluster", f"label_values({known}, cluster)"),
        choice("profile", "Machine type", f'label_values({known}{{cluster=~"$cluster"}}, profile)'),
        choice("node", "Node", f'label_values({known}{{cluster=~"$cluster",profile=~"$profile"}}, node)', nodes),
    ]


def board(uid: str, title: str, description: str, variables: Iterable[Variable], rows: Iterable[Row]) -> Dashboard:
    """The dashboard: rows from top to bottom, panels from left to right. The layout of the SDK overflows the grid."""
    builder = (
        build.Dashboard(title)
        .uid(uid)
        .description(description)
        .tags(["linkgauge"])
        .time("now-6h", "now")
        .refresh("1m")
        .editable()
        .link(
            build.DashboardLink("linkgauge")
            .type(DashboardLinkType.DASHBOARDS)
            .tags(["linkgauge"])
            .as_dropdown(True)
            .include_vars(True)
            .keep_time(True)
        )
    )
    for variable in variables:
        builder.with_variable(variable)
    number, y = 0, 0
    panels: list[Panel | RowPanel] = []
    for row in rows:
        x = 0
        for tile in row.tiles:
            number += 1
            panel = tile.panel.build()
            panel.id_val = number
            panel.field_config.defaults.no_value = tile.empty
            panel.grid_pos = GridPos(h=row.height, w=tile.width, x=x, y=y)
            panels.append(panel)
            x += tile.width
        y += row.height
    dashboard = builder.build()
    dashboard.panels = panels
    return dashboard
