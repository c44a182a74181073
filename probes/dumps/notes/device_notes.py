"""What people write about devices, by line or as a table: "GPU 3: PCIe Gen4 x8 (max x16)", "mlx5_2 Down Polling".

No tool writes these lines, so they are read only where no other reader begins. words.py has the vocabulary.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ....models.facts.gpu import Gpu
from ....models.facts.machine import Net, Pci, Port, Rdma
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, NotChecked, Record
from ..core.fields import FactCollector
from ..core.part import Part
from ..lines.markup import cells_of
from .statement import Statement, statement
from .words import DEVICES, Word, words

_DEVICE = "|".join(DEVICES.values())
_VALUE = (
    r"x[ ]?[0-9]|[0-9]x|gen|pcie|gt/s|width|lane|b/s|bps|rate|speed|link|active|down|ecc|remap|slowdown|brake|carrier"
)
_COLUMN = r"gpus?|gpu[ ](?:id|index)|device|dev|nic|hca|interface|index|idx|id|port"
# The first line of a note: a device and a value, or the names of columns. No tool's output begins with ANY_LINE alone.
BEGIN = r"(?!)"
ANY_LINE = (
    rf"^(?i:(?=[^\n]{{0,200}}(?:{_VALUE}))[^\n]{{0,40}}?(?<![\w.:/-])(?:{_DEVICE})"
    rf"|[ \t|]{{0,8}}(?:{_COLUMN})[ \t]*(?:\||,|\t|[ ]{{2}})(?=[^\n]{{0,200}}(?:{_VALUE}))(?![^\n]*[0-9]))"
)
_COLUMN_NAME = re.compile(_COLUMN, re.IGNORECASE)
_CELLS = re.compile(r"[ \t]*(?:\||,|\t|[ ]{2,})[ \t]*")
_MOST_CELLS, _MOST_RANGE = 40, 16
_HOW = "write each line as 'gpu3: PCIe Gen4 x8, max x16', or paste the output of a tool"


def read(part: Part) -> Iterator[Record]:
    """Fields of Gpu, Pci, Net, Rdma and Port facts, and a NotChecked if lines are not understood."""
    found, unclear = FactCollector(), list[int]()
    columns: list[str] = []
    for number, line in part.lines():
        plain = cells_of(line).strip()
        if not any(map(str.isalnum, plain)):
            continue
        if header := _header(plain):
            columns = header
        elif not _take(found, _row(columns, plain) or plain, part.cite(number, line)):
            columns = []
            unclear.append(number)
    yield from found.records()
    if unclear:
        more = f" and {len(unclear) - 1} more" if len(unclear) > 1 else ""
        yield NotChecked(
            what="dump",
            subject=part.file,
            reason=Reason.UNREADABLE,
            path=part.where(unclear[0]),
            detail=f"line {part.place(unclear[0])}{more} of a list of devices: not understood",
            how=_HOW,
        )


def _header(line: str) -> list[str] | None:
    """The names of the columns: a device, and values of it. None: no header."""
    names = _CELLS.split(line.strip("| \t"))[:_MOST_CELLS]
    if len(names) < 2 or not _COLUMN_NAME.fullmatch(names[0]):
        return None
    known = [words(name) for name in names[1:]]
    return names if all(known) and not any(word.kind == "number" for one in known for word in one) else None


def _row(columns: Sequence[str], line: str) -> str | None:
    """A row of a table as a line with the names of its columns. None: no row."""
    cells = _CELLS.split(line.strip("| \t"))
    if not columns or len(cells) != len(columns):
        return None
    device = f"gpu {cells[0]}" if cells[0].isdecimal() else cells[0]
    return "; ".join((device, *(f"{name} {cell}" for name, cell in zip(columns[1:], cells[1:], strict=True))))


def _take(found: FactCollector, line: str, cite: Evidence) -> bool:
    """Add the facts of one line. False: it is not understood."""
    every = words(line)
    named = [word for word in every if word.kind in DEVICES]
    said = statement([word for word in every if word.kind not in DEVICES])
    if not named or said is None or said.is_empty or len({word.kind for word in named} - {"pci"}) > 1:
        return False
    keys = {kind: [key for word in named if word.kind == kind for key in _keys(word)] for kind in DEVICES}
    for kind, add in (("gpu", _gpu), ("nic", _nic), ("net", _net)):
        for key in keys[kind]:
            add(found, key, said, cite)
        if keys[kind]:
            return True
    for key in keys["pci"]:
        _function(found, key, said, cite)
    return True


def _keys(word: Word) -> Iterator[str]:
    """The names of the devices as facts have them."""
    if word.kind == "gpu":
        first, *last = (int(digits) for digits in re.findall(r"[0-9]{1,3}", word.text))
        for number in range(first, min(max(last, default=first), first + _MOST_RANGE) + 1):
            yield f"gpu{number}"
    elif word.kind == "nic":
        device, _, port = re.sub(r",? port |:", "/", word.text).partition("/")
        yield f"{device}/{port or 1}"
    elif word.kind == "pci":
        yield word.text if word.text.count(":") > 1 else f"0000:{word.text}"
    else:
        yield word.text


def _gpu(found: FactCollector, key: str, said: Statement, cite: Evidence) -> None:
    found.add(
        Gpu,
        key,
        cite,
        pcie_width=_lanes(said, "now"),
        pcie_max_width=_lanes(said, "most"),
        pcie_wanted_width=_lanes(said, "wanted"),
        pcie_speed=said.get("speed"),
        pcie_max_speed=said.get("speed", "most"),
        **said.gpu,
    )


def _function(found: FactCollector, key: str, said: Statement, cite: Evidence) -> None:
    below = tuple(name for name, of in (("speed", "speed"), ("width", "lanes")) if said.get(of, "wanted"))
    found.add(
        Pci,
        key,
        cite,
        width=_lanes(said, "now"),
        max_width=_lanes(said, "most") or _lanes(said, "wanted"),
        speed=said.get("speed"),
        max_speed=said.get("speed", "most") or said.get("speed", "wanted"),
        downgraded=below or None,
    )


def _lanes(said: Statement, mark: str) -> int | None:
    lanes = said.get("lanes", mark)
    return None if lanes is None else int(lanes)


def _nic(found: FactCollector, key: str, said: Statement, cite: Evidence) -> None:
    device = key.partition("/")[0]
    found.add(Rdma, device, cite)
    state = said.state or ("ACTIVE" if said.physical == "LinkUp" else "DOWN" if said.physical else None)
    found.add(Port, key, cite, device=device, state=state, physical_state=said.physical, rate=said.get("rate"))


def _net(found: FactCollector, key: str, said: Statement, cite: Evidence) -> None:
    carrier = {"ACTIVE": True, "DOWN": False}.get(said.state or "")
    if carrier is None and said.physical in ("LinkUp", "Down"):
        carrier = said.physical == "LinkUp"
    speed, most = said.get("rate"), said.get("rate", "most") or said.get("rate", "wanted")
    found.add(Net, key, cite, link_type="ethernet", carrier=carrier, speed=speed, max_speed=most)
