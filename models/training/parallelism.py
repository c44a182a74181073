"""The layout of a training over GPUs, and the constraints on a layout."""

from __future__ import annotations

import math
from collections.abc import Iterator

from msgspec import Struct

from ..site.schema import Network

# Short names of the fields of Layout.
SHORT_NAMES = {
    "tp": "tensor",
    "pp": "pipeline",
    "dp": "data",
    "ep": "expert",
    "zero": "zero",
    "micro": "micro",
    "interleave": "interleave",
}


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
    """Degree of each kind of parallelism. Tensor ranks are neighbours, then experts and data; stages are farthest
    apart.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    expert: int = 1  # data ranks that together hold all experts
    zero: int = 1  # sharded over the data ranks: 0 nothing, 1 optimizer, 2 also gradients, 3 also weights (FSDP)
    micro: int = 1  # sequences in a micro-batch
    interleave: int = 1  # parts of the model per stage
    recompute: bool = False  # repeat the forward pass instead of storing its activations

    @property
    def gpus(self) -> int:
        """Number of GPUs."""
        return self.tensor * self.pipeline * self.data

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
        return ",".join([*(f"{short}={value}" for short, value in listed), *["recompute"] * self.recompute])


_SHOWN = ("tensor", "pipeline", "data")


def check(job: Job, layout: Layout, gpus: int) -> None:
    """Raise Impossible with the first broken constraint."""
    for sentence in violations(job, layout, gpus):
        raise Impossible(sentence)


def violations(job: Job, layout: Layout, gpus: int) -> Iterator[str]:
    """The constraints that a layout breaks."""
    network = job.network
    least = min(layout.tensor, layout.pipeline, layout.data, layout.expert, layout.micro, layout.interleave)
    if least < 1:
        yield "tp, pp, dp, ep, micro and interleave must be at least 1"
        return
    if layout.gpus != gpus:
        yield (f"tp={layout.tensor} x pp={layout.pipeline} x dp={layout.data} is {layout.gpus} GPUs, not {gpus}")
    if layout.tensor > network.heads or network.heads % layout.tensor:
        yield f"tp={layout.tensor} does not divide the {network.heads} heads of {network.name}"
    if layout.pipeline * layout.interleave > network.layers:
        yield (
            f"pp={layout.pipeline} x interleave={layout.interleave} is more than the "
            f"{network.layers} layers of {network.name}"
        )
    if layout.interleave > 1 and layout.pipeline == 1:
        yield "interleave requires a pipeline: set pp=2 or more"
    elif not divides_stages(network, layout.pipeline, layout.interleave):
        yield (
            f"interleave={layout.interleave} does not divide the {math.ceil(network.layers / layout.pipeline)} layers "
            f"of a stage"
        )
    yield from _batch_violations(job, layout)
    yield from _expert_violations(network, layout)


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
    if layout.zero not in range(4):
        yield f"zero={layout.zero}: 0 shards nothing, 1 the optimizer, 2 gradients too, 3 weights too"


def _expert_violations(network: Network, layout: Layout) -> Iterator[str]:
    if layout.expert == 1:
        return
    if not network.experts:
        yield f"ep={layout.expert}: {network.name} has no experts"
    elif network.experts % layout.expert:
        yield f"ep={layout.expert} does not divide the {network.experts} experts of {network.name}"
    elif layout.data % layout.expert:
        yield f"ep={layout.expert} does not divide dp={layout.data}: experts are spread over data ranks"
