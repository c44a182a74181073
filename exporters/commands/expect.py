"""The expected rates of the links of a node, as the table of `linkgauge expect`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

import msgspec
from msgspec import Struct

from ...models.bandwidth.breakdown import unknown
from ...models.bandwidth.link_levels import Tier
from ...models.facts.machine import Node
from ...models.facts.units import as_gigabytes
from ...models.inventory.snapshot import Snapshot
from ...models.report import Level
from ..text.terminal import cells as cells_of
from ..text.terminal import hanging, safe, wrap
from ..text.vocabulary import basis_in_words

WIDTH = 98
_NUMBER = 9  # columns of a rate
_LEVEL = 18  # width of the first column, which has the name of a tier
_LEGEND = (
    ("rated", "what both ends of the narrowest link can do"),
    ("low, typical, high", "what healthy machines reach; a rate below low is a fault"),
    ("runs at", "present rate of the slowest link; idle PCIe links may slow down"),
    ("measured", "the lowest of several"),
    ("8 x", "number of equal flows: the row and its note name the first"),
)


class Column(Struct, frozen=True):
    """A column of a table. Text is wrapped; numbers are right-aligned in the first line."""

    title: str
    width: int
    number: bool = True


def as_hierarchy(snapshot: Snapshot, tiers: Sequence[Tier]) -> str:
    """The tiers as a table of 98 columns, with equal flows in one row. Numbered notes name bottlenecks and sources."""
    lines = [*hanging("", _title(snapshot), WIDTH), ""]
    if not tiers:
        lines += wrap("This node has no GPU, RDMA device or NVMe disk, and no memory with a known rate.", WIDTH)
        return _text(lines)
    measured = any(level.observed is not None for tier in tiers for level in tier.levels)
    columns, notes = _columns(measured), dict[str, int]()
    lines += row(columns, [column.title for column in columns])
    for tier in tiers:
        for number, (label, alike) in enumerate(_rows(tier)):
            note = notes.setdefault(_why(snapshot, alike[0]), len(notes) + 1)
            cells = ["" if number else tier.name, label, *_numbers(alike, measured), str(note)]
            lines += row(columns, cells)
    lines += ["", *_legend(tiers, measured), ""]
    for text, number in notes.items():
        lines += hanging(f"{number:>3}  ", text, WIDTH)
    return _text(lines)


def as_json(things: Iterable[object]) -> str:
    """Levels or explained flows as JSON, with every field; absent values are null."""
    return msgspec.json.format(msgspec.json.encode(list(things)), indent=2).decode() + "\n"


def row(columns: Sequence[Column], cells: Sequence[str]) -> Iterator[str]:
    """A row of a table: one line, or more if a text is longer than its column."""
    wrapped = [
        [cell.rjust(column.width)] if column.number else wrap(safe(cell), column.width - 2)
        for column, cell in zip(columns, cells, strict=True)
    ]
    for number in range(max(map(len, wrapped))):
        texts = (lines[number] if number < len(lines) else "" for lines in wrapped)
        padded = (text + " " * (column.width - cells_of(text)) for column, text in zip(columns, texts, strict=True))
        yield "".join(padded).rstrip()


def rate(value: float | None) -> str:
    """Format bytes per second as GB/s: "15.8"; "-" if the rate is not known."""
    return "-" if value is None else as_gigabytes(value).removesuffix(" GB/s")


def subject(ends: Sequence[str]) -> str:
    """ "gpu0 -> numa0" for two ends, "gpu0 ... gpu7" for more, and the name of a single end."""
    return " -> ".join(ends) if len(ends) < 3 else f"{ends[0]} ... {ends[-1]}"


def _title(snapshot: Snapshot) -> str:
    node = snapshot.of(Node).get("node")
    machine = (
        f"{snapshot.machine.name} ({snapshot.matched_by})"
        if snapshot.machine
        else "of no machine type that is known here"
    )
    return f"{safe(node.hostname) if node and node.hostname else 'this node'}: {safe(machine)}"


def _columns(measured: bool) -> list[Column]:
    titles = ["rated", "low", "typical", "high", "runs at", *(["measured"] if measured else [])]
    flows = WIDTH - _LEVEL - _NUMBER * len(titles) - 5
    return [
        Column("GB/s one way", _LEVEL, number=False),
        Column("", flows, number=False),
        *(Column(title, _NUMBER) for title in titles),
        Column("note", 5),
    ]


def _rows(tier: Tier) -> Iterator[tuple[str, list[Level]]]:
    """Group equal levels. The largest group shows its number; the others differ from it, so each level is named."""
    groups = _groups(tier)
    most = max(groups, key=len)
    for group in groups:
        if group is most and len(group) > 1:
            yield f"{len(group)} x {subject(group[0].ends)}", group
        else:
            yield ", ".join(subject(level.ends) for level in group), group


def _groups(tier: Tier) -> list[list[Level]]:
    groups: dict[Hashable, list[Level]] = {}
    for level in tier.levels:
        groups.setdefault(_kinship(level), []).append(level)
    return list(groups.values())


def _kinship(level: Level) -> Hashable:
    expected = [(one.basis, one.low, one.typical, one.high) for one in level.expected[:1]]
    slow = level.observed is not None and any(level.observed < one[1] for one in expected)
    return level.link_class, level.rated, level.trained, tuple(expected), level.observed is None, slow


def _numbers(alike: Sequence[Level], measured: bool) -> Iterator[str]:
    level = alike[0]
    best = level.expected[0] if level.expected else None
    yield rate(level.rated)
    yield from (rate(getattr(best, bound, None)) for bound in ("low", "typical", "high"))
    # Show the trained rate only if it limits: a copy over C2C at 450 GB/s is limited by a memory that gives 384.
    slow = level.rated is None or level.trained is None or level.trained < 1.001 * level.rated
    yield rate(level.trained if slow else None)
    if measured:
        yield rate(min((one.observed for one in alike if one.observed is not None), default=None))


def _why(snapshot: Snapshot, level: Level) -> str:
    """The bottleneck of the flow and the source of its rate, or why the rate is not known."""
    if not level.expected:
        return safe(unknown(snapshot, level))
    best = level.expected[0]
    return safe(best.source if best.basis == "capability" else f"{best.source} ({basis_in_words(best.basis)})")


def _legend(tiers: Sequence[Tier], measured: bool) -> Iterator[str]:
    """The meaning of the shown columns."""
    counted = any(len(group) > 1 for tier in tiers for group in _groups(tier))
    shown = {"measured": measured, "8 x": counted}
    for term, words in _LEGEND:
        if shown.get(term, True):
            yield from hanging(f"{term + ':':<20}", words, WIDTH)


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
