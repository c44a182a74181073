"""`linkgauge gate`: may a job run here?"""

from __future__ import annotations

import os
import socket
import time

import click

from .output.write import clear_errors

CLOSED = 2  # as a failed node; every other exit code but 0 is a fault, for which no gate may close
_SECONDS = 4.1  # for all calls of Slurm together, but for the one that takes a note away


@click.command(short_help="Say whether a job may run on this node.")
@click.option(
    "--site",
    metavar="FILE",
    type=click.Path(),
    help="The file whose table [gate] says when it closes (TOML).  [default: /etc/linkgauge/site.toml]",
)
@click.option(
    "--state-dir",
    metavar="DIR",
    type=click.Path(),
    help="Where `linkgauge serve` keeps what it found.  [default: /var/lib/linkgauge]",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Close also where the site file does not enforce it: for a job that can go to other nodes.",
)
@click.option(
    "--counted",
    is_flag=True,
    help="Close only a node that the health check has drained, since it counts them: for prologs, whose failure drains "
    "a node too, and which may not ask Slurm.",
)
@click.option(
    "--slurm",
    is_flag=True,
    help="Be Slurm's health check: drain the node where the gate is closed and there is room, give it back after "
    "'linkgauge accept'.",
)
@click.option("--node", metavar="NAME", help="Its name in Slurm.  [default: $SLURMD_NODENAME, or the host's name]")
@click.option("--scontrol", metavar="PROGRAM", default="scontrol", show_default=True, help="What asks Slurm.")
def gate(
    site: str | None, state_dir: str | None, strict: bool, counted: bool, slurm: bool, node: str | None, scontrol: str
) -> None:
    """Say whether a job may run on this node, from what `linkgauge serve` found last: nothing is measured.

    Exit code 0: it may; 2: it may not. What closes a gate stands in the site file, in the table [gate]; as it ships it
    closes nothing, and this says what it would close for.
    """
    if strict + counted + slurm > 1:
        raise click.UsageError("--strict, --counted and --slurm exclude each other: give one of them")
    if slurm:
        _health_check(site, state_dir, node, scontrol)
        return
    with clear_errors():
        from ..slurm.gate import view
        from ..state.acceptance import folder_of

        folder = folder_of("/", state_dir)
        seen = view(site, folder, strict)
    closed, text = seen.closed, str(seen)
    if counted and closed:
        from ..slurm.health_check import record_of

        closed = record_of(folder).drained is not None
        text = text if closed else f"open until the health check has counted drained nodes; it is {text}"
    click.echo(text)
    raise SystemExit(CLOSED if closed else 0)


def _health_check(site: str | None, state_dir: str | None, node: str | None, scontrol: str) -> None:
    """Ends with 0 whatever it did: Slurm takes nothing from it."""
    until = time.monotonic() + _SECONDS
    with clear_errors():
        from ..slurm.gate import view
        from ..slurm.health_check import Check
        from ..slurm.scontrol import Refused, Slurm
        from ..state.acceptance import folder_of

        folder = folder_of("/", state_dir)
        seen = view(site, folder)
        name = node or os.environ.get("SLURMD_NODENAME") or socket.gethostname().partition(".")[0]
        check = Check(view=seen, slurm=Slurm(program=scontrol, until=until), node=name, folder=folder)
        try:
            told = check.run(time.time())
        except (Refused, OSError) as refused:
            told = f"nothing changed: {refused}"
    if told:
        click.echo(told)
