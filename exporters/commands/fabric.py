"""The report of a measurement between nodes as text and as JSON, for `linkgauge fabric`."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ...models.fabric.report import FabricReport, faults, sentence
from ..text.terminal import WIDTH, Paint, hanging, painter, safe
from ..text.vocabulary import counted

_MOST = 20  # causes, nodes and reasons of each kind in the text


def as_json(report: FabricReport) -> str:
    """One line of JSON."""
    return msgspec.json.encode(report).decode() + "\n"


def as_text(report: FabricReport, colour: bool = False) -> str:
    """The verdict, the causes, the nodes that are missing or not ok, and what was not measured."""
    return "\n".join(_lines(report, painter(colour))) + "\n"


def _lines(report: FabricReport, paint: Paint) -> Iterator[str]:
    found = report.verdict
    there = [one for one in report.members if one.lost is None]
    what = f"{counted(len(there), 'node')}, {counted(len(report.rates), 'flow')} in {report.seconds:.0f} s"
    yield f"{paint(found.upper(), found)}  {what}"
    causes = [f"{sentence(one)}{_place(report, one.names)}" for one in faults(report.causes)]
    yield from _section("Slow", causes, paint)
    shared = [f"{sentence(one)}{_place(report, one.names)}" for one in report.causes if one.shared]
    yield from _section("Shared by several nodes, not a fault", shared, paint)
    yield from _section("Lost nodes", [f"{one.node}: {one.lost}" for one in report.members if one.lost], paint)
    bad = [one for one in report.members if one.verdict not in (None, "ok")]
    yield from _section(
        "Their own diagnoses",
        [f"{one.node}: {one.verdict}{f' for {one.first_finding}' if one.first_finding else ''}" for one in bad],
        paint,
    )
    yield from _section("Not measured", list(report.not_measured), paint)


def _place(report: FabricReport, names: tuple[str, ...]) -> str:
    known = [f"{name}: {report.places[name]}" if len(names) > 1 else report.places[name] for name in names
             if name in report.places]  # fmt: skip
    return f" ({', '.join(known)})" if known else ""


def _section(title: str, texts: list[str], paint: Paint) -> Iterator[str]:
    if texts:
        yield ""
        yield paint(title, "bold")
        for text in texts[:_MOST]:
            yield from hanging("  ", safe(text), WIDTH, indent=4)
        if len(texts) > _MOST:
            yield f"  and {len(texts) - _MOST} more"
