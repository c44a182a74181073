"""The command line."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ... import __version__
from .commands import Commands
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
from .output.write import clear_errors, write

if TYPE_CHECKING:
    from ...exporters.text.report import Amount
    from ...models.report import Context
    from ...probes.measure.probe import Effort
    from ...probes.redfish import Controller
    from ..measuring.session import MeasurementOptions


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="linkgauge")
def main() -> None:
    """Find the links of a GPU node that are slower than they should be.

    Exit codes of diagnose: 0 ok, 1 degraded, 2 failed, 3 unknown, 64 wrong usage or input.
    """


@main.command(short_help="Find faults of the links of a node.")
@from_options
@with_tools
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "html", "prometheus"]),
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
    of_job: tuple[str | None, str | None],
    output: str | None,
    brief: bool,
    verbose: bool,
    sinks: Sinks,
) -> None:
    """Find faults of the links of this node, of a recorded node, or of the nodes of a job (NCCL Inspector).

    The command needs no root. If the node is idle, the command measures for some seconds; --level sets how much. Ctrl-C
    stops the measurement and prints the report so far.
    """
    from ...exporters.text.terminal import within
    from .output import reports

    with clear_errors():
        more = reports.further(ras, redfish)
        report, interrupted = reports.report_of(
            root, source, site, options, context, with_tools, ignore, state_dir, job, more, of_job
        )
    if report.job is not None and (form == "prometheus" or any(sinks)):
        raise click.UsageError("a job has no metrics: use --format text, json or html")
    if form != "prometheus":
        amount: Amount = "brief" if brief else "full" if verbose else "usual"
        with within(reports.terminal_columns(output)):
            text = reports.rendered(report, form, reports.in_colour(output), amount)
        write(text, output)
    if form == "prometheus" or any(sinks):
        from .push import send

        with clear_errors():
            send(report, site, sinks, output, as_file=form == "prometheus")
    sys.exit(INTERRUPTED if interrupted else EXIT[report.verdict])


@main.command(short_help="Mark a node as good after a repair.")
@from_options
@measuring_options
@click.option(
    "--anyway", is_flag=True, help="Also accept a node with findings, or a node that linkgauge could not judge."
)
@state_dir
def accept(
    root: str,
    source: tuple[str, ...],
    site: str | None,
    options: MeasurementOptions,
    anyway: bool,
    state_dir: str | None,
) -> None:
    """Mark this node as good, after a repair or when you take over a new node.

    Earlier log entries and counts no longer cause warnings. linkgauge compares later rates with the rates that this
    command measures. If the node has a fault now, the command prints the findings, does not accept the node, and
    returns the exit code of diagnose.
    """
    with clear_errors():
        from .accept import accept as accepting

        text, verdict = accepting(root, source, site, options, anyway, state_dir)
    write(text, None)
    sys.exit(EXIT[verdict])


@main.command()
@from_options
@with_tools
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "nccl-xml", "svg", "dot"]),
    default="text",
    help="nccl-xml is a file for NCCL and RCCL (NCCL_TOPO_FILE). svg is a picture with rates and findings, dot a graph "
    "for Graphviz.  [default: text]",
)
@click.option("--output", "-o", metavar="FILE", type=click.Path(), help="Write to FILE instead of standard output.")
@click.option("--matrix", is_flag=True, help="Show the path types between GPUs and NICs, like nvidia-smi topo -m.")
@click.option("--rates", is_flag=True, help="Show the matrix with link rates (GB/s in one direction).")
@click.option("--copies", is_flag=True, help="Show the matrix with the typical rates of copies (GB/s).")
@click.option("--conflicts", is_flag=True, help="Show values that differ between two sources.")
@click.option(
    "--path", metavar="A B", nargs=2, help="With --format svg: mark the path between two devices and its bottleneck."
)
@redfish_option
def topology(
    root: str,
    source: tuple[str, ...],
    site: str | None,
    with_tools: bool,
    form: str,
    output: str | None,
    matrix: bool,
    rates: bool,
    copies: bool,
    conflicts: bool,
    path: tuple[str, str] | None,
    redfish: Controller | None,
) -> None:
    """Show the devices of this node and the rates of its links."""
    views = [name for name, on in (("rates", rates), ("copies", copies), ("conflicts", conflicts)) if on]
    if form != "text" and (matrix or views):
        raise click.UsageError(f"--matrix, --rates, --copies and --conflicts are text: leave out --format {form}")
    if len(views) > 1:
        raise click.UsageError(f"--{views[0]} and --{views[1]} exclude each other")
    if path and form != "svg":
        raise click.UsageError("--path marks a path in a picture: add --format svg")
    from .output import reports

    with clear_errors():
        if form == "svg":
            from .output.picture import picture_of

            write(picture_of(root, source, site, with_tools, path, reports.further(None, redfish)), output)
            return
        snapshot = reports.snapshot_of(root, source, site, with_tools, redfish=redfish)
    write(reports.rendered_topology(snapshot, views[0] if views else "matrix" if matrix else form), output)


@main.command(short_help="Record this node as text, to diagnose it elsewhere.")
@click.argument("file", type=click.Path())
@click.option("--root", metavar="DIR", type=click.Path(), default="/", help="Record the host with its root at DIR.")
@click.option(
    "--synthetic",
    metavar="NODE.toml",
    type=click.Path(),
    help="Build a node from a description instead of recording one.",
)
@click.option(
    "--level",
    type=click.Choice(["passive", "quick", "full"]),
    default="passive",
    help="Also measure, and record the results.  [default: passive]",
)
def capture(file: str, root: str, synthetic: str | None, level: Effort) -> None:
    """Record this node as text in FILE (- for standard output), to diagnose it elsewhere.

    Numbered stand-ins replace names, serial numbers and every other word that is not known to be harmless.
    `linkgauge diagnose --from FILE` gives the same findings as on the node.
    """
    from .capture import build_node, record_node

    with clear_errors():
        text = record_node(root, level) if synthetic is None else build_node(synthetic)
    write(text, None if file == "-" else file)


@main.command(short_help="Explain a finding's CODE and how to fix it.")
@click.argument("code", required=False, shell_complete=complete_code)
def explain(code: str | None) -> None:
    """Explain what a finding's CODE means, how to confirm it and how to fix it. Without CODE, list all codes."""
    from ...exporters.text import explain as explaining

    try:
        write(explaining.explain(code) if code else explaining.listing(), None)
    except KeyError:
        from ..inputs.site_file import no_code

        raise click.ClickException(no_code(str(code))) from None


@main.command(short_help="Print a repair ticket for one device.")
@click.argument("subject")
@from_options
@measuring_options
@state_dir
@click.option("--serial", is_flag=True, help="Include serial numbers. As root, linkgauge can read more of them.")
@click.option("--output", "-o", metavar="FILE", type=click.Path(), help="Write to FILE instead of standard output.")
def ticket(
    subject: str,
    root: str,
    source: tuple[str, ...],
    site: str | None,
    options: MeasurementOptions,
    state_dir: str | None,
    serial: bool,
    output: str | None,
) -> None:
    """Print a repair ticket for SUBJECT: any name of a device, or node for the whole node.

    Names: gpu3, 0000:1e:00.0, 1e:00.0, mlx5_0, mlx5_0/1, ib0, nvme0n1, a UUID, a serial number, "slot 4", "module 2".

    SUBJECT can be absent, if the service or accept recorded it. The ticket lists the location, part and firmware, the
    findings with their evidence, commands that confirm them, and the tests that ran. It contains serial numbers only
    with --serial.
    """
    with clear_errors():
        from .ticket import ticket as ticketing

        text = ticketing(root, source, site, subject, options, serial, state_dir)
    write(text, output)


@main.command(short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell. To use it: eval "$(linkgauge completion bash)"."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind
    write(kind(main, {}, "linkgauge", "_LINKGAUGE_COMPLETE").source(), None)
