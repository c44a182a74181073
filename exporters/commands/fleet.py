"""The analysis of a fleet as text and as CSV, for `linkgauge fleet`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from ...models.facts.units import as_bytes, as_gigabytes
from ...models.fleet.rows import measured
from ..text.terminal import WIDTH, hanging, safe
from ..text.vocabulary import counted, device_counts, kind_in_words

if TYPE_CHECKING:
    from ...models.fleet.tables import Fleet

Record: TypeAlias = Mapping[str, Any]
_MOST = 20  # lines of a table; CSV has all
_MOST_REASONS = 3  # of a node


def as_text(fleet: Fleet, skipped: int = 0) -> str:
    """Machine types, nodes to drain first with their reasons, what differs, and what is not checked."""
    return "\n".join(_lines(fleet, skipped)) + "\n"


def as_csv(fleet: Fleet, table: str) -> str:
    """One table with all its rows, in bytes per second and shares."""
    text: str = fleet.tables[table].to_csv(index=False)
    return text


def _lines(fleet: Fleet, skipped: int) -> Iterator[str]:
    machines = records(fleet, "machines")
    nodes = sum(one["nodes"] for one in machines)
    unread = f", {counted(skipped, 'file')} skipped" if skipped else ""
    yield f"FLEET  {counted(nodes, 'node')}, {counted(len(machines), 'machine type')}{unread}"
    yield ""
    yield f"{'machine type':32} {'nodes':>7} {'ok':>7} {'degraded':>9} {'failed':>7} {'unknown':>8}"
    for one in machines:
        counts = f"{one['nodes']:>7} {one['ok']:>7} {one['degraded']:>9} {one['failed']:>7} {one['unknown']:>8}"
        yield f"{safe(one['machine'])[:32]:32} {counts}"
    yield from _nodes(fleet)
    yield from _section("Different from equal nodes", [difference(one) for one in records(fleet, "differences")])
    yield from _section("Absent", [absence(one) for one in records(fleet, "absences")])
    yield from _section("Not checked, or without independent evidence", [gap(one) for one in records(fleet, "gaps")])


def _nodes(fleet: Fleet) -> Iterator[str]:
    ranked, why = records(fleet, "nodes"), reasons_by_node(fleet)
    drain = [one for one in ranked if one["drain"]]
    yield ""
    if not ranked:
        yield "No node needs an operator."
        return
    yield f"{counted(len(drain), 'node')} to drain, {len(ranked) - len(drain)} to inspect; the first to repair first"
    for one in ranked[:_MOST]:
        yield ""
        yield from hanging("", safe(f"{'drain' if one['drain'] else 'inspect'} {one['node']}: {cost(one)}"), WIDTH)
        causes = why[one["node"]]
        for text in causes[:_MOST_REASONS]:
            yield from hanging("    ", safe(text), WIDTH)
        if len(causes) > _MOST_REASONS:
            yield f"    and {len(causes) - _MOST_REASONS} more"
    if len(ranked) > _MOST:
        yield ""
        yield f"and {len(ranked) - _MOST} more nodes: --format csv has all"


def _section(title: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield ""
        yield title
        for line in lines[:_MOST]:
            yield from hanging("  ", safe(line), WIDTH, indent=4)
        if len(lines) > _MOST:
            yield f"  and {len(lines) - _MOST} more"


def records(fleet: Fleet, table: str) -> list[Record]:
    """The rows of a table. An absent value is None."""
    frame = fleet.tables[table]
    rows: list[Record] = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return rows


def reasons_by_node(fleet: Fleet) -> Mapping[str, list[str]]:
    """The reasons of each node, those to drain for first. Equal reasons of several positions are one line."""
    rows = sorted(records(fleet, "reasons"), key=lambda one: (one["node"], one["action"], one["source"], one["what"]))
    found: dict[str, list[str]] = {}
    for (node, *_), several in groupby(rows, itemgetter("node", "action", "source", "what")):
        same = sorted(several, key=lambda one: (one["value"] or 0.0) / (one["usual"] or 1.0))
        if same[0]["source"] == "report":
            found.setdefault(node, []).extend(f"{one['what']}: {one['text']}" for one in same)
        else:
            others = f" (and {len(same) - 1} more of this kind)" if len(same) > 1 else ""
            found.setdefault(node, []).append(f"{reason(same[0])}{others}")
    return found


def reason(one: Record) -> str:
    """A reason that only the comparison with equal nodes shows."""
    what, where = one["what"], one["position"]
    if what == "absent":
        return f"{where} is absent; equal nodes have {one['text']} there"
    if what in ("gpu", "nvswitch"):
        return f"{one['value']:g} of {device_counts([what] * int(one['usual']))[0]}"
    if what.startswith("active NVLinks"):
        return f"{where} has {one['value']:g} active NVLinks; equal nodes have {one['usual']:g}"
    rates = f"{as_gigabytes(one['value'])}; the median of equal nodes is {as_gigabytes(one['usual'])}"
    if what.startswith("trained rate"):
        return f"{where} runs at {rates}"
    return f"{in_words(what)} {where} reaches {rates}"


def in_words(quantity: str) -> str:
    """A measured quantity: "copy of 256 MiB via nvlink, 7 beside"."""
    what = measured(quantity)
    size = f" of {as_bytes(what.size)}" if what.size else ""
    via = f" via {what.via}" if what.via else ""
    return f"{what.op}{size}{via}{f', {what.beside} beside' if what.beside else ''}"


def cost(one: Record) -> str:
    """What a node costs a job that it takes part in."""
    if one["stops"]:
        return "no job can use all GPUs"
    return f"jobs take up to {one['factor']:.3g} times as long" if one["factor"] else "unknown cost"


def difference(one: Record) -> str:
    """A text that differs from that of equal nodes."""
    most = f"{one['most']} of {one['nodes']} equal nodes have {one['usual']}"
    return f"{one['node']}: {one['quantity']} of {one['position']} is {one['text'] or 'unknown'}; {most}"


def absence(one: Record) -> str:
    """A device that equal nodes have."""
    return f"{one['node']}: no device at {one['position']}; {one['having']} of {one['nodes']} have {one['product']}"


def gap(one: Record) -> str:
    """What was not checked or has no independent evidence."""
    kind = "not checked" if one["kind"] == "unchecked" else "without evidence"
    fleet = f", of which the fleet corroborates {one['by_fleet']}" if one["by_fleet"] else ""
    what = kind_in_words(one["quantity"]) if one["kind"] == "unchecked" else one["quantity"]
    things = counted(one["things"], "thing")
    return f"{kind}: {what}: {things} on {counted(one['nodes'], 'node')}{fleet}, for example {one['example']}"
