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


class Tile(NamedTuple):
    """A panel and its width: a number of the 24 columns."""

    panel: Builder[Panel]
    width: int


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
            panel.grid_pos = GridPos(h=row.height, w=tile.width, x=x, y=y)
            panels.append(panel)
            x += tile.width
        y += row.height
    dashboard = builder.build()
    dashboard.panels = panels
    return dashboard
