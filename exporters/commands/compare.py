"""The differences of two nodes as text and as JSON, for `linkgauge compare`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import msgspec

from ...models.comparison.differences import Comparison, Difference
from ...models.comparison.fields import Group
from ...models.comparison.side import Value
from ..text.quantities import quantity
from ..text.terminal import WIDTH, Paint, hanging, painter, safe
from ..text.vocabulary import counted, device_in_words, kind_in_words, listed

_TITLES: dict[Group, str] = {
    "verdict": "Verdict",
    "devices": "Devices",
    "links": "Links",
    "findings": "Findings",
    "rates": "Measured rates",
    "settings": "Settings",
    "versions": "Versions",
    "hardware": "Hardware",
}
_MOST = 8  # names of devices in a line


def as_text(comparison: Comparison, a: str, b: str, colour: bool = False) -> str:
    """The differences in groups; `a` and `b` name the two sides."""
    return "\n".join(_lines(comparison, a, b, painter(colour))) + "\n"


def as_json(comparison: Comparison, a: str, b: str) -> str:
    """One line of JSON. `a` and `b` are the names of the two sides."""
    whole = {
        "schema": "linkgauge.comparison/1",
        "a": a,
        "b": b,
        "compared": comparison.compared,
        "differences": comparison.differences,
        "not_compared": comparison.not_compared,
    }
    return msgspec.json.encode(whole).decode() + "\n"


def _lines(comparison: Comparison, a: str, b: str, paint: Paint) -> Iterator[str]:
    found = comparison.differences
    compared = counted(comparison.compared, "common value")
    total = counted(len(found), "difference") if found else "no difference"
    yield from hanging("", f"{total} in {compared} between", WIDTH)
    yield from hanging("  A  ", safe(a), WIDTH)
    yield from hanging("  B  ", safe(b), WIDTH)
    for group, several in groupby(found, lambda one: one.group):
        yield ""
        yield paint(_TITLES[group], "bold")
        for one in several:
            yield from hanging("  ", safe(_line(one)), WIDTH, indent=4)
    if comparison.not_compared:
        yield ""
        yield paint("Not compared", "bold")
        for text in comparison.not_compared:
            yield from hanging("  ", text, WIDTH, indent=4)


def _line(one: Difference) -> str:
    """ "gpu1, gpu3: PCIe width 16 lanes -> 8 lanes"."""
    names = listed(one.devices, _MOST)
    if one.a is None or one.b is None:
        side, shown = ("B", one.b) if one.a is None else ("A", one.a)
        if one.group == "findings":
            return f"only in {side}: {one.what} {names} {shown}"
        what = kind_in_words(one.what) if one.what[:1].isupper() else device_in_words(one.what)
        return f"only in {side}: {what} {names}" + ("" if shown == "present" else f" ({shown})")
    return f"{f'{names}: ' if names else ''}{one.what} {_shown(one.a, one.unit)} -> {_shown(one.b, one.unit)}"


def _shown(value: Value | None, unit: str | None) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return quantity(value, unit) or "none"
