"""The traffic of all links as a table or a tree, for `linkgauge top`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import floor
from typing import NamedTuple

from ...models.facts.gpu import Gpu
from ...models.facts.units import as_bytes, as_gigabytes, as_megahertz
from ...models.traffic.selection import Choice, selected
from ...models.traffic.tree import Branch
from ...models.traffic.view import Traffic, View
from ..text.terminal import WIDTH, Paint, cells, fitted, painter, safe

UNKNOWN = "unknown"
_KINDS = {
    "nvlink": "NVLink",
    "xgmi": "xGMI",
    "c2c": "C2C",
    "port": "port",
    "net": "network",
    "disk": "disk",
    "pcie": "PCIe",
}
_BAR = 5


class _Column(NamedTuple):
    """A column of a table. A width below 0 aligns to the right. Terminals narrower than `since` do not show it."""

    title: str
    width: int
    since: int = 0


_NAME = 16
_COLUMNS = (
    _Column("LINK", _NAME),
    _Column("KIND", 7, 70),
    _Column("IN", -9),
    _Column("OUT", -9),
    _Column("EXPECTED", -13, 84),
    _Column("USED", -4),
    _Column("", _BAR, 94),
)
_LAST = "STATE, NEW ERRORS"
_GPU_COLUMNS = (
    _Column("GPU", _NAME),
    _Column("SM CLOCK", -18),
    _Column("MEMORY CLOCK", -12, 84),
    _Column("POWER", -12, 70),
    _Column("TEMP", -7),
)
_GPU_LAST = "LIMITED BY"


def as_text(view: View, choice: Choice, width: int, colour: bool) -> str:
    """What could not be read, the clocks of GPUs, and the chosen links."""
    note = [safe(view.note)] if view.note else []
    clocks = gpu_table(view.gpus.values(), width, colour)
    lines = [*note, *clocks, *table(selected(view.links, choice), width, colour)]
    return "".join(f"{line}\n" for line in lines)


def table(links: Iterable[Traffic], width: int = WIDTH, colour: bool = False) -> list[str]:
    """A heading, and one line for each link."""
    paint = painter(colour)
    return [_heading(_COLUMNS, _LAST, width, paint), *(_link(one, "", width, paint) for one in links)]


def tree(branches: Sequence[Branch], width: int = WIDTH, colour: bool = False) -> list[str]:
    """A heading, and one line for each link or device, indented below its parent."""
    paint = painter(colour)
    return [_heading(_COLUMNS, _LAST, width, paint), *_branches(branches, 0, width, paint)]


def gpu_table(gpus: Iterable[Gpu], width: int = WIDTH, colour: bool = False) -> list[str]:
    """A heading, and one line with clocks for each GPU. Nothing without GPUs."""
    paint = painter(colour)
    lines = [_gpu(gpu, width, paint) for gpu in gpus]
    return [_heading(_GPU_COLUMNS, _GPU_LAST, width, paint), *lines] if lines else []


def _branches(branches: Sequence[Branch], depth: int, width: int, paint: Paint) -> Iterator[str]:
    for branch in branches:
        margin = " " * min(2 * depth, _NAME - 8)
        if branch.title:
            yield paint(fitted(f"{margin}{safe(branch.title)}", width), "bold")
        yield from (_link(one, margin + "  " * bool(branch.title), width, paint) for one in branch.links)
        yield from _branches(branch.below, depth + 1, width, paint)


def _link(one: Traffic, margin: str, width: int, paint: Paint) -> str:
    carrier = one.carrier
    expected = {carrier.expected_in, carrier.expected_out}
    cell = [
        margin + safe(carrier.name),
        _KINDS.get(carrier.kind, carrier.kind),
        rate(one.received),
        rate(one.sent),
        rate(carrier.expected_in) if len(expected) == 1 else _pair(carrier.expected_in, carrier.expected_out),
        "" if one.used is None else f"{one.used:.0%}",
        "" if one.used is None else _bar(one.used),
    ]
    return _row(cell, _COLUMNS, _last(one), width, paint, _style(one))


def rate(value: float | None) -> str:
    """Bytes per second in one direction with three digits: "42.1 GB/s", "13.4 kB/s", "0 B/s"."""
    return UNKNOWN if value is None else f"{as_bytes(value)}/s"


def _pair(one: float | None, two: float | None) -> str:
    """Different rates of the two directions: "6.9, 4.2 GB/s"."""
    return ", ".join("?" if rate is None else f"{rate / 1e9:.1f}" for rate in (one, two)) + " GB/s"


def _bar(used: float) -> str:
    full = _BAR if used >= 1 else floor(used * _BAR)
    return "#" * full + "." * (_BAR - full)


def _last(one: Traffic) -> str:
    carrier = one.carrier
    errors = (f"+{count:.0f} {name}" for name, count in sorted(one.risen.items(), key=lambda pair: -pair[1]))
    slower = f"at {_of(carrier.trained, carrier.rated, as_gigabytes)}" if one.is_slower and not carrier.down else ""
    return safe(", ".join(filter(None, (one.state, *errors, slower))))


def _style(one: Traffic) -> str | None:
    if one.rising:
        return "critical"
    if one.state or one.risen or one.is_slower:
        return "slower"
    return "dim" if one.received is None and one.sent is None else None


def _gpu(gpu: Gpu, width: int, paint: Paint) -> str:
    cell = [
        safe(gpu.key),
        _of(gpu.clock, gpu.clock_max, as_megahertz),
        UNKNOWN if gpu.memory_clock is None else as_megahertz(gpu.memory_clock),
        _of(gpu.power, gpu.power_limit, lambda watts: f"{watts:.0f} W"),
        UNKNOWN if gpu.temperature is None else f"{gpu.temperature:.0f} °C",
    ]
    last = gpu.failure or (UNKNOWN if gpu.clock_reasons is None else ", ".join(gpu.clock_reasons))
    return _row(cell, _GPU_COLUMNS, safe(last), width, paint, "critical" if gpu.failure else None)


def _of(value: float | None, most: float | None, words: Callable[[float], str]) -> str:
    """ "1,755 of 1,980 MHz"; "unknown" without the value."""
    if value is None:
        return UNKNOWN
    number, _, unit = words(value).rpartition(" ")
    return words(value) if most is None else f"{number} of {words(most)}"


def _heading(columns: Sequence[_Column], last: str, width: int, paint: Paint) -> str:
    return _row([column.title for column in columns], columns, last, width, paint, "bold")


def _row(
    cell: Sequence[str], columns: Sequence[_Column], last: str, width: int, paint: Paint, style: str | None
) -> str:
    """The cells in their columns, and the last one with the rest of the line."""
    padded = (_padded(text, column.width) for text, column in zip(cell, columns, strict=True) if width >= column.since)
    line = fitted("  ".join((*padded, last)).rstrip(), width)
    return paint(line, style) if style else line


def _padded(text: str, wide: int) -> str:
    short = fitted(text, abs(wide))
    blanks = " " * (abs(wide) - cells(short))
    return blanks + short if wide < 0 else short + blanks
