"""`linkgauge compare`: what differs between two nodes, or on one node between two times."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from .output.write import clear_errors, write

if TYPE_CHECKING:
    from ...models.comparison.side import Side

_DIFFERENT = 1  # exit code, as of diff(1)


@click.command(short_help="Show what differs between two nodes or two times.")
@click.argument("a", type=click.Path())
@click.argument("b", type=click.Path(), required=False)
@click.option("--site", metavar="FILE", type=click.Path(), help="The site file (TOML).")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    help="json is linkgauge.comparison/1.  [default: text]",
)
@click.option("--output", "-o", metavar="FILE", type=click.Path(), help="Write to FILE instead of standard output.")
def compare(a: str, b: str | None, site: str | None, form: str, output: str | None) -> None:
    """Show what differs between A and B: devices, links, findings, rates, settings and versions.

    A and B are captures, outputs of tools (file, folder, archive) or JSON reports of linkgauge. Without B, the command
    reads this machine and measures nothing.

    \b
    Before and after a firmware update:
      linkgauge capture before.capture
      linkgauge compare before.capture
    A good and a bad node:
      linkgauge compare good.capture bad.capture

    Differences are in the order of their weight. Equal differences of several devices are one line. Devices are the
    same if they have the same UUID, address, slot or order. Exit codes: 0 no difference, 1 differences, 64 wrong usage
    or input.
    """  # noqa: D301 (click wants the character itself)
    with clear_errors():
        from ...models.comparison.differences import compare as differences

        found = differences(_side(a, site), _side(b, site))
    names = a, b or "this machine"
    from ...exporters.commands.compare import as_json, as_text
    from .output.reports import in_colour

    write(as_json(found, *names) if form == "json" else as_text(found, *names, in_colour(output)), output)
    sys.exit(_DIFFERENT if found.differences else 0)


def _side(path: str | None, site: str | None) -> Side:
    """What is at the path, or this machine. Raises BadInput."""
    from ...models.comparison.side import of_report, of_snapshot
    from ..inputs import resolve as inputs
    from ..inputs import site_file
    from ..inputs.report_file import read_report
    from ..measuring.session import NOTHING, MeasurementOptions
    from ..pipeline.diagnose import diagnose

    if path is not None and (report := read_report(path)):
        return of_report(report)
    try:
        target = inputs.of("/", () if path is None else (path,))
    except site_file.BadInput as wrong:
        raise site_file.BadInput(str(wrong).removeprefix("--from ")) from None
    session = target.session(NOTHING if target.here else MeasurementOptions())
    return of_snapshot(*diagnose(target.host, target.readers, session.probes, site_file.site(site)))
