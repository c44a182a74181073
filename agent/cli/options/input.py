"""Options that several commands share, and shell completion."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

OPS = (  # as in Flow.op; repeated here so that completion does not import the models
    "copy",
    "copy-sm",
    "read",
    "write",
    "send",
    "triad",
    "stream-copy",
    "egress",
    "loopback",
    "tcp",
    "all_reduce",
    "all_reduce-nvls",
    "all_gather",
    "reduce_scatter",
    "alltoall",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
)
VIA = ("nvlink", "xgmi", "c2c", "pcie", "host", "net")


def complete_code(context: object, parameter: object, incomplete: str) -> list[str]:
    """Complete codes of findings."""
    from ....models.catalog import codes

    return [code for code in codes() if code.startswith(incomplete)]


def complete_machine(context: object, parameter: object, incomplete: str) -> list[str]:
    """Complete names of machine types."""
    from ....models.catalog import machines

    return [machine.name for machine in machines() if machine.name.startswith(incomplete)]


def from_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of every command that reads a node."""
    texts = {
        "site": "The site file (TOML).  [default: /etc/linkgauge/site.toml]",
        "source": "Read a capture or outputs of tools instead of this machine: file, folder, archive, or - for "
        "standard input. Repeatable.",
        "root": "Read the host whose root is mounted at DIR (in a container).",
    }
    for option in (
        click.option("--site", metavar="FILE", type=click.Path(), help=texts["site"]),
        click.option("--from", "source", metavar="PATH", multiple=True, type=click.Path(), help=texts["source"]),
        click.option("--root", metavar="DIR", type=click.Path(), default="/", help=texts["root"]),
    ):
        command = option(command)
    return command


def job_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options about a job, which the command takes as `of_job`."""

    @wraps(command)
    def gathered(*args: Any, ranks: str | None, machine: str | None, reports: str | None, **others: Any) -> Any:
        from ...inputs.job_options import JobOptions

        return command(*args, of_job=JobOptions(ranks, machine, reports), **others)

    for option in (
        click.option(
            "--reports",
            metavar="DIR",
            type=click.Path(),
            help="Of a job (NCCL Inspector): also write the report of each node to DIR/NODE.json.",
        ),
        click.option(
            "--machine",
            metavar="TYPE",
            shell_complete=complete_machine,
            help="Of a job (NCCL Inspector): the type of its machines, for expected rates (linkgauge profile --list).",
        ),
        click.option(
            "--ranks",
            metavar="FILE",
            type=click.Path(),
            help="Of a job: a table with the columns rank,host,gpu and, if known, rail,leaf; or NCCL's log.",
        ),
    ):
        gathered = option(gathered)
    return gathered


with_tools = click.option(
    "--with-tools",
    is_flag=True,
    help="Also run nvidia-smi, lstopo and ibstat, if installed. They add missing values. topology --conflicts shows "
    "values that differ.",
)


state_dir = click.option(
    "--state-dir",
    metavar="DIR",
    type=click.Path(),
    help="Folder for the acceptance and the inventory of the node; with --from there is no default.  [default: "
    "/var/lib/linkgauge]",
)


def _ras_address(context: object, parameter: object, text: str | None) -> tuple[str, int] | None:
    """Host and port of the option --ras; without a value those of NCCL's own variable, or its default."""
    from ....probes.nccl_ras import address_of

    try:
        return None if text is None else address_of(text or os.environ.get("NCCL_RAS_ADDR") or "localhost")
    except ValueError as wrong:
        raise click.UsageError(f"--ras {wrong}") from None


ras_option = click.option(
    "--ras",
    metavar="[HOST:PORT]",
    is_flag=False,
    flag_value="",
    callback=_ras_address,
    help="Also ask NCCL in a running job which ranks are dead, absent or late. Without HOST:PORT: $NCCL_RAS_ADDR, or "
    "localhost:28028.",
)


def _controller(context: object, parameter: object, path: str | None) -> Any:
    """The file of the option --redfish."""
    if path is None:
        return None
    from ...inputs.redfish_file import read_controller
    from ...inputs.site_file import BadInput

    try:
        return read_controller(path, "--redfish")
    except BadInput as wrong:
        raise click.UsageError(str(wrong)) from None


redfish_option = click.option(
    "--redfish",
    metavar="FILE",
    type=click.Path(),
    callback=_controller,
    help="Also ask the management controller (BMC). FILE is TOML: url, user, password, ca_file.",
)

service_state_dir = click.option(
    "--state-dir",
    metavar="DIR",
    type=click.Path(),
    help="The state folder of `linkgauge serve`.  [default: /var/lib/linkgauge]",
)
