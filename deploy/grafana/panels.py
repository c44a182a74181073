"""Panels: a number, lines over time, bars, a table. A colour has the same meaning in all panels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from board import SOURCE
from grafana_foundation_sdk.builders import bargauge, common, prometheus, stat, table, timeseries
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.models import common as words
from grafana_foundation_sdk.models.dashboard import (
    DataTransformerConfig,
    DynamicConfigValue,
    FieldColorModeId,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMappingResult,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from linkgauge.exporters.text.vocabulary import kind_in_words

Steps: TypeAlias = Sequence[tuple[float | None, str]]  # first value and colour of each step

GREEN, YELLOW, RED, GREY, BLUE, PURPLE = "green", "yellow", "red", "#8e8e8e", "blue", "purple"
VERDICTS = {"ok": GREEN, "degraded": YELLOW, "failed": RED, "unknown": PURPLE, "silent": GREY}
REACHED: Steps = [(None, RED), (0.8, YELLOW), (0.9, GREEN)]  # share of the rate of good machines
WHOLE: Steps = [(None, RED), (0.9, YELLOW), (0.999, GREEN)]  # share of all links: one missing NVLink of 18 is visible
LONGER: Steps = [(None, GREEN), (1.01, YELLOW), (1.1, RED)]  # slowdown: how many times longer
COSTS = {"cannot run": RED, "slower": YELLOW, "unknown": PURPLE, "none": GREEN}  # values of the label cost
SEVERITIES = {1: ("info", BLUE), 2: ("warning", YELLOW), 3: ("critical", RED)}
P = TypeVar("P", stat.Panel, timeseries.Panel, bargauge.Panel, table.Panel)


def query(
    expr: str, name: str = "", instant: bool = False, table: bool = False, ref: str = "A"
) -> prometheus.Dataquery:
    """A query. `name`: the legend of its series, such as "{{node}}"."""
    target = prometheus.Dataquery().expr(expr).ref_id(ref).datasource(SOURCE)
    target = target.instant() if instant else target.range()
    if table:
        return target.format(PromQueryFormat.TABLE)
    return target.legend_format(name)


def number(
    title: str, expr: str, what: str, colour: str = BLUE, unit: str = "none", steps: Steps | None = None
) -> stat.Panel:
    """One number: the present value."""
    panel = _described(stat.Panel(), title, what, unit, steps or [(None, colour)])
    return panel.with_target(query(expr, instant=True)).graph_mode(words.BigValueGraphMode.NONE)


def word(title: str, expr: str, what: str, label: str, colours: Mapping[str, str] | None = None) -> stat.Panel:
    """The value of a label, in the colour of this value."""
    panel = _described(stat.Panel(), title, what, "none", [(None, BLUE)]).with_target(
        query(expr, f"{{{{{label}}}}}", instant=True)
    )
    for value, colour in (colours or {}).items():
        panel.override_by_name(value, [_colour(colour)])
    return panel.graph_mode(words.BigValueGraphMode.NONE).text_mode(words.BigValueTextMode.NAME)


def lines(
    title: str,
    queries: Mapping[str, str],
    what: str,
    unit: str = "none",
    colours: Mapping[str, str] | None = None,
    stacked: bool = False,
    mirrored: str = "",
    low: float | None = 0,
) -> timeseries.Panel:
    """Lines over time, by legend. Lines with a legend that matches `mirrored` are drawn below zero."""
    panel = _described(timeseries.Panel(), title, what, unit, None)
    for ref, (name, expr) in zip("ABCDEF", queries.items(), strict=False):
        panel.with_target(query(expr, name, ref=ref))
    for value, colour in (colours or {}).items():
        panel.override_by_name(value, [_colour(colour)])
    if mirrored:
        panel.override_by_regexp(mirrored, [DynamicConfigValue("custom.transform", "negative-Y")])
    elif low is not None:
        panel.min(low)
    if stacked:
        panel.stacking(common.StackingConfig().mode(words.StackingMode.NORMAL)).fill_opacity(40)
    legend = common.VizLegendOptions().show_legend(True).display_mode(words.LegendDisplayMode.LIST)
    panel.show_points(words.VisibilityMode.NEVER)
    return panel.line_width(1).legend(legend.placement(words.LegendPlacement.BOTTOM))


def bars(
    title: str,
    expr: str,
    name: str,
    what: str,
    unit: str = "none",
    most: float | None = None,
    steps: Steps | None = None,
) -> bargauge.Panel:
    """A bar for the present value of each series."""
    panel = _described(bargauge.Panel(), title, what, unit, steps or [(None, BLUE)]).min(0)
    if most is not None:
        panel.max(most)
    panel.with_target(query(expr, name, instant=True))
    panel.text(common.VizTextDisplayOptions().title_size(12).value_size(14))
    return panel.orientation(words.VizOrientation.HORIZONTAL).display_mode(words.BarGaugeDisplayMode.BASIC)


def rows(
    title: str,
    queries: Sequence[str],
    what: str,
    columns: Mapping[str, str],
    units: Mapping[str, str] | None = None,
    sort: str = "",
    down: bool = False,
) -> table.Panel:
    """A table: a row for each set of labels, and a column for each query.

    `columns`: the column name in Grafana ("node", "Value #A") and its heading, in order. The table omits other columns.
    `units`: for a heading, a unit of Grafana, "severity", or a key of BARS or WORDS.
    """
    panel = _described(table.Panel(), title, what, "none", None)
    for ref, expr in zip("ABCDEF", queries, strict=False):
        panel.with_target(query(expr, instant=True, table=True, ref=ref))
    if len(queries) > 1:
        panel.with_transformation(DataTransformerConfig("merge", options={}))
    elif "Value #A" in columns:  # Grafana names the column of a single query "Value"
        columns = {name.replace("Value #A", "Value"): heading for name, heading in columns.items()}
    panel.with_transformation(
        DataTransformerConfig("filterFieldsByName", options={"include": {"names": list(columns)}})
    )
    order = {name: place for place, name in enumerate(columns)}
    panel.with_transformation(
        DataTransformerConfig("organize", options={"indexByName": order, "renameByName": dict(columns)})
    )
    for heading, unit in (units or {}).items():
        panel.override_by_name(heading, _cell_format(unit))
    # Otherwise an empty cell has the text of an empty panel.
    panel.override_by_regexp("/.*/", [DynamicConfigValue("noValue", "–")])
    if "Check" in columns.values():
        texts = {kind: ValueMappingResult(kind_in_words(kind, True)) for kind in KINDS}
        panel.override_by_name("Check", [DynamicConfigValue("mappings", [ValueMap(options=texts)])])
    for heading in (one for one in WIDTHS if one in columns.values()):
        panel.override_by_name(heading, [DynamicConfigValue("custom.width", WIDTHS[heading])])
    if "Node" in columns.values():
        panel.override_by_name("Node", [DynamicConfigValue("links", [NODE_LINK])])
    if sort:
        panel.sort_by([common.TableSortByFieldState().display_name(sort).desc(down)])
    return panel


NODE_LINK = {
    "title": "Node dashboard",
    "url": "/d/linkgauge-node?var-node=${__value.raw:percentencode}&${__url_time_range}",
}


BARS: Mapping[str, Steps] = {"reached": REACHED, "whole": WHOLE}
WORDS: Mapping[str, Mapping[str, str]] = {"verdict": VERDICTS, "cost": COSTS}
# Kinds of records that could not be read at all; fields of records ("Pci.width") keep their names.
KINDS = ("Gpu", "GpuLink", "GpuPair", "NicPath", "NvLink", "Pci", "Net", "Rdma", "Port", "Nvme", "Event")
# Pixels. The column with the finding takes the rest.
WIDTHS = {
    "Severity": 80,
    "Since": 130,
    "Last cycle": 130,
    "Node": 120,
    "Device and place": 230,
    "Code": 160,
    "Machine type": 120,
    "Rack": 70,
    "Cluster": 80,
    "Stale": 70,
}


def _cell_format(unit: str) -> list[DynamicConfigValue]:
    """How a column shows its values: severities as words, ratios as bars, other values with their unit."""
    if unit == "severity" or unit in WORDS:
        named = {str(value): ValueMappingResult(text, colour) for value, (text, colour) in SEVERITIES.items()}
        if unit in WORDS:
            named = {value: ValueMappingResult(value, colour) for value, colour in WORDS[unit].items()}
        return [
            DynamicConfigValue("mappings", [ValueMap(options=named)]),
            DynamicConfigValue("custom.cellOptions", {"type": "color-text"}),
        ]
    if unit in BARS:
        return [
            DynamicConfigValue("unit", "percentunit"),
            DynamicConfigValue("custom.cellOptions", {"type": "gauge", "mode": "basic"}),
            DynamicConfigValue("min", 0),
            DynamicConfigValue("max", 1),
            DynamicConfigValue("color", {"mode": "thresholds"}),
            DynamicConfigValue("thresholds", {"mode": "absolute", "steps": _steps_json(BARS[unit])}),
        ]
    return [DynamicConfigValue("unit", unit)]


def _steps_json(steps: Steps) -> list[dict[str, Any]]:
    return [{"value": value, "color": colour} for value, colour in steps]


def _colour(colour: str) -> DynamicConfigValue:
    return DynamicConfigValue("color", {"mode": "fixed", "fixedColor": colour})


def _described(panel: P, title: str, what: str, unit: str, steps: Steps | None) -> P:
    panel.title(title).description(what).datasource(SOURCE).unit(unit)
    if steps is not None:
        thresholds = [Threshold(value=value, color=colour) for value, colour in steps]
        panel.thresholds(build.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(thresholds))
        panel.color_scheme(build.FieldColor().mode(FieldColorModeId.THRESHOLDS))
    return panel
