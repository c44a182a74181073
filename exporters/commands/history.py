"""The history of a node as text and as JSON, for `linkgauge history`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import TypeAlias

import msgspec

from ...models.facts.records import Flow
from ...models.facts.units import as_gigabytes, as_utc
from ...models.history.drift import drift
from ...models.history.past import History, Past, State
from ...models.inventory.inventory import Change, differences
from ..text.terminal import WIDTH, hanging, safe
from ..text.vocabulary import counted

Series: TypeAlias = Sequence[tuple[float, float]]
_BARS = "▁▂▃▄▅▆▇█"
_CELLS = 24  # of a sparkline


def as_text(history: History, node: str) -> str:
    """The changes of the verdict and of findings, then one line for each measured flow."""
    return "\n".join(_lines(history, node)) + "\n"


def _lines(history: History, node: str) -> Iterator[str]:
    changes, flows = counted(len(history.states), "state"), counted(len(history.rates), "measured flow")
    yield f"HISTORY  {safe(node)}  {changes}, {flows}"
    before: State | None = None
    for state in history.states:
        yield from _state(before, state)
        before = state
    for earlier, later in pairwise(history.inventories):
        for change in differences(earlier, later):
            yield f"{as_utc(later.taken_at)}  {change.kind} {safe(_device(change))}"
    if history.rates:
        yield ""
        yield f"{'flow (GB/s)':34} {'rates':>6} {'first':>10} {'median':>10} {'last':>10}  trend"
    for flow, series in history.rates.items():
        yield from _rate(flow, series)


def _state(before: State | None, state: State) -> Iterator[str]:
    """The verdict, and the findings that came and went."""
    changed = before is not None and before.verdict != state.verdict
    yield f"{as_utc(state.at)}  {f'{before.verdict} -> ' if before and changed else ''}{state.verdict}"
    known = {(one.code, one.subject): one for one in before.findings} if before else {}
    now = {(one.code, one.subject): one for one in state.findings}
    for word, several in (("new", _without(now, known)), ("gone", _without(known, now))):
        for one in several:
            yield from hanging(f"    {word:5}", safe(f"{one.severity} {one.code}: {one.device} {one.fact}"), WIDTH)


def _device(change: Change) -> str:
    """The device of a change of the hardware, and the versions of new firmware."""
    item = change.now or change.before
    assert item
    name = f"{item.alias or item.key} ({item.name or item.kind}, {item.key})"
    if change.kind == "firmware" and change.before and change.now:
        return f"{name}: {change.before.firmware} -> {change.now.firmware}"
    return name


def _without(some: Mapping[tuple[str, str], Past], others: Mapping[tuple[str, str], Past]) -> list[Past]:
    return [one for key, one in some.items() if key not in others]


def _rate(flow: Flow, series: Series) -> Iterator[str]:
    values = [rate for _, rate in series]
    numbers = (as_gigabytes(rate).removesuffix(" GB/s") for rate in (values[0], median(values), values[-1]))
    first, middle, last = numbers
    name = safe(f"{flow.op} {flow.subject}{f' via {flow.via}' if flow.via else ''}")[:34]
    yield f"{name:34} {len(values):>6} {first:>10} {middle:>10} {last:>10}  {sparkline(values)}"
    if found := drift(series):
        change = f"{found.after / found.before - 1:+.1%}"
        before, after = as_gigabytes(found.before), as_gigabytes(found.after)
        yield f"    changed at {as_utc(found.start)}: {before} -> {after} ({change})"


def sparkline(values: Sequence[float]) -> str:
    """Bars from the lowest to the highest value, which are at least 3 % apart: less is noise."""
    cells = min(len(values), _CELLS)
    edges = [len(values) * cell // cells for cell in range(cells + 1)]
    means = [median(values[a:b]) for a, b in pairwise(edges)]
    low, span = min(means), max(max(means) - min(means), 0.03 * max(means)) or 1.0
    return "".join(_BARS[round((one - low) / span * (len(_BARS) - 1))] for one in means)


def as_json(history: History, node: str) -> str:
    """One line of JSON. Times are text in UTC, rates bytes per second."""
    states = [{"at": as_utc(one.at), "verdict": one.verdict, "findings": one.findings} for one in history.states]
    rates = [
        {"flow": flow, "rates": [(as_utc(at), rate) for at, rate in series], "change": _change(series)}
        for flow, series in history.rates.items()
    ]
    changes = [
        {"at": as_utc(later.taken_at), "kind": change.kind, "device": _device(change)}
        for earlier, later in pairwise(history.inventories)
        for change in differences(earlier, later)
    ]
    whole = {"schema": "linkgauge.history/1", "node": node, "states": states, "hardware": changes, "rates": rates}
    return msgspec.json.encode(whole).decode() + "\n"


def _change(series: Series) -> dict[str, str | float] | None:
    found = drift(series)
    return {"start": as_utc(found.start), "before": found.before, "after": found.after} if found else None
