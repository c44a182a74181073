"""`linkgauge gate`: whether a job may run here."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from .options.input import service_state_dir
from .output.write import clear_errors

if TYPE_CHECKING:
    from ...models.report import Finding

CLOSED = 2  # as for a failed node; callers must keep the gate open on any other exit code
_SECONDS = 4.1  # for all calls of Slurm together, except the removal of a note
# A report is read once, in a job: no next health check tries again, and no limit of Slurm ends the call.
_TRIES, _OF_A_TRY = 3, 20.0  # seconds


@click.command()
@click.option(
    "--site",
    metavar="FILE",
    type=click.Path(),
    help="The site file with the table [gate] (TOML).  [default: /etc/linkgauge/site.toml]",
)
@service_state_dir
@click.option(
    "--strict",
    is_flag=True,
    help="Close the gate even if the site file does not enforce it: for jobs that can run on other nodes.",
)
@click.option(
    "--counted",
    is_flag=True,
    help="Close the gate only if the health check has drained the node. For prologs: a failed prolog drains the node, "
    "and only the health check limits the number of drained nodes.",
)
@click.option(
    "--slurm",
    is_flag=True,
    help="Run as Slurm's health check: drain the node if the gate is closed and not too many nodes are drained; resume "
    "it after 'linkgauge accept'.",
)
@click.option(
    "--fabric",
    metavar="FILE",
    type=click.Path(),
    help="Also use what a JSON report of linkgauge fabric says about this node: the code node-slow.",
)
@click.option("--node", metavar="NAME", help="Node name in Slurm.  [default: $SLURMD_NODENAME, or the host name]")
@click.option("--scontrol", metavar="PROGRAM", default="scontrol", show_default=True, help="The scontrol program.")
def gate(
    site: str | None,
    state_dir: str | None,
    strict: bool,
    counted: bool,
    slurm: bool,
    fabric: str | None,
    node: str | None,
    scontrol: str,
) -> None:
    """Check whether a job may start on this node.

    The command uses the last result of `linkgauge serve` and measures nothing. Exit code 0: open, a job may start; 2:
    closed, no job may start. The table [gate] of the site file lists the findings that close the gate. By default, the
    gate stays open, and this command prints what would close it. If the site file has an error, the gate is open.
    """
    if strict + counted + slurm > 1:
        raise click.UsageError("--strict, --counted and --slurm exclude each other: give one of them")
    if slurm:
        _health_check(site, state_dir, fabric, _name(node), scontrol)
        return
    with clear_errors():
        from ..gate.decision import decide
        from ..state.acceptance import folder_of

        folder = folder_of("/", state_dir)
        further = _measured(fabric, _name(node), folder)
        with _open_without_site():
            state = decide(site, folder, strict, further)
    closed, text = state.closed, str(state)
    if counted and closed:
        from ..slurm.health_check import record_of

        closed = record_of(folder).drained is not None
        text = text if closed else f"open until the health check has counted drained nodes; it is {text}"
    click.echo(text)
    raise SystemExit(CLOSED if closed else 0)


@contextmanager
def _open_without_site() -> Iterator[None]:
    """If the site file has an error, say so and end with the exit code of an open gate.

    The same file is on all nodes: with any other exit code, a mistake in it could stop all jobs.
    """
    from ...exporters.text.terminal import safe
    from ..inputs.site_file import BadInput

    try:
        yield
    except BadInput as wrong:
        click.echo(safe(f"Error: {wrong}"), err=True)
        click.echo("open, because the site file has an error")
        raise SystemExit(0) from None


def _name(node: str | None) -> str:
    """The name of this node in Slurm."""
    return node or os.environ.get("SLURMD_NODENAME") or os.uname().nodename.partition(".")[0]


def _measured(path: str | None, node: str, folder: str) -> tuple[Finding, ...]:
    """The findings of a measurement between nodes about this node; none if it was accepted since. Raises BadInput."""
    if path is None:
        return ()
    from ...models.fabric.report import node_findings
    from ...models.facts.units import from_utc
    from ..inputs.fabric_file import read_fabric
    from ..state import acceptance

    report = read_fabric(path, "--fabric")
    accepted = (acceptance.read(folder) or acceptance.Acceptance()).at
    return () if accepted and accepted > from_utc(report.taken_at) else tuple(node_findings(report, node))


def _health_check(site: str | None, state_dir: str | None, fabric: str | None, name: str, scontrol: str) -> None:
    """Run the health check. Its exit code is 0 in all cases, because Slurm ignores it."""
    until = time.monotonic() + _SECONDS
    with clear_errors():
        from ..gate.decision import decide
        from ..slurm.health_check import Check
        from ..slurm.scontrol import ScontrolError, Slurm
        from ..state.acceptance import folder_of

        folder = folder_of("/", state_dir)
        further = _measured(fabric, name, folder)
        with _open_without_site():
            state = decide(site, folder, further=further)
        for _ in range(1 if fabric is None else _TRIES):
            limit = until if fabric is None else time.monotonic() + _OF_A_TRY
            check = Check(decision=state, slurm=Slurm(program=scontrol, until=limit), node=name, folder=folder)
            try:
                message = check.run(time.time())
                break
            except (ScontrolError, OSError) as refused:
                message = f"nothing changed: {refused}"
    if message:
        click.echo(message)
