"""`linkgauge profile`: types of machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .options.input import from_options, machines_begun
from .options.measuring import measuring_options
from .output.write import clear_errors, write

if TYPE_CHECKING:
    from ..measuring.session import MeasurementOptions


@click.command(short_help="Show or write what a type of machine should have.")
@click.argument("machine", required=False, shell_complete=machines_begun)
@from_options
@click.option("--list", "every", is_flag=True, help="The machine types that are known.")
@click.option("--from-node", is_flag=True, help="Write a type for the site file from this node, which was accepted.")
@click.option("--name", metavar="NAME", help="With --from-node: what to call it.  [default: our-node]")
@measuring_options
@click.option("--anyway", is_flag=True, help="With --from-node: also from a node with findings.")
@click.option("--output", "-o", metavar="FILE", type=click.Path(), help="Write there instead of standard output.")
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
    """Show what MACHINE should have, or the type that this node is recognised as; or write one from this node.

    What --from-node writes is TOML for the site file: counts, rates of ports, modes of GPUs, and, where the node is
    idle, what its flows reached. Nodes like it are judged by that before any catalog.
    """
    if sum((every, from_node, machine is not None)) > 1:
        raise click.UsageError("MACHINE, --list and --from-node exclude each other")
    if (name is not None or anyway) and not from_node:
        raise click.UsageError("--name and --anyway are about a type that --from-node writes")
    with clear_errors():
        from . import profile_logic as profiling

        text = profiling.chosen(root, source, site, machine, every, from_node, name, options, anyway)
    write(text, output)
