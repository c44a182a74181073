"""Explained flows as text: one flow hop by hop, or several flows as a table with the hops that they share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...models.bandwidth.breakdown import Explained, Step
from ...models.facts.records import COLLECTIVES
from ...models.facts.units import as_size
from ..text.terminal import hanging, safe
from ..text.vocabulary import basis_in_words, counted
from .expect import WIDTH, Column, rate, row, subject

_HOPS = (
    Column("from", 19, number=False),
    Column("to", 19, number=False),
    Column("link", 22, number=False),
    Column("rated", 8),
    Column("runs at", 9),
    Column("reached", 9),
    Column("gives", 9),
)
_FLOWS = (
    Column("GB/s in one direction", 29, number=False),
    Column("path", 6, number=False),
    Column("rated", 8),
    Column("low", 8),
    Column("typical", 8),
    Column("high", 8),
    Column("", 2),
    Column("held by", 29, number=False),
)
_HELD = " *"
_INSIDE = {
    "internal": "inside",
    "interconnect": "between processors",
    "net": "the network",
    "function": "inside",
    "disk": "inside",
    "member": "inside",
}


def as_flows(found: Sequence[Explained], lost: Sequence[str] = ()) -> str:
    """One flow with all its hops, or a table of several. `lost`: messages about flows without a path."""
    lines = _one(found[0]) if len(found) == 1 and not lost else _several(found, lost)
    return "".join(f"{line}\n" for line in lines)


def _one(flow: Explained) -> Iterator[str]:
    level = flow.level
    over = f", {flow.path_type}" if flow.path_type else ""
    via = f" via {level.via}" if level.via else ""
    ranks = level.op in COLLECTIVES
    unit = "GB/s of bus bandwidth" if ranks else "GB/s in one direction"
    about = ", ".join(level.ends) if ranks and len(level.ends) < 3 else subject(level.ends)
    yield from hanging("", f"{safe(about)}: {level.op}{via}{over}; {unit}", WIDTH)
    yield ""
    yield from row(_HOPS, [column.title for column in _HOPS])
    groups = _alike(flow.ways)
    for number, (path, count) in enumerate(groups):
        if len(flow.ways) > 1:
            yield from ([""] if number else [])
            yield f"{counted(count, 'path')} like this, {'all' if len(groups) == 1 else 'with the others'} at once"
        for step in path:
            yield from _hop(step)
    yield ""
    yield from _result(flow)


def _hop(step: Step) -> Iterator[str]:
    share = "-" if step.share is None else f"{step.share:.0%}"
    to = "" if step.kind == "memory" else step.receiver
    numbers = [rate(step.rated), rate(step.trained), share, rate(step.gives)] if step.rated is not None else [""] * 4
    first, *further = row(_HOPS, [step.sender, to, _link(step), *numbers])
    yield first + (_HELD if step.bottleneck else "")
    yield from further


def _link(step: Step) -> str:
    if step.kind == "memory":
        return f"memory, {step.grade}" if step.grade else "memory"
    name = step.grade or _INSIDE.get(step.kind, step.kind)
    if len(step.links) > 1:
        return f"{len(step.links)} x {name}"
    return name if ">" in step.links[0] else f"{name} {step.links[0]}"


def _result(flow: Explained) -> Iterator[str]:
    """The rate and its source, the message size and the latency."""
    level = flow.level
    entries = [("rated", f"{rate(level.rated)} GB/s" if level.rated is not None else "")]
    if level.expected:
        best = level.expected[0]
        entries.append(("gives", f"{rate(best.typical)} GB/s, from {rate(best.low)} to {rate(best.high)}"))
    if level.rated is not None and level.trained is not None and level.trained < 0.999 * level.rated:
        entries.append(("runs at", f"{rate(level.trained)} GB/s{_asleep(flow)}"))
    entries.append(("measured", f"{rate(level.observed)} GB/s" if level.observed is not None else ""))
    entries.append(("held by", f"{held} (*)" if (held := _held(flow)) else ""))
    for number, one in enumerate(level.expected):
        bounds = f"{rate(one.low)} - {rate(one.typical)} - {rate(one.high)}: " if number else ""
        entries.append((basis_in_words(one.basis), f"{bounds}{one.source}"))
    if flow.unknown:
        entries.append(("not known", flow.unknown))
    if level.size is not None:
        entries.append(("size", f"messages of {as_size(level.size)}: {_reached(flow.sized)}"))
    if flow.seconds is not None:
        entries.append(("latency", f"{flow.seconds * 1e6:.3g} µs for a message of a few bytes"))
    for label, text in entries:
        if text:
            yield from hanging(f"{label:<12}", safe(text), WIDTH)


def _asleep(flow: Explained) -> str:
    slow = {s.kind for path in flow.ways for s in path if s.rated and s.trained is not None and s.trained < s.rated}
    return "; links of PCIe may slow down while nothing moves" if "pcie" in slow else ""


def _reached(share: float | None) -> str:
    if share is None:
        return "no published rate for this size"
    return f"they reach {f'{share:.0%}' if share >= 0.01 else 'less than 1%'} of the rate of long ones"


def _several(found: Sequence[Explained], lost: Sequence[str]) -> Iterator[str]:
    concurrent = any(flow.level.beside for flow in found)
    yield f"{counted(len(found), 'flow')}, {'all at once' if concurrent else 'each alone'}"
    yield ""
    yield from row(_FLOWS, [column.title for column in _FLOWS])
    for flow in found:
        best = flow.level.expected[0] if flow.level.expected else None
        numbers = [flow.level.rated, *(getattr(best, bound, None) for bound in ("low", "typical", "high"))]
        why = _held(flow) if best else flow.unknown or ""
        yield from row(_FLOWS, [subject(flow.level.ends), flow.path_type or "", *map(rate, numbers), "", why])
    for why in lost:
        yield from hanging("", safe(why), WIDTH)
    if concurrent:
        yield from _shared(found)


def _shared(found: Sequence[Explained]) -> Iterator[str]:
    """The saturated hops that several flows share, and the number of the other shared hops."""
    shared: dict[tuple[str, tuple[str, ...]], Step] = {}
    for step in (step for flow in found for path in flow.ways for step in path):
        if step.flows > 1 and step.rated is not None:
            key = step.sender, step.links
            shared[key] = step if step.bottleneck else shared.get(key, step)
    full = [step for step in shared.values() if step.bottleneck]
    yield ""
    for step in full:
        what = step.sender if step.kind == "memory" else f"{step.sender} -> {step.receiver}"
        rate_text = f"gives {rate(step.gives)}" if step.gives is not None else "its share is not published"
        text = f"{_link(step)}, {rate(step.rated)} rated, {rate_text}: shared by {step.flows} flows, nothing left"
        yield from hanging("", f"{safe(what)}: {safe(text)}", WIDTH, 2)
    if others := len(shared) - len(full):
        yield f"{counted(others, 'more link' if full else 'link')} shared, with something left"
    if not shared:
        yield "they share no link with a known rate"


def _alike(ways: Sequence[tuple[Step, ...]]) -> list[tuple[tuple[Step, ...], int]]:
    """The first path of each group of equal paths, with the size of the group."""
    groups: dict[object, list[tuple[Step, ...]]] = {}
    for path in ways:
        groups.setdefault(tuple((s.kind, s.grade, s.rated, s.trained, s.share) for s in path), []).append(path)
    return [(group[0], len(group)) for group in groups.values()]


def _held(flow: Explained) -> str:
    """The bottleneck links of the flow: "gpu0/nvlink0 and 17 more"."""
    links = next((step.links for path in flow.ways for step in path if step.bottleneck), ())
    return f"{links[0]} and {len(links) - 1} more" if len(links) > 1 else "".join(links)
