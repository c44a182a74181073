"""`linkgauge profile`: machine types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..options.input import complete_machine, from_options
from ..options.measuring import measuring_options
from ..output.write import clear_errors, write

if TYPE_CHECKING:
    from ...measuring.session import MeasurementOptions


@click.command()
@click.argument("machine", required=False, shell_complete=complete_machine)
@from_options
@click.option("--list", "every", is_flag=True, help="List the known machine types.")
@click.option(
    "--from-node", is_flag=True, help="Write a machine type for the site file from this node. It must be a good node."
)
@click.option("--name", metavar="NAME", help="With --from-node: name of the type.  [default: our-node]")
@measuring_options
@click.option("--anyway", is_flag=True, help="With --from-node: also use a node with findings.")
@click.option("--output", "-o", metavar="FILE", type=click.Path(), help="Write to FILE instead of standard output.")
def profile(
    machine: str | None,
    root: str,
    source: tuple[str, ...],
    site: str | None,
    every: bool,
    from_node: bool,
    name: str | None,
    options: MeasurementOptions,
    anyway: bool,
    output: str | None,
) -> None:
    """Show the machine type MACHINE. Without MACHINE, show the type of this node.

    --from-node writes a new type as TOML for the site file: device counts, port rates, GPU modes and, if the node is
    idle, the measured rates of its flows. For nodes of this type, these values have priority over the catalog.
    """
    if sum((every, from_node, machine is not None)) > 1:
        raise click.UsageError("MACHINE, --list and --from-node exclude each other")
    if (name is not None or anyway) and not from_node:
        raise click.UsageError("--name and --anyway need --from-node")
    with clear_errors():
        from .machine_types import profile_text

        text = profile_text(root, source, site, machine, every, from_node, name, options, anyway)
    write(text, output)
