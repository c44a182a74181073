"""The analysis of a fleet as one HTML file, without scripts and network access."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import jinja2
from msgspec import Struct

from ... import __version__
from ..commands.fleet import (
    absence,
    cost,
    difference,
    gap,
    in_words,
    reasons_by_node,
    records,
)
from ..text.quantities import quantity
from ..text.terminal import safe

if TYPE_CHECKING:
    from ...models.fleet.tables import Fleet

_TEMPLATE = "fleet.html.jinja"
_MOST = 500  # rows of a table: a browser stays fast
_COUNTS = frozenset({"count"})


class _Node(Struct, frozen=True):
    todo: str
    name: str
    machine: str
    cost: str
    reasons: tuple[str, ...]


class _Cohort(Struct, frozen=True):
    machine: str
    what: str
    position: str
    nodes: int
    values: tuple[str, ...]


def as_html(fleet: Fleet, skipped: int = 0) -> str:
    """The page."""
    with open(os.path.join(os.path.dirname(__file__), _TEMPLATE), encoding="utf-8") as file:
        template = jinja2.Environment(autoescape=True, trim_blocks=True, finalize=_visible).from_string(file.read())
    return template.render(
        machines=records(fleet, "machines"),
        nodes=_nodes(fleet),
        sections=(
            ("Different from equal nodes", [difference(one) for one in records(fleet, "differences")[:_MOST]]),
            ("Absent", [absence(one) for one in records(fleet, "absences")[:_MOST]]),
            ("Not checked, or without independent evidence", [gap(one) for one in records(fleet, "gaps")[:_MOST]]),
        ),
        cohorts=_cohorts(fleet),
        skipped=skipped,
        most=_MOST,
        version=__version__,
    )


def _visible(value: object) -> object:
    """Text without control characters and direction marks."""
    return safe(value) if isinstance(value, str) else value


def _nodes(fleet: Fleet) -> list[_Node]:
    why = reasons_by_node(fleet)
    return [
        _Node("drain" if one["drain"] else "inspect", one["node"], one["machine"], cost(one), tuple(why[one["node"]]))
        for one in records(fleet, "nodes")[:_MOST]
    ]


def _cohorts(fleet: Fleet) -> list[_Cohort]:
    """The distributions of rates and counts."""
    rows = []
    for one in records(fleet, "cohorts")[:_MOST]:
        counts = one["kind"] in _COUNTS or one["quantity"].startswith("active")
        unit = "count" if counts else "bytes_per_second"
        values = tuple(quantity(one[name], unit) for name in ("low", "median", "high"))
        what = in_words(one["quantity"]) if one["kind"] == "rate" else one["quantity"].replace(":", " of ")
        rows.append(_Cohort(one["machine"], what, one["position"], one["nodes"], values))
    return rows
