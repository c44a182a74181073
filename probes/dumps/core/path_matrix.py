"""Rows of a matrix of paths (`nvidia-smi topo`): cells whose separator was lost, and columns without the heading.

The cell of a device itself is X. So its place shows whether a cell before it is missing, and, without the heading,
which column is whose: GPUs come first, in the order of their numbers, then the NICs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ....models.facts.records import Evidence

_PATH = r"(?:X|PIX|PXB|PHB|PSB|NODE|SYS|SOC)(?![a-z])|NV[0-9]{1,2}(?![0-9,-])"
_ALLOWED = r"(?:OK|CNS|GNS|TNS|NS|DR|U)(?![a-z])"
_CELL = rf"(?:{_PATH}|{_ALLOWED})"
_OF_GPUS = re.compile(rf"NV[0-9]{{1,2}}|{_ALLOWED}")  # cells that columns of NICs do not have
_LABEL = r"GPU[0-9]{1,3}"
_FUSED = re.compile(rf"(?:{_CELL}){{2,40}}")
_FUSED_END = re.compile(rf"((?:{_CELL}){{0,40}}(?:X|PIX|PXB|PHB|NODE|SYS))([0-9][0-9,-]{{0,200}})")
_ONE = re.compile(_CELL)
NVLINKS = re.compile(r"NV([0-9]{1,2})")
_LABELLED = re.compile(rf"(GPU[0-9]{{1,3}}|NIC[0-9]{{1,3}})({_CELL}.*)")
_NUMBERED = re.compile(r"(GPU|NIC)([0-9]{1,3})")
_JOINED = re.compile(r"(?<=[0-9])(?=(?:GPU|NIC|mlx[45]_)[0-9])")
_BLANKS = r"[ \t]{0,12}"
# The row of a GPU, with its own cell and at least another one.
ROW = (
    rf"[ \t]{{0,12}}{_LABEL}{_BLANKS}(?:X[ \t]{{0,12}}{_CELL}|(?:{_CELL}{_BLANKS}){{1,36}}X(?![\w.-]))"
    r"(?![^\n]{0,200}[:;=])"
)


class Row(Struct, frozen=True):
    """The name of a row, its words, and the number of its cells: other words are affinities."""

    name: str
    words: Sequence[str]
    cells: int


class KnownRow(Struct, frozen=True):
    """The certain cells of a device by column, its affinities, and its line. `whole`: all cells are certain."""

    cells: Mapping[str, str]
    affinities: Sequence[str]
    whole: bool
    where: Evidence

    @property
    def links(self) -> list[int]:
        """The number of NVLinks to each peer with at least one."""
        return [int(found[1]) for cell in self.cells.values() if (found := NVLINKS.fullmatch(cell))]


def one_row(known: KnownRow | None, row: KnownRow) -> KnownRow:
    """The row of a device that a matrix can have twice. If their cells differ, one is of another device: its name is
    damaged.
    """
    if known is None or known.cells == row.cells:
        return known or row
    if not known.cells or not row.cells:  # the cell of the device itself is not in its column
        return replace(known if known.cells else row, whole=False)
    more, fewer = sorted((known, row), key=lambda one: len(one.cells), reverse=True)
    same = all(more.cells.get(column) == cell for column, cell in fewer.cells.items())
    return more if same else replace(known, cells={}, whole=False)


def row_of(line: str) -> Row:
    """The row of a line, with its fused cells as separate words."""
    name, *others = [one for word in line.split() for one in _words(word)] or [""]
    cells = next((place for place, word in enumerate(others) if not _ONE.fullmatch(word)), len(others))
    return Row(name, others, cells)


def are_cells(words: Iterable[str]) -> bool:
    """Whether all words have the form of a cell."""
    return all(map(_ONE.fullmatch, words))


def column_names(heading: str) -> list[str]:
    """The names of the columns in a heading, also of fused ones. A repeated name is of a row on the same line."""
    names = _JOINED.sub(" ", heading).split()
    return names[: next((place for place, name in enumerate(names) if name in names[:place]), len(names))]


def _words(word: str) -> list[str]:
    """The word, or the cells that are fused in it, also with the list of CPUs behind them."""
    if labelled := _LABELLED.fullmatch(word):
        return [labelled[1], *_words(labelled[2])]
    if ended := _FUSED_END.fullmatch(word):
        return [*_ONE.findall(ended[1]), ended[2]]
    return _ONE.findall(word) if _FUSED.fullmatch(word) else [word]


def certain_cells(columns: Sequence[str], row: Row, last: bool, headed: bool) -> Mapping[str, str]:
    """The cells of a row by column. If one is missing here or in the heading, only those up to X are certain.

    `last`: the end of the text can cut this row, so that its first cells are certain. `headed`: a heading names all
    columns.
    """
    words = row.words[: len(columns)]
    place = columns.index(row.name) if row.name in columns else len(columns)
    own = words.index("X") if "X" in words else len(words)
    if own != place and (own < len(words) or own > place or not last):
        return {}
    shifted = any(word[:1].isdecimal() or word == "N/A" for word in words) or (headed and row.cells > len(columns))
    if shifted or (len(words) < len(columns) and not last):
        words = words[: place + 1]
    return dict(zip(columns, words, strict=False))


def affinities(line: str, row: Row, columns: int, named: int) -> Sequence[str] | None:
    """The words behind the cells of a row. With tabs, also the empty ones. None: a tab is missing.

    `named`: how many there are in the heading.
    """
    if "\t" not in line:
        return row.words[columns:]
    fields = [field.strip() for field in line.split("\t")]
    words = 0
    for place, one in enumerate(fields):
        if words > columns:
            behind = fields[place:]
            fewer = len(behind) < named or (len(behind) == 3 and not behind[1])  # the third has two tabs before it
            return None if words > columns + 1 or fewer else behind
        words += sum(len(_words(word)) for word in one.split())
    return None if words > columns + 1 or named else ()


def implied_columns(rows: Sequence[Row], named: int) -> tuple[list[str], bool]:
    """The columns of rows without a heading, and whether these are all. Empty: the rows do not fit together.

    `named`: how many NICs the legend below a matrix names.
    """
    placed = [(found[1], int(found[2]), row) for row in rows if (found := _NUMBERED.fullmatch(row.name))]
    whole = [one for one in placed if "X" in one[2].words[: one[2].cells]]
    gpus = nics = 0
    exact: set[int] = set()
    for kind, number, row in whole:
        place = list(row.words).index("X")
        if kind == "NIC":
            exact.add(place - number)
            nics = max(nics, number + 1)
        elif place != number:
            return [], False
        last = max((at for at, word in enumerate(row.words[: row.cells]) if _OF_GPUS.fullmatch(word)), default=0)
        gpus = max(gpus, last + 1, number + 1 if kind == "GPU" else 0)
    if not whole or len(exact) > 1 or any(count < gpus for count in exact):
        return [], False
    widths = {row.cells for _, _, row in whole}
    gpus, width = max(gpus, *exact, 0), max(widths)
    known = len(widths) == 1 and (bool(exact) or gpus + max(nics, named) == width)
    others = width - gpus if known else 0
    return [*(f"GPU{one}" for one in range(gpus)), *(f"NIC{one}" for one in range(others))], known
