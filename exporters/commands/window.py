"""The changes during a job as text, one line per changed counter, or as JSON."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ...models.diagnosis.counter_diff import Change, Window
from ...models.facts.units import as_bytes, as_gigabytes


def as_text(window: Window) -> str:
    """Text for people and logs: one fact per line."""
    return "\n".join(_lines(window)) + "\n"


def as_json(window: Window) -> str:
    """The window as one line of JSON."""
    return msgspec.json.encode(window).decode() + "\n"


def _lines(window: Window) -> Iterator[str]:
    yield f"job {window.job}: {window.began} to {window.ended}, {window.seconds:.0f} s"
    if window.restarted:
        yield "the machine was restarted during the job: the counters start at the last boot"
    wrong = [one for one in window.changes if one.kind in ("errors", "flaps", "throttled")]
    if not (wrong or window.logged or window.gone):
        yield "no errors, no flaps, nothing throttled"
    for one in (*wrong, *(one for one in window.changes if one not in wrong)):
        yield f"{one.kind:<9}  {one.about:<15}  {one.quantity:<22}  {_value(one)}"
    for line in window.logged:
        yield f"logged     {line.subject:<15}  {line.at}  {line.text}"
    for about in window.gone:
        yield f"gone       {about}"
    for gap in window.not_read:
        yield f"not read   {gap}"


def _value(one: Change) -> str:
    least = "at least " if one.at_least else ""
    if one.unit == "bytes":
        return least + as_bytes(one.value)
    if one.unit == "bytes_per_second":
        return as_gigabytes(one.value)
    return f"{least}{one.value:.1f} s" if one.unit == "seconds" else f"{least}{one.value:.0f}"
