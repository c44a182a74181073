"""Blocks of "name: value" lines below the name of a device: YAML, INI files and reports of scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from ..core.key_values import entry
from .item import MOST_CELLS, NAMING, Cell, Item, Listed, is_device, item_of

_HEADING = re.compile(r"[\s\[=#*>-]{0,40}([A-Za-z0-9][\w .:/-]{0,30}?)[\s\]=#*:-]{0,40}")
_ITEM = re.compile(r"[ \t]{0,40}-[ \t]")
_INDEX = re.compile(r"[0-9]{1,2}")
_FEWEST = 2  # lines of a block


class _Block(Struct):
    """The lines of a device so far. `sections`: the names above the next line, with their columns."""

    device: str
    first: int
    end: int
    gpus: bool
    cells: list[Cell] = field(default_factory=list)
    sections: list[tuple[int, str]] = field(default_factory=list)


def blocks(lines: Sequence[str]) -> Iterator[Listed]:
    """The lists of blocks. The blocks of a list follow each other."""
    items: list[Item] = []
    first = end = 0
    for block in _blocks(lines):
        item = Item(block.device, tuple(block.cells)) if block.device else item_of(block.cells, block.gpus)
        if item is None or block.end - block.first < _FEWEST:
            continue
        if items and any(map(str.strip, lines[end : block.first])):
            yield Listed(first, end, tuple(items))
            items = []
        first = first if items else block.first
        items.append(item)
        end = block.end
    if items:
        yield Listed(first, end, tuple(items))


def _blocks(lines: Sequence[str]) -> Iterator[_Block]:
    block: _Block | None = None
    section: int | None = None  # the line with the name of a list of GPUs: "gpus:"
    for number, line in enumerate(lines):
        pair = entry(line)
        start = number if section is None else section
        if device := _device(line):
            yield from _some(block)
            block, section = _Block(device, start, number + 1, False), None
        elif pair and _begins(pair, line, block):
            gpus = section is not None or (block is not None and block.gpus)
            yield from _some(block)
            block, section = _Block("", start, number + 1, gpus, [Cell(*pair, number, line)]), None
        elif pair and pair[1] == "" and _column(line) == 0:
            yield from _some(block)
            block, section = None, number if "gpu" in pair[0] else None
        elif pair and block and _add(block, pair, number, line):
            continue
        elif line.strip():
            yield from _some(block)
            block = section = None
    yield from _some(block)


def _some(block: _Block | None) -> Iterator[_Block]:
    yield from (block,) if block else ()


def _device(line: str) -> str | None:
    """The device that a line names as the heading of a block: "GPU 3:", "[mlx5_1]", "== 0000:18:00.0 =="."""
    found = _HEADING.fullmatch(line)
    return found[1] if found and is_device(found[1]) else None


def _begins(pair: tuple[str, str], line: str, block: _Block | None) -> bool:
    """Whether the line names the device of a new block: it is an item of YAML, or its name came before."""
    name, value = pair
    if not NAMING.fullmatch(name) or not (is_device(value) or _INDEX.fullmatch(value)):
        return False
    seen = block is None or any(cell.name == name for cell in block.cells)
    return bool(_ITEM.match(line)) or seen


def _add(block: _Block, pair: tuple[str, str], number: int, line: str) -> bool:
    """Add a value. False: the block has another value of this name, so the heading of a block is missing above."""
    column = _column(line)
    block.sections = [one for one in block.sections if one[0] < column]
    name = " ".join((*(above for _, above in block.sections), pair[0]))
    if pair[1] == "":
        block.sections.append((column, pair[0]))
    elif any(cell.name == name and cell.value != pair[1] for cell in block.cells):
        return False
    elif len(block.cells) < MOST_CELLS:
        block.cells.append(Cell(name, pair[1], number, line))
        block.end = number + 1
    return True


def _column(line: str) -> int:
    return len(line) - len(line.lstrip())
