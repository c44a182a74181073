"""The text and JSON of `linkgauge plan`: step time, memory, bottleneck and a better layout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ...models.catalog.filesystems import FileSystem
from ...models.training.checkpoint import Checkpoint
from ...models.training.input_data import Reading
from ...models.training.memory import USABLE
from ...models.training.planner import BUBBLE, COMPUTE, Plan, Sweep, binding, training_seconds
from ...models.training.step_time import Step
from ..text.terminal import hanging, safe, wrap

WIDTH = 98
_LABEL = 14
_COLUMNS = 54  # of the numbers beside a layout, at most
_OVER = {
    "node": "links inside nodes",
    "fabric": "NICs",
    "leaf": "NICs and leaves",
    "spine": "leaves to spines",
    "core": "spines to cores",
}
_SAYS = {
    COMPUTE: "computing",
    "tensor": "its tensor messages",
    "context": "keys and values of other parts of the sequences",
    "expert": "its expert messages",
    "data": "gradients and weights",
    "pipeline": "messages between stages",
    "launch": "the host, which launches kernels more slowly than the GPU computes: a larger micro, or graphs",
    BUBBLE: "stages that wait for the first and the last micro-batch",
}


class Stored(msgspec.Struct, frozen=True):
    """Checkpoints and reads on the file systems of the site file; mount points that it does not describe."""

    checkpoints: Sequence[Checkpoint] = ()
    readings: Sequence[Reading] = ()
    mounts: Sequence[tuple[str, FileSystem]] = ()
    asked: float | None = None  # bytes of the checkpoint that the job names


NOTHING_STORED = Stored()


def as_text(
    plan: Plan, better: Step | None, train: float | None = None, stored: Stored = NOTHING_STORED, chosen: int = 0
) -> str:
    """One layout: step time, memory and bottleneck. `better`: a faster layout, or None.

    `train`: tokens of the whole training, whose duration in days is shown too. `stored`: its checkpoint and its data.
    `chosen`: the layout is the best of so many, because the job names none.
    """
    lines = [
        *_heading(plan, chosen=chosen),
        *_step(plan),
        *_training(plan, train),
        *_storage(stored),
        "",
        *_parts(plan.step),
        "",
        *_bounds(plan),
    ]
    if better is not None:
        gain = 1 - better.usual / plan.step.usual
        what, _ = binding(better)
        text = f"{better.layout}: {_seconds(better.usual)} a step, {gain:.0%} less; bound by {_SAYS[what]}"
        lines += ["", *hanging(f"{'better':<{_LABEL}}", text, WIDTH)]
    elif not chosen:
        lines += ["", *hanging(f"{'better':<{_LABEL}}", "no other layout is faster", WIDTH)]
    return _text(lines)


def as_table(plan: Plan, sweep: Sweep) -> str:
    """The best layouts as a table, fastest first."""
    lines = [*_heading(plan, layout=False)]
    lines += wrap(f"{sweep.tried} layouts tried, {sweep.fit} fit into memory; the best {len(sweep.best)}:", WIDTH)
    width = min(max(6, *(len(str(step.layout)) for step in sweep.best)), WIDTH - _COLUMNS)
    titles = f"{'step':>7} {'fastest':>7} {'slowest':>7} {'used':>5}  {'memory':>6}  bound by"
    lines += ["", f"{'layout':<{width}}  {titles}"]
    for step in sweep.best:
        what, share = binding(step)
        times = " ".join(f"{_seconds(value):>7}" for value in (step.usual, step.fastest, step.slowest))
        used = f"{step.utilisation:>5.0%}  {step.memory.total / 1e9:>3.0f} GB"
        layout = str(step.layout)
        if len(layout) > width:  # on a line of its own
            lines.append(layout)
            layout = ""
        lines.append(f"{layout:<{width}}  {times} {used}  {what} {share:.0%}")
    lines += ["", *wrap(_LEGEND, WIDTH)]
    return _text(lines)


_LEGEND = (
    "step: usual overlap of messages with computing; fastest: more overlap and faster computing; slowest: less overlap "
    "and slower computing. used: share of the data sheet's FLOP/s. bound by: the largest part of the step, and its "
    "share."
)


def as_json(plan: Plan, better: Step | None, sweep: Sweep | None, stored: Stored = NOTHING_STORED) -> str:
    """The plan or the sweep as JSON: seconds, bytes, shares."""
    steps = sweep.best if sweep else (plan.step,)
    content = {
        "job": {"model": plan.job.network.name, "tokens": plan.job.tokens, "sequence": plan.job.sequence},
        "cluster": {
            "machine": plan.cluster.name,
            "gpu": plan.cluster.gpu.name,
            "gpus": plan.cluster.gpus,
            "levels": plan.cluster.levels,
            "source": plan.cluster.source,
            "found": plan.cluster.found,
            "measured": [f"{op} {'between' if far else 'inside'} nodes" for op, far in plan.cluster.measured],
        },
        "binds": plan.binds,
        "waits": plan.waits,
        "tokens_per_gpu": plan.tokens,
        "tokens_per_exchange": plan.exchanged,
        "critical_tokens_per_gpu": plan.critical_tokens,
        "tensor_limit": plan.tensor_limit,
        "steps": [_step_json(step) for step in steps],
        "checkpoints": stored.checkpoints,
        "reads": stored.readings,
        "filesystems": [{"mount": mount, **msgspec.to_builtins(one)} for mount, one in stored.mounts],
        "better": None if better is None else _step_json(better),
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"


def _step_json(step: Step) -> dict[str, object]:
    return {"as": str(step.layout), "binds": binding(step)[0], **msgspec.to_builtins(step)}


def _heading(plan: Plan, layout: bool = True, chosen: int = 0) -> Iterator[str]:
    cluster, job = plan.cluster, plan.job
    many = f"{cluster.gpus} x {cluster.gpu.name} in machines of type {safe(cluster.name)}"
    batch = f"{_grouped(job.tokens)} tokens a step, in sequences of {job.sequence}"
    yield from wrap(f"{job.network.name} on {many}; {batch}", WIDTH)
    if layout:
        yield str(plan.step.layout) + (f" (the fastest of {_grouped(chosen)} layouts that fit)" if chosen else "")
    yield from _measured(plan)
    yield ""


# bench/accuracy/trainings/training_runs.py: 35 of 221 recipes; 3 of 112 of dense models
_MIXTURES = (
    "of the published runs with mixtures of experts, one of six took longer than that, up to 2.8 times the step: "
    "measure one node first"
)


def _step(plan: Plan) -> Iterator[str]:
    step, cluster = plan.step, plan.cluster
    fastest, slowest = _seconds(step.fastest), _seconds(step.slowest)
    spread = f"{fastest} with faster computing and more overlap of messages, {slowest} with slower and less"
    yield from hanging(f"{'step':<{_LABEL}}", f"{_seconds(step.usual)}; {spread}", WIDTH)
    if plan.job.network.experts:
        yield from hanging(f"{'':<{_LABEL}}", _MIXTURES, WIDTH)
    rate = _grouped(plan.job.tokens / step.usual)
    peak = cluster.peak(step.layout.precision) / 1e12
    yield from hanging(f"{'used':<{_LABEL}}", f"{step.utilisation:.0%} of {peak:.0f} TFLOP/s; {rate} tokens/s", WIDTH)
    memory = step.memory
    text = (
        f"{memory.total / 1e9:.0f} of {USABLE * cluster.memory / 1e9:.0f} GB on each GPU: {memory.states / 1e9:.0f} of "
        f"weights, gradients and optimizer, {memory.activations / 1e9:.0f} of activations for the backward pass"
    )
    yield from hanging(f"{'memory':<{_LABEL}}", text, WIDTH)
    yield from hanging(f"{'bound by':<{_LABEL}}", f"{_SAYS[plan.binds]}: {plan.waits:.0%} of the step", WIDTH)


def _training(plan: Plan, train: float | None) -> Iterator[str]:
    if train is not None:
        days = training_seconds(plan.job, plan.step, train) / 86400
        text = f"{train / 1e12:.3g}T tokens take {days:.3g} days, if nothing ever fails"
        yield from hanging(f"{'training':<{_LABEL}}", text, WIDTH)


def _measured(plan: Plan) -> Iterator[str]:
    """What differs from the machine type, and the collectives whose times are measured."""
    if plan.cluster.found:
        yield from hanging(f"{'found':<{_LABEL}}", plan.cluster.found, WIDTH)
    if plan.cluster.measured:
        content = ", ".join(f"{op} {'between' if far else 'inside'} nodes" for op, far in sorted(plan.cluster.measured))
        yield from hanging(f"{'measured':<{_LABEL}}", f"{content}; other messages from the catalog", WIDTH)


def _parts(step: Step) -> Iterator[str]:
    """The table of the step: degree of parallelism, time of all messages, exposed time, share, links used."""
    yield f"{'':<{_LABEL}}{'ways':>7} {'messages':>10} {'waited for':>11} {'of step':>8}  over"
    yield _part("computing", None, None, step.compute, step, "")
    layout = step.layout
    for name, wait in step.waits.items():
        yield _part(name, getattr(layout, name, None), wait.seconds, wait.shown, step, _OVER.get(wait.held, wait.held))
    if layout.pipeline > 1:
        yield _part(BUBBLE, layout.pipeline, None, step.bubble, step, "")
    yield _part("optimizer", None, None, step.update, step, "memory")


def _part(name: str, ways: int | None, every: float | None, shown: float, step: Step, over: str) -> str:
    many = "" if ways is None else str(ways)
    whole = "" if every is None else _seconds(every)
    line = f"{name:<{_LABEL}}{many:>7} {whole:>10} {_seconds(shown):>11} {shown / step.usual:>8.1%}  {over}"
    return line.rstrip()


def _bounds(plan: Plan) -> Iterator[str]:
    """The limits at which messages take longer than computing: tokens per GPU and tensor parallelism."""
    text = f"{_grouped(plan.tokens)} a GPU"
    if plan.exchanged < plan.tokens:
        text += f", {_grouped(plan.exchanged)} in a micro-batch"
    if plan.critical_tokens is not None:
        text += f"; below {_grouped(plan.critical_tokens)} gradients and weights take longer than computing"
    yield from hanging(f"{'tokens':<{_LABEL}}", text, WIDTH)
    if plan.step.layout.tensor > 1:
        yield from hanging(
            f"{'tensor ways':<{_LABEL}}",
            f"{plan.step.layout.tensor}; above {plan.tensor_limit:.0f} messages take longer than computing",
            WIDTH,
        )


def _grouped(number: float) -> str:
    """Group digits: "4 194 304"."""
    return f"{number:,.0f}".replace(",", " ")


def _seconds(value: float) -> str:
    """ "12.3 s", "456 ms"; "-" for zero."""
    return "-" if value < 5e-7 else _duration(value)


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _storage(stored: Stored) -> Iterator[str]:
    """One line for each checkpoint, file system with reads, and mount point."""
    for one in stored.checkpoints:
        times = f"{_duration(one.write)} to write to {safe(one.mount)}, {_duration(one.read)} to read"
        yield from hanging(f"{'checkpoint':<{_LABEL}}", f"{one.size / 1e12:.3g} TB: {times}", WIDTH)
    if stored.asked and not stored.checkpoints:
        text = (
            f"{stored.asked / 1e12:.3g} TB: its time is not known; describe the storage as [[storage]] in the site file"
        )
        yield from hanging(f"{'checkpoint':<{_LABEL}}", text, WIDTH)
    for read in stored.readings:
        yield from hanging(f"{'data':<{_LABEL}}", _read(read), WIDTH)
    for mount, system in stored.mounts:
        yield from hanging(f"{'storage':<{_LABEL}}", _unknown(mount, system), WIDTH)


def _read(one: Reading) -> str:
    needed = f"{one.reads:,.3g} random reads of {one.size / 1e3:.3g} kB a second from {safe(one.mount)}"
    allowed = f"it can serve {one.possible:,.0f}"
    return f"{needed}; {allowed}" + (": steps wait for their data" if one.reads > one.possible else "")


def _unknown(mount: str, system: FileSystem) -> str:
    example = "" if system.rate is None else f"; a published example has {system.rate / 1e9:.3g} GB/s for a node"
    return (
        f"{safe(mount)} is {system.name}, at an unknown rate{example}. For the time of checkpoints, measure it and "
        "describe it as [[storage]] in the site file"
    )


def _duration(value: float) -> str:
    """ "12.3 s", "456 ms"."""
    if value >= 0.9995:  # less is at most 999 ms
        return f"{value:.3g} s" if value < 1000 else f"{value:.0f} s"
    return f"{value * 1e3:.3g} ms"
