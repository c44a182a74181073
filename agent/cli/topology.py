"""`linkgauge topology`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .options.input import from_options, redfish_option, with_tools
from .output.write import clear_errors, write

if TYPE_CHECKING:
    from ...probes.redfish import Controller


@click.command()
@from_options
@with_tools
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "nccl-xml", "hwloc-xml", "topograph-json", "svg", "dot"]),
    default="text",
    help="svg is a picture with rates and findings, nccl-xml a file for NCCL and RCCL (NCCL_TOPO_FILE), hwloc-xml for "
    "hwloc (HWLOC_XMLFILE), topograph-json the place of the node for Topograph, dot for Graphviz.  [default: text]",
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
