"""Options that several commands have, and what shells complete."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

OPS = (  # as in Flow.op: completion must not wait for the model
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


def codes_begun(context: object, parameter: object, begun: str) -> list[str]:
    """Codes of findings that begin so, as shells complete them."""
    from ....models.catalog import codes

    return [code for code in codes() if code.startswith(begun)]


def machines_begun(context: object, parameter: object, begun: str) -> list[str]:
    """Names of machine types that begin so."""
    from ....models.catalog import machines

    return [machine.name for machine in machines() if machine.name.startswith(begun)]


def from_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of every command that looks at a node."""
    texts = {
        "site": "What the site knows of its nodes (TOML).  [default: /etc/linkgauge/site.toml]",
        "source": "A capture, or outputs of tools (file, folder, archive, - for a paste; may be given several times), "
        "instead of this machine.",
        "root": "Read the host whose root is mounted at DIR (in a container).",
    }
    for option in (
        click.option("--site", metavar="FILE", type=click.Path(), help=texts["site"]),
        click.option("--from", "source", metavar="PATH", multiple=True, type=click.Path(), help=texts["source"]),
        click.option("--root", metavar="DIR", type=click.Path(), default="/", help=texts["root"]),
    ):
        command = option(command)
    return command


with_tools = click.option(
    "--with-tools",
    is_flag=True,
    help="Ask nvidia-smi, lstopo and ibstat too, where they are installed: they fill gaps, and what they say otherwise "
    "is shown by topology --conflicts.",
)


state_dir = click.option(
    "--state-dir",
    metavar="DIR",
    type=click.Path(),
    help="Where it is kept that a node was accepted; with --from nowhere, unless it is given.  "
    "[default: /var/lib/linkgauge]",
)
