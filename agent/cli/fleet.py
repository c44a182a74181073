"""`linkgauge fleet`: many reports together."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import click

from .output.write import clear_errors, write

if TYPE_CHECKING:
    from ...models.fleet.tables import Fleet
    from ..fleet.analysis import Analysis

_TABLES = ("nodes", "reasons", "outliers", "differences", "absences", "gaps", "cohorts", "machines")
_ROWS = "rows"
_MOST_SKIPPED = 3  # names of files in a warning


@click.command(short_help="Compare the nodes of a fleet, and find those to drain first.")
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path())
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "csv", "parquet", "html"]),
    default="text",
    help="csv and parquet hold one table.  [default: text]",
)
@click.option(
    "--table",
    type=click.Choice([*_TABLES, _ROWS]),
    default=None,
    help="The table of csv and parquet. rows is every value of every report, an input of later runs.  [default: nodes]",
)
@click.option("--prometheus", "url", metavar="URL", help="Read the metrics of all nodes instead of reports.")
@click.option("--token-file", metavar="FILE", type=click.Path(), help="A bearer token for Prometheus.")
@click.option("--ca-file", metavar="FILE", type=click.Path(), help="Certificates that sign that of Prometheus (PEM).")
@click.option(
    "--client-file", metavar="FILE", type=click.Path(), help="Certificate and key for Prometheus, in one file (PEM)."
)
@click.option("--export", metavar="FILE", type=click.Path(), help="Write what the fleet agrees on as a site file.")
@click.option("--output", "-o", metavar="FILE", type=click.Path(), help="Write to FILE instead of standard output.")
def fleet(
    paths: tuple[str, ...],
    form: str,
    table: str | None,
    url: str | None,
    token_file: str | None,
    ca_file: str | None,
    client_file: str | None,
    export: str | None,
    output: str | None,
) -> None:
    """Compare the nodes of a fleet: JSON reports or Parquet files of rows, folders of them, or patterns.

    \b
      srun -N 500 sh -c 'linkgauge diagnose --format json -o /shared/reports/$(hostname).json'
      linkgauge fleet /shared/reports
      linkgauge fleet --prometheus https://prometheus.example:9090

    Equal positions of all nodes of a machine type are a cohort. The command shows the nodes to drain first with their
    reasons, what differs from equal nodes, and what is not checked. It needs the extra [fleet].
    """  # noqa: D301 (click wants the character itself)
    if bool(paths) == (url is not None):
        raise click.UsageError("name reports (files, folders, patterns), or --prometheus URL")
    if table and form in ("text", "html"):
        raise click.UsageError(f"--table is for csv and parquet: leave it out with --format {form}")
    if form == "parquet" and output is None:
        raise click.UsageError("--format parquet needs --output FILE")
    with clear_errors(), _analysis(paths, url, token_file, ca_file, client_file) as analysis:
        _warn(analysis)
        if table == _ROWS:
            _write_rows(analysis, form, output)
            return
        found = analysis.fleet()
        _warn_of_names(found, analysis.reports)
    if export is not None:
        write(_site(found), export)
    _write(found, form, table or "nodes", output, len(analysis.skipped))


def _analysis(paths: tuple[str, ...], url: str | None, *files: str | None) -> AbstractContextManager[Analysis]:
    """The analysis of the files, or of Prometheus with its files of token, CA and client. Raises BadInput."""
    try:
        from ..fleet import analysis
    except ImportError:
        raise click.ClickException("linkgauge fleet needs Ibis and DuckDB: pip install 'linkgauge[fleet]'") from None
    if url is None:
        from ..fleet.files import find

        return analysis.of_files(find(paths))
    from ..fleet.prometheus import Access, Client
    from ..fleet.series import rows

    token, ca, client = files
    server = Client(Access(url=url, token_file=token, ca_file=ca, client_file=client))
    return analysis.of_rows(list(rows(server.ask)))


def _warn(analysis: Analysis) -> None:
    from ...exporters.text.terminal import safe

    for one in analysis.skipped[:_MOST_SKIPPED]:
        click.echo(safe(f"Warning: {one.file}: {one.why}: skipped"), err=True)
    if len(analysis.skipped) > _MOST_SKIPPED:
        click.echo(f"Warning: {len(analysis.skipped) - _MOST_SKIPPED} more files are no reports: skipped", err=True)


def _warn_of_names(found: Fleet, reports: int) -> None:
    """Say that reports have the name of another node. Captures and containers can all have one name."""
    nodes = int(found.machines["nodes"].sum())
    if nodes < reports:
        counts = "only the newest of each name counts"
        click.echo(f"Warning: {reports} reports have {nodes} names of nodes: {counts}", err=True)


def _write_rows(analysis: Analysis, form: str, output: str | None) -> None:
    if form != "parquet" or output is None:
        raise click.UsageError("--table rows needs --format parquet")
    analysis.write(output)


def _write(found: Fleet, form: str, table: str, output: str | None, skipped: int) -> None:
    if form == "parquet" and output is not None:
        try:
            found.tables[table].to_parquet(output)
        except OSError as refused:
            raise click.ClickException(f"{output}: {refused.strerror or refused}") from None
    elif form == "html":
        from ...exporters.html.fleet_page import as_html

        write(as_html(found, skipped), output)
    else:
        from ...exporters.commands.fleet import as_csv, as_text

        write(as_csv(found, table) if form == "csv" else as_text(found, skipped), output)


def _site(found: Fleet) -> str:
    """The machine types on whose values the fleet agrees. Raises click.ClickException if there is none."""
    from ...exporters.formats.site_toml import FROM_FLEET, as_toml
    from ...models.catalog import machines
    from ...models.fleet.agreement import agreed

    types = agreed(found, machines())
    if not types:
        raise click.ClickException("--export: no machine type has the five nodes that can agree on its values")
    return FROM_FLEET + "\n".join(map(as_toml, types))
