"""A report as one HTML file: it opens from a mail, needs no network and runs no script."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator

import jinja2
from msgspec import Struct

from ... import __version__
from ...models.diagnosis.headlines import action, one_line
from ...models.diagnosis.verdict import why_unknown
from ...models.graph.path_types import natural
from ...models.inventory.device_names import place_in_words
from ...models.report import SEVERITIES, Finding, Level, Report
from ..text.cost import cost_lines, sentences
from ..text.coverage import coverage_text
from ..text.not_checked import gaps, without_standing
from ..text.quantities import quantity, seen
from ..text.terminal import safe
from ..text.vocabulary import counted

_TEMPLATE = "report.html.jinja"
_TODO = {"keep": "keep the node", "inspect": "inspect the node", "drain": "drain the node"}
_END = re.compile(r"(gpu|numa)\d+")
_MOST_EVIDENCE = 12  # lines of a finding


class _Shown(Struct, frozen=True):
    """A finding with the rows of its details."""

    severity: str
    line: str
    code: str
    message: str
    rows: tuple[tuple[str, tuple[str, ...]], ...]


class _Cell(Struct, frozen=True):
    text: str
    state: str  # "low", "mid" or "good", as the classes of the page


class _Matrix(Struct, frozen=True):
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[_Cell | None, ...]], ...]


class _Rate(Struct, frozen=True):
    """A measured rate that is in no matrix."""

    flow: str
    expected: str
    cell: _Cell | None


class _Links(Struct, frozen=True):
    """Links of one grade with the same rates."""

    grade: str
    count: int
    rated: str
    trained: str


def as_html(report: Report) -> str:
    """The whole page. All texts are escaped."""
    with open(os.path.join(os.path.dirname(__file__), _TEMPLATE), encoding="utf-8") as file:
        template = jinja2.Environment(autoescape=True, trim_blocks=True, finalize=_visible).from_string(file.read())
    active = sorted(
        (one for one in report.findings if one.silenced is None), key=lambda one: SEVERITIES.index(one.severity)
    )
    return template.render(
        report=report,
        node=report.node or "this node",
        todo=_TODO[action(report)],
        origin={"live": "this machine", "capture": "a capture", "dumps": "outputs of tools"}[report.source],
        unknown=why_unknown(report)[0] if report.verdict == "unknown" else "",
        findings=[_shown(one) for one in active],
        none_found="No finding. The last section says what was judged and what was not.",
        cost=[*sentences(report, report.training)] if report.training else [],
        matrices=list(_matrices(report)),
        others=list(_others(report)),
        links=list(_links(report)),
        judged=f"{sum(report.checks.values())} of {counted(len(report.checks), 'check')} judged.",
        coverage=coverage_text(report.coverage, brief=False),
        gaps=list(gaps(without_standing(report.not_checked))),
        version=__version__,
    )


def _visible(value: object) -> object:
    """Texts without control characters and direction marks, which could hide or reverse words."""
    return safe(value) if isinstance(value, str) else value


def _shown(one: Finding) -> _Shown:
    texts = list(dict.fromkeys(map(seen, one.evidence)))
    more = [f"and {len(texts) - _MOST_EVIDENCE} more"] if len(texts) > _MOST_EVIDENCE else []
    rows = (
        ("do", one.steps or tuple(filter(None, (one.remedy,)))),
        ("cause", tuple(filter(None, (one.cause,)))),
        ("expected", tuple(filter(None, (quantity(one.expected, one.unit),)))),
        ("observed", tuple(filter(None, (quantity(one.observed, one.unit),)))),
        ("source", tuple(filter(None, (one.expected_source,)))),
        ("cost", tuple(cost_lines(one))),
        ("where", (", ".join(place_in_words(one.location)),) if one.location else ()),
        ("since", tuple(filter(None, (one.since,)))),
        ("stale", tuple(filter(None, (one.stale,)))),
        ("seen", (*texts[:_MOST_EVIDENCE], *more)),
    )
    return _Shown(one.severity, one_line(one).partition(" ")[2].strip(), one.code, one.message, rows)


def _matrices(report: Report) -> Iterator[_Matrix]:
    """The measured copies between GPUs and NUMA nodes, by the kinds of both ends."""
    groups: dict[tuple[str, str, str], dict[tuple[str, str], Level]] = {}
    for level in report.levels:
        if level.observed is not None and _in_matrix(level):
            sender, receiver = level.ends
            kinds = _END.sub(r"\1", sender), _END.sub(r"\1", receiver)
            groups.setdefault((level.op, *kinds), {})[sender, receiver] = level
    for (op, source, target), cells in groups.items():
        rows, columns = (tuple(sorted({ends[side] for ends in cells}, key=natural)) for side in (0, 1))
        shown = tuple((row, tuple(_cell(cells.get((row, column))) for column in columns)) for row in rows)
        yield _Matrix(f"Measured: {op}, {source} to {target}", columns, shown)


def _in_matrix(level: Level) -> bool:
    return len(level.ends) == 2 and not level.beside and all(map(_END.fullmatch, level.ends))


def _others(report: Report) -> Iterator[_Rate]:
    """The other measured rates."""
    for level in report.levels:
        if level.observed is not None and not _in_matrix(level):
            best = level.expected[0] if level.expected else None
            wanted = f"{best.low / 1e9:.1f} to {best.high / 1e9:.1f}" if best else "not known"
            beside = f", beside {counted(len(level.beside), 'flow')}" if level.beside else ""
            yield _Rate(f"{level.op} {level.flow.subject}{beside}", wanted, _cell(level))


def _cell(level: Level | None) -> _Cell | None:
    if level is None or level.observed is None:
        return None
    text = f"{level.observed / 1e9:.1f}"
    if not level.expected:
        return _Cell(text, "")
    best = level.expected[0]
    middle = (best.low + best.typical) / 2
    return _Cell(text, "low" if level.observed < best.low else "mid" if level.observed < middle else "good")


def _links(report: Report) -> Iterator[_Links]:
    """The links by grade and rates, the most frequent first."""
    known = [link for link in report.topology.links if link.grade and link.rated is not None]
    for (grade, rated, trained), count in Counter((one.grade, one.rated, one.trained) for one in known).most_common():
        yield _Links(grade, count, _gigabytes(rated), _gigabytes(trained))


def _gigabytes(rate: float | None) -> str:
    return "not read" if rate is None else f"{rate / 1e9:.1f}" if rate else "down"
