"""`linkgauge plan`: the step time of a training job, its bottleneck, and better layouts."""

from __future__ import annotations

import click

from ..options.cluster import cluster_options, network_options
from ..options.input import from_options
from ..output.write import clear_errors, write

_HELP = """Predict the step time of a training job on a number of machines, its bottleneck, and a better layout.

\b
JOB is a model and its layout: llama3-70b,tp=8,pp=4,dp=64,tokens=4M; without a layout, the fastest one
  models   llama3-8b llama3-70b llama3-405b mixtral-8x7b deepseek-v3 gpt-oss-120b bloom-176b gpt3-175b,
           a config.json of Hugging Face, or a [[network]] of the site file
  tp cp pp ep  tensor, context, pipeline, expert parallelism; dp: data parallelism (the rest)
  zero     shards over dp: 0 nothing, 1 optimizer (default), 2 + gradients, 3 + weights (FSDP)
  micro    sequences per micro-batch; interleave: model parts per stage
  recompute    repeat whole layers to save memory (scores, norms and activations always are);
               recompute=4: only 4 layers of each stage
  fp8 fp4      matrix products and messages to experts; fused: one kernel for all experts of a GPU
  deepep       or hybridep: one message per token and node, and fewer launches
  zb dualpipe  pipelines that fill gaps with weight gradients; vocab: all stages share the output
  overlap      messages to experts during compute
  graphs       CUDA graphs launch the whole step; attention-graphs: all but the experts
  tokens   tokens per step (4M, 1k per GPU), or gbs: sequences per step; seq: tokens per sequence
  ckpt     size of a checkpoint (2.3TB); its time needs [[storage]] in the site file
\b
linkgauge plan llama3-70b,tp=8,zero=3 --machine nvidia-dgx-h100 --nodes 64
linkgauge plan deepseek-v3,pp=16,ep=64,fp8,dualpipe,deepep,recompute,gbs=15360 --machine hgx-h100-8 --nodes 256
linkgauge plan llama3-70b,tp=8,zero=3,recompute --machine nvidia-dgx-h100 --nodes 64 --network 8x200
                                        one NIC at half rate: as slow as if all were, for all wait for it
linkgauge plan llama3-405b --machine nvidia-dgx-h100 --nodes 2048 --sweep --plot best.svg
linkgauge plan Qwen3/config.json,tp=4,gbs=512 --nodes 16        16 machines like this one
linkgauge plan llama3-8b --machine aws-p5.48xlarge --nodes 2 --from nccl-tests.txt
"""  # click wants the character \b before paragraphs that keep their lines


@click.command(help=_HELP)
@click.argument("job")
@cluster_options
@click.option("--sweep", is_flag=True, help="Try all layouts that have the parts of JOB, and show the best.")
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
@click.option("--plot", metavar="FILE.svg", type=click.Path(), help="Draw the parts of the step of each layout.")
@network_options
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
    """Print the plan or the sweep."""
    with clear_errors():
        from . import plan_output
        from .cluster_spec import ClusterSpec

        spec = ClusterSpec(machine, nodes, network, switches, rails, oversubscription, source, root, site)
        write(plan_output.rendered(job, spec, top if sweep else None, form, plot, train), output)
