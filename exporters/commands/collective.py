"""The text, chart and JSON of `linkgauge collective`: the bound of a collective, and what good machines reach."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ...models.facts.units import as_size
from ...models.training.cluster import Cluster
from ...models.training.collective_time import Collective, Timing
from ..text.terminal import WIDTH, hanging, safe, wrap

_LABEL = 13
_BAR = 34  # columns of the longest bar
_LETTERS = {
    "S": "bytes of the array",
    "N": "parts of the level",
    "W": "rate of one part",
    "T": "all GPUs",
    "w": "GPUs of one part",
    "k": "GPUs that receive a part",
}


def as_text(found: Collective, cluster: Cluster, curve: Sequence[Collective] = (), plot: bool = False) -> str:
    """One size with its bound and levels, or a table or chart of many sizes."""
    lines = [*wrap(heading(found, cluster, sized=not curve), WIDTH), ""]
    lines += (_chart(curve) if plot else _curve(curve)) if curve else _one(found)
    lines += ["", *_legend(found)]
    return "".join(f"{line}\n" for line in lines)


def as_json(found: Collective, cluster: Cluster, curve: Sequence[Collective] = ()) -> str:
    """The same as JSON: seconds, bytes, bytes per second."""
    content = {
        "machine": cluster.name,
        "gpu": cluster.gpu.name,
        **msgspec.to_builtins(found),
        "curve": [_json_row(one) for one in curve],
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"


def _json_row(one: Collective) -> dict[str, object]:
    kept = ("array", "bound", "low", "typical", "high", "level")
    return {"size": one.request.size, **{name: msgspec.to_builtins(getattr(one, name)) for name in kept}}


def heading(found: Collective, cluster: Cluster, sized: bool) -> str:
    """The operation, the GPUs and, if `sized`, the size."""
    asked = found.request
    size = f" of {as_size(asked.size)}" if sized else ""
    sparse = f" to {asked.active} of them" if asked.active is not None else ""
    way = "" if asked.algorithm == "auto" else f" ({asked.algorithm})"
    apart = f", {asked.stride} GPUs apart, all such groups at once" if asked.stride > 1 else ""
    machines = f"{cluster.gpu.name} in machines of type {safe(cluster.name)}"
    return f"{asked.op}{way}{size} over {asked.ranks} x {machines}{sparse}{apart}"


def _one(found: Collective) -> Iterator[str]:
    yield f"{'':<{_LABEL}}{'time':>11} {'bus GB/s':>10} {'algo GB/s':>10}"
    for label, timing in (("bound", found.bound), ("high", found.high), ("typical", found.typical), ("low", found.low)):
        if timing is not None:
            rates = f"{_rate(timing)} {timing.algorithm_bandwidth / 1e9:>10.1f}"
            yield f"{label:<{_LABEL}}{_time(timing.seconds):>11} {rates}"
    yield ""
    yield f"{'level':<{_LABEL}}{'parts':>11} {'GB/s each':>10} {'bound':>10} {'GB/s':>8}  formula of the bound"
    for one in found.tiers:
        row = f"{one.name:<{_LABEL}}{one.parts:>11} {one.rate / 1e9:>10.1f} {_time(one.seconds):>10}"
        yield f"{row} {one.usable / 1e9:>8.0f}  {one.formula}"
    yield ""
    halves = f"{found.bisection / 1e9:.1f} GB/s from one half of the GPUs to the other, in one direction"
    yield from hanging(f"{'bisection':<{_LABEL}}", halves, WIDTH)
    yield from hanging(f"{'held by':<{_LABEL}}", f"the level {found.level}", WIDTH)
    if found.latency is not None:
        yield from hanging(f"{'latency':<{_LABEL}}", f"{_time(found.latency)} for a message of a few bytes", WIDTH)


def _curve(curve: Sequence[Collective]) -> Iterator[str]:
    yield f"{'':<{_LABEL}}{'':>11} {'bus bandwidth, GB/s':>43}"
    yield f"{'size':<{_LABEL}}{'time':>11} {'bound':>10} {'low':>10} {'typical':>10} {'high':>10}  held by"
    for one in curve:
        rates = " ".join(_rate(timing) for timing in (one.bound, one.low, one.typical, one.high))
        taken = one.typical or one.bound
        yield f"{as_size(one.request.size):<{_LABEL}}{_time(taken.seconds):>11} {rates}  {one.level}"


def _chart(curve: Sequence[Collective]) -> Iterator[str]:
    """One bar per size, up to the highest rate: "=" up to low, "#" up to typical, "-" up to high."""
    most = max((one.high or one.bound).bus_bandwidth for one in curve)
    yield f"{'size':<{_LABEL}}{'time':>11} {'bus GB/s':>10}"
    for one in curve:
        taken = one.typical or one.bound
        head = f"{as_size(one.request.size):<{_LABEL}}{_time(taken.seconds):>11} {_rate(taken)}"
        low, typical, high = (
            round(_BAR * (timing or one.bound).bus_bandwidth / most) for timing in (one.low, one.typical, one.high)
        )
        yield f"{head}  {'=' * low}{'#' * (typical - low)}{'-' * (high - typical)}".rstrip()
    yield ""
    yield "bar: = up to low, # up to typical, - up to high"


def _legend(found: Collective) -> Iterator[str]:
    """What the words of the table mean, and where the rates come from."""
    used = {letter for one in found.tiers for letter in one.formula}
    letters = ", ".join(f"{letter}: {text}" for letter, text in _LETTERS.items() if letter in used)
    yield from hanging(f"{'bound':<{_LABEL}}", f"time of the slowest level at the rated rates; {letters}", WIDTH)
    if found.typical is None:
        yield from hanging(f"{'not known':<{_LABEL}}", found.source, WIDTH)
        return
    yield from hanging(
        f"{'low to high':<{_LABEL}}", "the slowest to the fastest good machines; low: the longest time", WIDTH
    )
    yield from hanging(f"{'source':<{_LABEL}}", safe(found.source), WIDTH)


def _rate(timing: Timing | None) -> str:
    return f"{'-' if timing is None else format(timing.bus_bandwidth / 1e9, '.1f'):>10}"


def _time(seconds: float) -> str:
    for factor, unit in ((1, "s"), (1e3, "ms")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}" if seconds * factor < 1000 else f"{seconds * factor:.0f} {unit}"
    return f"{seconds * 1e6:.3g} µs"
