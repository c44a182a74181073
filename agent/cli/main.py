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
    state_dir,
)
from .options.measuring import measuring_options
from .output.exits import EXIT
from .output.write import clear_errors, write

if TYPE_CHECKING:
    from ...probes.measure.probe import Effort
    from ..measuring.session import MeasurementOptions


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="linkgauge")
def main() -> None:
    """Find the links of a GPU node that are slower than they should be.

    Exit codes of diagnose: 0 ok, 1 degraded, 2 failed, 3 unknown, 64 wrong usage or input.
    """


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
    from ...exporters.commands import explain as explaining

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
