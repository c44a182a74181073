"""`linkgauge diagnose`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from .options.input import (
    complete_code,
    from_options,
    job_options,
    ras_option,
    redfish_option,
    state_dir,
    with_tools,
)
from .options.measuring import measuring_options
from .options.push import Sinks, sending_options
from .output.exits import EXIT, INTERRUPTED
from .output.report_formats import REPORT_FORMATS, rendered
from .output.write import clear_errors, write

if TYPE_CHECKING:
    from ...exporters.text.report import Amount
    from ...models.report import Context, Report
    from ...probes.redfish import Controller
    from ..inputs.job_options import JobOptions
    from ..measuring.session import MeasurementOptions


@click.command()
@from_options
@with_tools
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", *REPORT_FORMATS, "prometheus"]),
    default="text",
    help="html is one file for a browser. prometheus with --output FILE.prom is for node_exporter's textfile "
    "collector.  [default: text]",
)
@sending_options
@measuring_options
@click.option(
    "--context",
    type=click.Choice(["host", "job"]),
    default="host",
    help="job: also check the limits of this job on locked and shared memory.  [default: host]",
)
@state_dir
@click.option(
    "--ignore",
    metavar="CODE[:SUBJECT][=REASON]",
    multiple=True,
    shell_complete=complete_code,
    help="A known finding: it does not change the verdict, and the report shows it as silenced. SUBJECT is any name of "
    "a device, as for ticket. Repeatable.",
)
@click.option(
    "--job",
    metavar="MODEL,tp=8,...",
    help="Show what the findings cost this training job. The format is that of JOB in linkgauge plan; ckpt=2.3TB adds "
    "the size of a checkpoint.",
)
@ras_option
@job_options
@redfish_option
@click.option(
    "--output", "-o", metavar="FILE", type=click.Path(), help="Write the report to FILE instead of standard output."
)
@click.option(
    "--brief",
    is_flag=True,
    help="Print the verdict and one line per finding, without the name of the node and without times: clush -b folds "
    "equal nodes.",
)
@click.option("--verbose", "-v", is_flag=True, help="Print all details, everything that was not checked, and timings.")
def diagnose(
    root: str,
    source: tuple[str, ...],
    site: str | None,
    with_tools: bool,
    form: str,
    options: MeasurementOptions,
    context: Context,
    state_dir: str | None,
    ignore: tuple[str, ...],
    job: str | None,
    ras: tuple[str, int] | None,
    redfish: Controller | None,
    of_job: JobOptions,
    output: str | None,
    brief: bool,
    verbose: bool,
    sinks: Sinks,
) -> None:
    """Find faults of the links of this node, of a recorded node, or of the nodes of a job (NCCL Inspector).

    The command needs no root. If the node is idle, it measures for some seconds; Ctrl-C ends that with a report so far.
    """
    from .output import reports

    with clear_errors():
        more = reports.further(ras, redfish)
        report, interrupted = reports.report_of(
            root, source, site, options, context, with_tools, ignore, state_dir, job, more, of_job
        )
    if report.job is not None and (form == "prometheus" or any(sinks)):
        raise click.UsageError("a job has no metrics: use --format text, json or html")
    if form != "prometheus":
        _write(report, form, "brief" if brief else "full" if verbose else "usual", output)
    if form == "prometheus" or any(sinks):
        from .push import send

        with clear_errors():
            send(report, site, sinks, output, as_file=form == "prometheus")
    sys.exit(INTERRUPTED if interrupted else EXIT[report.verdict])


def _write(report: Report, form: str, amount: Amount, output: str | None) -> None:
    from ...exporters.text.terminal import within
    from .output import reports

    with within(reports.terminal_columns(output)):
        text = rendered(report, form, reports.in_colour(output), amount)
    write(text, output)
