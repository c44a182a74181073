"""The layout of a training over GPUs, and the constraints on a layout."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, TypeAlias

from msgspec import Struct

from ..site.schema import Network

Precision: TypeAlias = Literal["bf16", "fp8", "fp4"]
Schedule: TypeAlias = Literal["1f1b", "zb", "dualpipe"]
Graphs: TypeAlias = Literal["none", "attention", "step"]
Value: TypeAlias = bool | int | str  # of a field of Layout

# Short names of the fields of Layout.
SHORT_NAMES = {
    "tp": "tensor",
    "cp": "context",
    "pp": "pipeline",
    "dp": "data",
    "ep": "expert",
    "zero": "zero",
    "micro": "micro",
    "interleave": "interleave",
    "recompute": "recomputed",
}
# Words of a layout: the field of Layout and its value. A layout is written with the first of equal words.
FLAGS: dict[str, tuple[str, bool | str]] = {
    "recompute": ("recompute", True),
    "fp8": ("precision", "fp8"),
    "fp4": ("precision", "fp4"),
    "zb": ("schedule", "zb"),
    "dualpipe": ("schedule", "dualpipe"),
    "deepep": ("per_node", True),
    "hybridep": ("per_node", True),
    "vocab": ("vocabulary", True),
    "overlap": ("overlap", True),
    "attention-graphs": ("graphs", "attention"),
    "graphs": ("graphs", "step"),
    "fused": ("fused", True),
}
_EQUAL = ("hybridep",)  # the same as an earlier word


class Impossible(ValueError):
    """The constraint that a layout breaks, as a sentence for the user."""


class Job(Struct, frozen=True):
    """The model and one training step."""

    network: Network
    tokens: int  # per step
    sequence: int

    @property
    def sequences(self) -> int:
        """Sequences per step."""
        return self.tokens // self.sequence


class Layout(Struct, frozen=True):
    """Degree of each kind of parallelism. Tensor ranks are neighbours, then context, experts and data; stages are
    farthest apart.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    expert: int = 1  # neighbouring ranks of a stage that together hold all experts, each one whole
    zero: int = 1  # sharded over the data ranks: 0 nothing, 1 optimizer, 2 also gradients, 3 also weights (FSDP)
    micro: int = 1  # sequences in a micro-batch
    interleave: int = 1  # parts of the model per stage
    recompute: bool = False  # repeat the forward pass instead of storing its activations
    recomputed: int = 0  # with it: so many layers of each stage; 0: all (Megatron-LM --recompute-num-layers)
    context: int = 1  # ranks that share the tokens of a sequence; keys and values pass between them
    precision: Precision = "bf16"  # of matrix products
    schedule: Schedule = "1f1b"  # of micro-batches over the stages
    per_node: bool = False  # a token crosses the network once per node and is forwarded over NVLink
    vocabulary: bool = False  # all stages share the output matrix
    overlap: bool = False  # messages to experts during the compute of another micro-batch, without DualPipe
    graphs: Graphs = "none"  # CUDA graphs replay attention and routing, or the whole step: the host launches less
    fused: bool = False  # one kernel computes the products of all experts of a GPU, and what is between them

    @property
    def gpus(self) -> int:
        """Number of GPUs."""
        return self.tensor * self.context * self.pipeline * self.data

    @property
    def replicas(self) -> int:
        """Ranks that average their gradients. DualPipe has each stage twice."""
        return self.data * self.context * self.copies

    @property
    def copies(self) -> int:
        """Stages of the model on one GPU that belong to different ends of the pipeline."""
        return 2 if self.schedule == "dualpipe" else 1

    @property
    def expert_shards(self) -> int:
        """GPUs of a stage that together hold its experts: the expert ranks, or else the tensor ranks."""
        return self.expert if self.expert > 1 else self.tensor

    def repeated(self, network: Network) -> float:
        """The share of a stage's layers that are recomputed."""
        layers = math.ceil(network.layers / self.pipeline)
        return min(1.0, (self.recomputed or layers) / layers) if self.recompute else 0.0

    def tokens(self, job: Job) -> int:
        """Tokens of a micro-batch on one context rank."""
        return self.micro * job.sequence // self.context

    def micro_batches(self, job: Job) -> int:
        """Micro-batches per stage and step."""
        return job.sequences // (self.data * self.micro)

    def __str__(self) -> str:
        """The format of `linkgauge plan`. Fields with default values are left out."""
        usual = Layout()
        listed = [
            (short, getattr(self, name))
            for short, name in SHORT_NAMES.items()
            if name in _SHOWN or getattr(self, name) != getattr(usual, name)
        ]
        words = [
            word
            for word, (field, value) in FLAGS.items()
            if getattr(self, field) == value and word not in _EQUAL and not (word == "recompute" and self.recomputed)
        ]
        return ",".join([*(f"{short}={value}" for short, value in listed), *words])


_SHOWN = ("tensor", "pipeline", "data")
_NOT_DEGREES = ("zero", "recompute")


def check(job: Job, layout: Layout, gpus: int) -> None:
    """Raise Impossible with the first broken constraint."""
    for sentence in violations(job, layout, gpus):
        raise Impossible(sentence)


def violations(job: Job, layout: Layout, gpus: int) -> Iterator[str]:
    """The constraints that a layout breaks."""
    network = job.network
    numbers = {short: getattr(layout, name) for short, name in SHORT_NAMES.items() if short not in _NOT_DEGREES}
    if min(numbers.values()) < 1:
        yield f"{', '.join(list(numbers)[:-1])} and interleave must be at least 1"
        return
    if layout.gpus != gpus:
        context = f" x cp={layout.context}" if layout.context > 1 else ""
        yield (
            f"tp={layout.tensor}{context} x pp={layout.pipeline} x dp={layout.data} is {layout.gpus} GPUs, not {gpus}"
        )
    yield from tensor_violations(network, layout.tensor)
    yield from _stage_violations(network, layout)
    yield from _batch_violations(job, layout)
    yield from _schedule_violations(job, layout)
    yield from _expert_violations(network, layout)


def tensor_violations(network: Network, tensor: int) -> Iterator[str]:
    """Megatron-LM divides heads, groups of queries, and the widths of the feed-forward layers."""
    if tensor > network.heads or network.heads % tensor:
        yield f"tp={tensor} does not divide the {network.heads} heads of {network.name}"
    elif network.kv_heads % tensor and tensor % network.kv_heads:
        yield f"tp={tensor}: neither a divisor nor a multiple of the {network.kv_heads} key and value heads"
    for width in {network.feed_forward, network.expert_width}:
        if width % tensor:
            yield f"tp={tensor} does not divide the feed-forward width {width} of {network.name}"


def _stage_violations(network: Network, layout: Layout) -> Iterator[str]:
    if layout.pipeline * layout.interleave > network.layers:
        yield (
            f"pp={layout.pipeline} x interleave={layout.interleave} is more than the "
            f"{network.layers} layers of {network.name}"
        )
    if layout.recomputed < 0 or layout.recomputed > math.ceil(network.layers / layout.pipeline):
        yield (
            f"recompute={layout.recomputed}: a stage has {math.ceil(network.layers / layout.pipeline)} layers; "
            "recompute without a number repeats all of them"
        )
    if layout.interleave > 1 and layout.pipeline == 1:
        yield "interleave requires a pipeline: set pp=2 or more"
    elif not divides_stages(network, layout.pipeline, layout.interleave):
        yield (
            f"interleave={layout.interleave} does not divide the {math.ceil(network.layers / layout.pipeline)} layers "
            f"of a stage"
        )


def divides_stages(network: Network, pipeline: int, interleave: int) -> bool:
    """Whether each stage has whole parts. The first and the last stage may have one layer less (LLaMA-3 405B)."""
    stage = math.ceil(network.layers / pipeline)
    shorter = network.layers + 2 == stage * pipeline and (stage - 1) % interleave == 0
    return interleave == 1 or network.layers % (pipeline * interleave) == 0 or shorter


def _batch_violations(job: Job, layout: Layout) -> Iterator[str]:
    if job.tokens % job.sequence:
        near = max(1, round(job.tokens / job.sequence))
        yield (
            f"{job.tokens} tokens are not a multiple of the sequence length {job.sequence}: write gbs={near} "
            f"(tokens={near * job.sequence})"
        )
        return
    if job.sequences % (layout.data * layout.micro):
        yield (
            f"{job.sequences} sequences in a step do not divide into dp={layout.data} x micro={layout.micro}: "
            "change tokens, dp or micro"
        )
    elif layout.interleave > 1 and layout.micro_batches(job) % layout.pipeline:
        yield (
            f"interleave={layout.interleave} needs micro-batches ({layout.micro_batches(job)}) in multiples of "
            f"pp={layout.pipeline}"
        )
    if layout.context > 1 and job.sequence % (2 * layout.context):
        yield (
            f"cp={layout.context}: {job.sequence} tokens of a sequence do not divide into {2 * layout.context} parts, "
            "two for each rank"
        )
    if layout.zero not in range(4):
        yield f"zero={layout.zero}: 0 shards nothing, 1 the optimizer, 2 gradients too, 3 weights too"


def _schedule_violations(job: Job, layout: Layout) -> Iterator[str]:
    """Zero Bubble needs a micro-batch for each stage; DualPipe feeds both ends (deepseek-ai/DualPipe, dualpipe.py)."""
    if layout.vocabulary and layout.pipeline == 1:
        yield "vocab requires a pipeline: set pp=2 or more"
    if layout.schedule == "1f1b":
        return
    batches, stages = layout.micro_batches(job), layout.pipeline
    if stages == 1:
        yield f"{layout.schedule} requires a pipeline: set pp=2 or more"
    elif layout.interleave > 1:
        yield f"{layout.schedule} and interleave exclude each other"
    elif layout.schedule == "zb" and batches < stages:
        yield f"zb needs at least pp={stages} micro-batches, not {batches}: change tokens, dp or micro"
    elif layout.schedule == "dualpipe" and (stages % 2 or batches % 2 or batches < 2 * stages):
        yield f"dualpipe needs an even pp and an even number of micro-batches, at least 2 x pp: not {batches}"


def _expert_violations(network: Network, layout: Layout) -> Iterator[str]:
    if layout.fused and not (network.experts and layout.precision != "bf16"):
        yield "fused requires a model with experts, and fp8 or fp4"
    if layout.expert == 1:
        for word in ("deepep", "overlap"):
            if getattr(layout, FLAGS[word][0]):
                yield f"{word} requires expert parallelism: set ep=2 or more"
        return
    if not network.experts:
        yield f"ep={layout.expert}: {network.name} has no experts"
    elif network.experts % layout.expert:
        yield f"ep={layout.expert} does not divide the {network.experts} experts of {network.name}"
    elif (ranks := layout.tensor * layout.context * layout.data) % layout.expert:
        context = f" x cp={layout.context}" if layout.context > 1 else ""
        shown = f"tp={layout.tensor}{context} x dp={layout.data}"
        most = math.gcd(network.experts, ranks)
        yield f"ep={layout.expert} does not divide {shown}: the GPUs of a stage share the experts, so at most ep={most}"
