"""`linkgauge plan`: the step time of a training job, its bottleneck, and better layouts."""

from __future__ import annotations

import click

from .options.input import complete_machine, from_options
from .output.write import clear_errors, write

_TEXTS = {
    "machine": "The type of the machines (linkgauge profile --list).  [default: this node's]",
    "network": "NICs of a node and Gb/s of each, if the machine type does not define them or defines other values.",
    "switches": "Ports of a switch and Gb/s of each; the network is a tree of such switches.  "
    "[default: full rate between nodes]",
    "rails": "NIC i of each node connects to leaf switch i of its group of nodes.",
    "oversubscription": "Downlinks per uplink of a leaf switch.",
    "plot": "Draw a chart (needs: pip install 'linkgauge[plot]').",
}


@click.command(short_help="Predict the step time of a training job, and find the best layout.")
@click.argument("job")
@click.option("--machine", metavar="NAME", shell_complete=complete_machine, help=_TEXTS["machine"])
@click.option("--nodes", metavar="N", type=int, default=1, help="Number of machines.  [default: 1]")
@click.option("--sweep", is_flag=True, help="Try all layouts and show the best.")
@click.option(
    "--top",
    metavar="N",
    type=click.IntRange(1, 1000),
    default=10,
    help="With --sweep: number of layouts to show.  [default: 10]",
)
@click.option(
    "--train", metavar="TOKENS", help="Also show the time of a training with this number of tokens: 15T, 300B."
)
@click.option("--plot", metavar="FILE.png|svg", type=click.Path(), help=_TEXTS["plot"])
@click.option("--network", metavar="NxGb/s", help=_TEXTS["network"])
@click.option("--switches", metavar="NxGb/s", help=_TEXTS["switches"])
@click.option("--rails", is_flag=True, help=_TEXTS["rails"])
@click.option("--oversubscription", metavar="X", type=float, default=1.0, help=_TEXTS["oversubscription"])
@from_options
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="[default: text]")
@click.option("--output", "-o", metavar="FILE", type=click.Path(), help="Write to FILE instead of standard output.")
def plan(
    job: str,
    machine: str | None,
    nodes: int,
    sweep: bool,
    top: int,
    train: str | None,
    plot: str | None,
    network: str | None,
    switches: str | None,
    rails: bool,
    oversubscription: float,
    root: str,
    source: tuple[str, ...],
    site: str | None,
    form: str,
    output: str | None,
) -> None:
    """Predict the step time of a training job on a number of machines, its bottleneck, and a better layout.

    \b
    JOB is a model and its layout: llama3-70b,tp=8,pp=4,dp=64,tokens=4M
      models   llama3-8b llama3-70b llama3-405b mixtral-8x7b deepseek-v3 gpt-oss-120b bloom-176b
      tp pp ep tensor, pipeline, expert parallelism; dp: data parallelism (the rest)
      zero     shards over dp: 0 nothing, 1 optimizer (default), 2 + gradients, 3 + weights (FSDP)
      micro    sequences per micro-batch; interleave: model parts per stage; recompute: save memory
      tokens   tokens per step (4M); seq: tokens per sequence
    \b
    linkgauge plan llama3-70b,tp=8,zero=3 --machine nvidia-dgx-h100 --nodes 64
    linkgauge plan llama3-405b --machine nvidia-dgx-h100 --nodes 2048 --sweep --plot best.png
    linkgauge plan mixtral-8x7b,ep=8 --nodes 16                     16 machines like this one
    linkgauge plan llama3-8b --machine aws-p5.48xlarge --nodes 2 --from all_reduce.txt
                                                      with rates that nccl-tests measured there
    """  # noqa: D301 (click wants the character itself)
    with clear_errors():
        from . import plan_output
        from .plan_api import Where

        where = Where(machine, nodes, network, switches, rails, oversubscription, source, root, site)
        write(plan_output.rendered(job, where, top if sweep else None, form, plot, train), output)
