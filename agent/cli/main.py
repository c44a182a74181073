"""The command line."""

from __future__ import annotations

import os
import sys
import traceback
from contextlib import suppress
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any

import click

from ... import __version__
from .expect import expect
from .gate import gate
from .hold import hold, release
from .options.input import codes_begun, from_options, state_dir, with_tools
from .options.measuring import measuring_options
from .options.push import Sinks, sending_options
from .output.exits import BAD_INPUT, EXIT, INTERRUPTED, OUR_BUG, READER_LEFT
from .output.write import clear_errors, write
from .plan import plan
from .profile import profile
from .serve import serve
from .window import window

if TYPE_CHECKING:
    from ...models.report import Context
    from ...probes.measure.probe import Effort
    from ..measuring.session import MeasurementOptions


class Commands(click.Group):
    """Bad usage exits with 64, since 2 means a failed node; and a typo gets a suggestion."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run; one place turns errors into sentences on standard error."""
        # A stream that was closed (">&-") is None, which not everything below expects.
        sys.stdout, sys.stderr = (given or open(os.devnull, "w") for given in (sys.stdout, sys.stderr))  # noqa: SIM115
        output = sys.stdout
        if isinstance(output, TextIOWrapper):
            output.reconfigure(errors="backslashreplace")  # a terminal's alphabet may lack letters of a device's name
        try:
            return super().main(*args, **{**kwargs, "standalone_mode": False})
        except (click.exceptions.Abort, KeyboardInterrupt):
            sys.exit(INTERRUPTED)
        except SystemExit as leave:
            # Where the reader of our output has left, click wraps standard output and leaves with 1: our "degraded".
            sys.exit(leave.code if sys.stdout is output else READER_LEFT)
        except click.ClickException as wrong:
            error = wrong
        except OSError as refused:
            error = click.ClickException(f"{refused.filename or 'standard output'}: {refused.strerror or refused}")
        except Exception:  # nothing of ours may look like "degraded", which Python's own 1 would
            traceback.print_exc()
            click.echo("This is a fault in linkgauge itself: please report it, with a capture.", err=True)
            sys.exit(OUR_BUG)
        with suppress(OSError):  # a disk may be full under standard error too
            error.show()
        sys.exit(BAD_INPUT)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="linkgauge")
def main() -> None:
    """Finds the links of a GPU node that are slower than they should be.

    Exit codes of diagnose: 0 ok, 1 degraded, 2 failed, 3 unknown, 64 bad usage or input.
    """


@main.command(short_help="Say what is wrong with the links of a node.")
@from_options
@with_tools
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "prometheus"]),
    default="text",
    help="prometheus with --output FILE.prom is for node_exporter's textfile collector.  [default: text]",
)
@sending_options
@measuring_options
@click.option(
    "--context",
    type=click.Choice(["host", "job"]),
    default="host",
    help="Where this runs: inside a job its limits on locked and shared memory are judged too.  [default: host]",
)
@state_dir
@click.option(
    "--ignore",
    metavar="CODE[:SUBJECT][=REASON]",
    multiple=True,
    shell_complete=codes_begun,
    help="A known finding that does not count; the report says so. May be given several times.",
)
@click.option(
    "--job",
    metavar="MODEL,tp=8,...",
    help="Say what findings cost this training, written as for linkgauge plan, with ckpt=2.3TB for its checkpoints.",
)
@click.option(
    "--output", "-o", metavar="FILE", type=click.Path(), help="Write the report there instead of standard output."
)
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
    output: str | None,
    sinks: Sinks,
) -> None:
    """Say what is wrong with the links of this node, or of a recorded one.

    Needs no root. Measures for some seconds if the node is idle: --level says how much. Ctrl-C ends that, and what was
    found so far is told.
    """
    from .output import reports as looking

    with clear_errors():
        report, interrupted = looking.report_of(
            root, source, site, options, context, with_tools, ignore, state_dir, job
        )
    if form != "prometheus":
        write(looking.told(report, form, colour=output is None and sys.stdout.isatty()), output)
    if form == "prometheus" or any(sinks):
        from .push import send

        with clear_errors():
            send(report, site, sinks, output, as_file=form == "prometheus")
    sys.exit(INTERRUPTED if interrupted else EXIT[report.verdict])


@main.command(short_help="Mark a node as good after a repair.")
@from_options
@measuring_options
@click.option("--anyway", is_flag=True, help="Also a node with findings, or one that could not be judged.")
@state_dir
def accept(
    root: str,
    source: tuple[str, ...],
    site: str | None,
    options: MeasurementOptions,
    anyway: bool,
    state_dir: str | None,
) -> None:
    """Mark this node as good, after a repair or when it is taken over.

    What was logged and counted before is history from then on, and rates are compared with those that were measured
    now. A node on which something is wrong now is refused, with the list and the exit code of diagnose.
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
    type=click.Choice(["text", "json", "nccl-xml"]),
    default="text",
    help="nccl-xml is what NCCL and RCCL read with NCCL_TOPO_FILE.  [default: text]",
)
@click.option("--output", "-o", metavar="FILE", type=click.Path(), help="Write there instead of standard output.")
@click.option("--matrix", is_flag=True, help="How GPUs and NICs reach each other, as nvidia-smi topo -m prints it.")
@click.option("--rates", is_flag=True, help="The matrix with GB/s in one direction instead of types of path.")
@click.option("--copies", is_flag=True, help="The matrix with GB/s that a copy typically reaches.")
@click.option("--conflicts", is_flag=True, help="Where two sources disagree, with both values.")
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
) -> None:
    """Show what is in this node and what its links carry."""
    views = [name for name, on in (("rates", rates), ("copies", copies), ("conflicts", conflicts)) if on]
    if form != "text" and (matrix or views):
        raise click.UsageError(f"--matrix, --rates, --copies and --conflicts are text: leave out --format {form}")
    if len(views) > 1:
        raise click.UsageError(f"--{views[0]} and --{views[1]} exclude each other")
    from .output import reports as looking

    with clear_errors():
        snapshot = looking.snapshot_of(root, source, site, with_tools)
    write(looking.shown(snapshot, views[0] if views else "matrix" if matrix else form), output)


@main.command(short_help="Record this node as text, to look at it elsewhere.")
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
    help="Also measure, and record what was measured.  [default: passive]",
)
def capture(file: str, root: str, synthetic: str | None, level: Effort) -> None:
    """Record this node as text in FILE (- for standard output), to look at it elsewhere.

    Serial numbers, GUIDs, MAC addresses and host names are replaced. `linkgauge diagnose --from FILE` then gives the
    same report.
    """
    from .capture import build_node, record_node

    with clear_errors():
        text = record_node(root, level) if synthetic is None else build_node(synthetic)
    write(text, None if file == "-" else file)


@main.command(short_help="Say what a finding's CODE means and how to mend it.")
@click.argument("code", required=False, shell_complete=codes_begun)
def explain(code: str | None) -> None:
    """Say what a finding's CODE means, how to confirm it and how to mend it; without one, list the codes."""
    from ...exporters.text import explain as explaining

    try:
        write(explaining.explain(code) if code else explaining.listing(), None)
    except KeyError:
        from ..inputs.resolve import no_code

        raise click.ClickException(no_code(str(code))) from None


@main.command(short_help="Print what a technician or vendor needs about one thing.")
@click.argument("subject")
@from_options
@measuring_options
@click.option("--serial", is_flag=True, help="With serial numbers: root may read more of them.")
@click.option("--output", "-o", metavar="FILE", type=click.Path(), help="Write there instead of standard output.")
def ticket(
    subject: str,
    root: str,
    source: tuple[str, ...],
    site: str | None,
    options: MeasurementOptions,
    serial: bool,
    output: str | None,
) -> None:
    """Print what a technician or vendor needs about SUBJECT: a PCI address, gpu3, mlx5_0/1, nvme2, or node for all.

    Where it is, which part with which firmware, what is wrong with the lines that show it, how to confirm it, and which
    tests were done. Serial numbers only with --serial.
    """
    with clear_errors():
        from .ticket import ticket as ticketing

        text = ticketing(root, source, site, subject, options, serial)
    write(text, output)


@main.command(short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell: eval "$(linkgauge completion bash)"."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind
    write(kind(main, {}, "linkgauge", "_LINKGAUGE_COMPLETE").source(), None)


for command in (expect, gate, hold, plan, profile, release, serve, window):
    main.add_command(command)
