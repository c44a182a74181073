"""`linkgauge collective`: the time of one collective, its bound, and the formula of the bound."""

from __future__ import annotations

import click

from ..options.cluster import cluster_options, network_options
from ..options.input import from_options
from ..output.write import clear_errors, write

OPS = ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast", "send")
ALGORITHMS = ("ring", "tree", "nvls", "one-shot")
WITHIN = ("numa", "socket", "node", "unit")


class _Operation(click.Choice[str]):
    """An operation in any common spelling: all_to_all, all-to-all, AllToAll and alltoall are equal."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        plain = {one.replace("_", ""): one for one in OPS} | {"sendrecv": "send", "sendreceive": "send"}
        word = value.lower().replace("_", "").replace("-", "")
        return super().convert(plain.get(word, value), param, ctx)


@click.command()
@click.argument("op", metavar="OP", type=_Operation(OPS))
@click.option(
    "--size",
    metavar="BYTES",
    default="1GiB",
    help="Size as in nccl-tests: of alltoall the part of one GPU, else the array: 64MiB, 64MB.  [default: 1GiB]",
)
@cluster_options
@click.option("--within", type=click.Choice(WITHIN), help="Only the GPUs of one such part; unit: below one leaf.")
@click.option("--gpus", metavar="N", type=click.IntRange(2), help="Number of neighbouring GPUs.  [default: all]")
@click.option(
    "--sharded",
    metavar="Y",
    type=click.IntRange(1),
    default=1,
    help="The array is also sharded over Y neighbouring GPUs; each of them is in another group.",
)
@click.option("--active", metavar="K", type=int, help="A sparse alltoall: each part goes to K of the GPUs (experts).")
@click.option("--algo", type=click.Choice(ALGORITHMS), help="Algorithm of all_reduce.  [default: NCCL's choice]")
@click.option("--sharp", is_flag=True, help="All switches reduce arrays, also those between nodes (all_reduce).")
@click.option("--curve", is_flag=True, help="Show all sizes from 1 KiB to 16 GiB.")
@click.option("--plot", is_flag=True, help="Show --curve as a chart of bars.")
@network_options
@from_options
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "svg"]),
    default="text",
    help="svg: --curve as a picture.  [default: text]",
)
def collective(
    op: str,
    size: str,
    machine: str | None,
    nodes: int,
    within: str | None,
    gpus: int | None,
    sharded: int,
    active: int | None,
    algo: str | None,
    sharp: bool,
    curve: bool,
    plot: bool,
    network: str | None,
    switches: str | None,
    rails: bool,
    oversubscription: float,
    root: str,
    source: tuple[str, ...],
    site: str | None,
    form: str,
) -> None:
    """Show the time of a collective OP: the bound of the links with its formula, and what good machines reach.

    \b
    OP        all_reduce, all_gather, reduce_scatter, alltoall, broadcast, send (between two GPUs)
    linkgauge collective all_reduce --size 64MiB                    on this node
    linkgauge collective all_reduce --machine aws-p5.48xlarge --nodes 16 --plot
    linkgauge collective alltoall --active 4 --curve --machine nvidia-dgx-h100
    linkgauge collective all_gather --machine nvidia-dgx-h100 --nodes 128 --switches 64x400 --rails
    """  # noqa: D301 (click wants the character itself)
    if sharp and algo:
        raise click.UsageError(f"--sharp and --algo {algo} exclude each other")
    with clear_errors():
        from .cluster_spec import ClusterSpec
        from .collective_args import Group, rendered

        spec = ClusterSpec(machine, nodes, network, switches, rails, oversubscription, source, root, site)
        group = Group(within, gpus, sharded, active, "sharp" if sharp else algo or "auto")
        write(rendered(op, size, spec, group, curve or plot or form == "svg", plot, form), None)
