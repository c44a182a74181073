"""A report as one HTML file: it opens from a mail, needs no network, and is complete without its script."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence

import jinja2
from msgspec import Struct

from ...models.diagnosis.headlines import action, one_line
from ...models.diagnosis.verdict import why_unknown
from ...models.facts.reason import Reason
from ...models.inventory.device_names import place_in_words
from ...models.report import SEVERITIES, Finding, Report
from ..drawing.curves import curves_of
from ..drawing.states import active
from ..drawing.svg import rendered, svg_parts
from ..text.cost import cost_lines, sentences
from ..text.coverage import coverage_text
from ..text.job_rates import title_of
from ..text.not_checked import gaps
from ..text.quantities import quantity, seen
from ..text.terminal import safe
from ..text.vocabulary import counted, listed
from . import rates
from .job_rates import rows as job_rows
from .styles import policy, script, styles
from .support import bare, repeat, sources, versions

_TEMPLATE = "report.html.jinja"
_TODO = {"keep": "Keep the node", "inspect": "Inspect the node", "drain": "Drain the node"}
_ORIGINS = {"live": "read from this machine", "capture": "read from a capture", "dumps": "read from outputs of tools"}
_MOST_CURVES = 12
_MOST_EVIDENCE = 12  # lines of a finding


class _Shown(Struct, frozen=True):
    """A finding with the rows of its details."""

    severity: str
    line: str
    code: str
    message: str
    rows: tuple[tuple[str, tuple[str, ...]], ...]


def as_html(report: Report, pages: Sequence[tuple[str, str]] = (), hidden: str = "") -> str:
    """The whole page. All texts are escaped. `pages`: paths and names of links; `hidden`: what the page leaves out."""
    with open(os.path.join(os.path.dirname(__file__), _TEMPLATE), encoding="utf-8") as file:
        template = jinja2.Environment(autoescape=True, trim_blocks=True, finalize=_visible).from_string(file.read())
    job_rates, all_job_rates = job_rows(report)
    return template.render(
        report=report,
        node=report.node or (title_of(report.job) if report.job else "this node"),
        todo=f"{_TODO[action(report)]}: {_counts(report)}.",
        origin=_ORIGINS[report.source],
        unknown=_unknown(report) if report.verdict == "unknown" else "",
        pages=pages,
        hidden=hidden,
        findings=[_shown(one, report.cables) for one in active(report)],
        none_found='No finding. "What supports this verdict" says what was judged and what was not.',
        cost=[*sentences(report, report.training)] if report.training else [],
        job_rates=job_rates,
        all_job_rates=all_job_rates,
        **_rates(report),
        pictures=svg_parts(report) if report.topology.devices else (),
        judged=_judged(report),
        coverage=[f"{text}." for text in coverage_text(report.coverage, brief=False).split(". ") if text],
        gaps=list(gaps(report.not_checked)),
        bare=list(bare(report)),
        bare_number=len(report.coverage.uncorroborated),
        versions=list(versions(report)),
        sources=sources(report),
        command=repeat(report),
        style=styles(),
        script=script(),
        policy=policy(),
    )


def _rates(report: Report) -> dict[str, object]:
    """The tables and curves of rates, by name in the template."""
    curves, links = tuple(curves_of(report)), tuple(rates.links(report))
    return {
        "matrices": list(rates.matrices(report)),
        "others": list(rates.others(report)),
        "curves": [(one.title, one.about, rendered(one.drawing, one.title)) for one in curves[:_MOST_CURVES]],
        "all_curves": len(curves),
        "links": links,
        "slow_links": any(one.slow for one in links),
        "tiers": list(rates.tiers(report)),
    }


def _unknown(report: Report) -> str:
    stopped = next((one.detail for one in report.not_checked if one.reason is Reason.STOPPED), None)
    if stopped:
        return f"The verdict is unknown: {stopped}. The log of the service has the reason."
    return why_unknown(report)[0]


def _visible(value: object) -> object:
    """Texts without control characters and direction marks, which could hide or reverse words."""
    return safe(value) if type(value) is str else value  # the picture and the styles are of another type


def _counts(report: Report) -> str:
    """ "4 critical findings, 2 warnings"."""
    several = Counter(one.severity for one in active(report))
    words = {"critical": "critical finding", "warning": "warning", "info": "remark"}
    return ", ".join(counted(several[one], words[one]) for one in SEVERITIES if several[one]) or "no finding"


def _judged(report: Report) -> str:
    """ "45 of 46 checks judged. Not judged for all devices: memlock-low."."""
    left = [code for code, judged in report.checks.items() if not judged]
    text = f"{len(report.checks) - len(left)} of {counted(len(report.checks), 'check')} judged."
    return f"{text} Not judged for all devices: {listed(left, _MOST_EVIDENCE)}." if left else text


def _shown(one: Finding, cables: Mapping[str, str]) -> _Shown:
    names = [name for name in (one.subject, one.subject_name) if name in cables]
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
        ("cable", tuple(f"{name} to {cables[name]}" for name in names if name)),
        ("since", tuple(filter(None, (one.since,)))),
        ("stale", tuple(filter(None, (one.stale,)))),
        ("seen", (*texts[:_MOST_EVIDENCE], *more)),
    )
    return _Shown(one.severity, one_line(one).partition(" ")[2].strip(), one.code, one.message, rows)
