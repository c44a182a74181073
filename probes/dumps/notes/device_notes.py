"""What people write about devices, by line or as a table: "GPU 3: PCIe Gen4 x8 (max x16)", "mlx5_2 Down Polling".

No tool writes these lines, so they are read only where no other reader begins. words.py has the vocabulary.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ....models.facts.gpu import Gpu, GpuLink
from ....models.facts.machine import Net, Pci, Port, Rdma
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, NotChecked, Record
from ...kernel_log.patterns import event_of
from ..core.fields import FactCollector
from ..core.part import Part
from ..host.nccl_values import pci_address
from ..lines.markup import cells_of
from . import links_down
from .instead import ANY_LINE as INSTEAD
from .instead import NAMELESS, instead, names_gpu
from .statement import Statement, statement
from .words import DEVICES, Word, clauses, spelled, words

_DEVICE = "|".join(DEVICES.values())
_VALUE = (
    r"x[ ]?[0-9]|[0-9]x|gen|pcie|gt/s|width|lane|b/s|bps|rate|speed|link|active|down|ecc|dbe"
    r"|remap|slowdown|brake|carrier|mhz|power limit|missing|lost|gone|off the bus|not (?:found|detected|visible)"
)
_COLUMN = (
    r"gpus?|gpu[ ](?:id|index)|device|dev|nic|hca|interface|index|idx|id|port|bdf|address"
    r"|pci[ _]?(?:addr(?:ess)?|bus[ _]?id)|bus[ _-]?id"
)
# Columns that say which device it is, and nothing of its state
_LABEL = (
    r"(?:#|no\.?|slot|card|model|name|product|vendor|type|node|host|role|location|numa(?: node)?|socket|notes?"
    r"|comments?|remarks?|rdma|net|(?:lnk|ip)stat|hca[ _]?type)"
)
BEGIN = r"^Notes on devices:[ \t]*$"
# A device and a value, or the names of columns
ANY_LINE = (
    rf"^(?i:(?=[^\n]{{0,200}}(?:{_VALUE}))[^\n]{{0,40}}?(?<![\w.:/-])(?:{_DEVICE})"
    rf"|[ \t|]{{0,8}}(?:{_LABEL}[ \t]*(?:\||,|\t|[ ]{{2}})[ \t|]{{0,24}}){{0,3}}(?:{_COLUMN})[ \t]*(?:\||,|\t|[ ]{{2}})"
    rf"(?=[^\n]{{0,200}}(?:{_VALUE}|current|now|max))(?![^\n]*[0-9])"
    r"|[ \t]{0,8}(?:cur|max)[a-z]{0,4}_(?:link_)?(?:width|speed)[ :=][^\n]{1,120}?(?<![\w.:/-])"
    rf"(?:{DEVICES['pci']})|{INSTEAD})"
)
_COLUMN_NAME, _LABEL_NAME = re.compile(_COLUMN, re.IGNORECASE), re.compile(_LABEL, re.IGNORECASE)
_ADDRESS = re.compile(DEVICES["pci"], re.IGNORECASE)
_ANY_DEVICE = re.compile(
    rf"(?<![\w.:/-])(?:{'|'.join(f'(?P<{kind}>{text})' for kind, text in DEVICES.items())})", re.IGNORECASE
)
_PRODUCT = re.compile(
    r"(?<![a-z])(?:gpu|[gr]tx|geforce|tesla|quadro|titan|[0-9]{4}(?: ?ti| super)?\b|[ablhpv][0-9]{2,3}\b)", re.I
)
_CELLS = re.compile(r"[ \t]*(?:\||,|\t|[ ]{2,})[ \t]*")
_PAIR_OF_COLUMNS = re.compile(r"(\w) ?\((\w{1,12})[ ]?/[ ]?(\w{1,12})\)")  # "width (cur/max)"
# A device between two numbers, "GPU 2 is at x8, GPU 3 is at x16", but not "x8 on GPU 2 instead of x16"
_TWO_STATEMENTS = re.compile("nd+n")
_GPU_CLASS = 0x030200
_NO_BRACKETS = str.maketrans("()[]", "    ")  # a word behind a bracket does not belong to a mark before it
_MOST_CELLS, _MOST_RANGE = 40, 16
_HOW = "write each line as 'gpu3: PCIe Gen4 x8, max x16', or paste the output of a tool"


def read(part: Part) -> Iterator[Record]:
    """Fields of Gpu, Pci, Net, Rdma and Port facts, and a NotChecked if some lines are not understood.

    Nothing if no line is understood: then it is no list of devices (split.py), unless its first line says so.
    """
    found, unclear = FactCollector(), list[int]()
    columns = _Columns()
    for number, line in part.lines():
        plain = spelled(cells_of(line).strip())
        if not any(map(str.isalnum, plain)) or re.match(BEGIN, plain) or event_of(plain):
            continue  # log_events.py reads the lines of a log
        if header := _header(plain):
            columns = header
        elif not _take(found, _row(columns, plain) or plain, cite := part.cite(number, line)) and not _take_instead(
            found, plain, part.where(number), cite
        ):
            unclear.append(number)
    yield from found.records()
    if unclear and (found.facts or re.match(BEGIN, part.text)):
        more = f" and {len(unclear) - 1} more" if len(unclear) > 1 else ""
        yield NotChecked(
            what="dump",
            subject=part.file,
            reason=Reason.UNREADABLE,
            path=part.where(unclear[0]),
            detail=f"line {part.place(unclear[0])}{more} of a list of devices: not understood",
            how=_HOW,
        )


class _Columns(Struct):
    """The names of the columns of a table: that of the device, and those of its values."""

    names: Sequence[str] = ()
    device: int = 0
    labels: frozenset[int] = frozenset()


def _header(line: str) -> _Columns | None:
    """The names of the columns. The first one that can name a device does, or one with addresses. None: no header."""
    names = _CELLS.split(_PAIR_OF_COLUMNS.sub(r"\1 \2/\3", line).strip("| \t"))[:_MOST_CELLS]
    labels = frozenset(place for place, name in enumerate(names) if _LABEL_NAME.fullmatch(name))
    device = next((place for place, name in enumerate(names) if _COLUMN_NAME.fullmatch(name)), None)
    if len(names) < 2 or device is None or any(place not in labels for place in range(device)):
        return None
    known = [words(name) for place, name in enumerate(names) if place != device and place not in labels]
    numbered = any(word.kind == "number" for one in known for word in one)
    return _Columns(names, device, labels) if known and all(known) and not numbered else None


def _row(columns: _Columns, line: str) -> str | None:
    """A row of a table as a line with the names of its columns. None: no row."""
    cells = _CELLS.split(line.strip("| \t"))
    if not columns.names or len(cells) != len(columns.names):
        return None
    device = cells[columns.device]
    device = f"gpu {device}" if device.isdecimal() else _named(device, *(cells[place] for place in columns.labels))
    values = [place for place in range(len(cells)) if place != columns.device and place not in columns.labels]
    return "; ".join((device, *(_cell(columns.names[place], cells[place]) for place in values)))


def _named(cell: str, *labels: str) -> str:
    """The address in a cell, if the name of a GPU is beside it: "RTX 3090 `06:00.0`"."""
    found = _ADDRESS.findall(cell)
    return f"{found[0]} gpu" if len(found) == 1 and any(map(_PRODUCT.search, (cell, *labels))) else cell


def _cell(name: str, cell: str) -> str:
    """A cell with the name of its column: "width 8". "8/16" under "width (cur/max)" is "width cur 8; width max 16"."""
    names, values = name.rpartition(" ")[2].split("/"), cell.split("/")
    if len(names) != 2 or len(values) != 2:
        return f"{name.translate(_NO_BRACKETS)} {cell}"
    base = name.rpartition(" ")[0]
    return "; ".join(f"{base} {mark} {value}" for mark, value in zip(names, values, strict=True))


def _take(found: FactCollector, line: str, cite: Evidence) -> bool:
    """Add the facts of one line. False: it is not understood."""
    own, others = clauses(line)
    every = words(own)
    named = [word for word in every if word.kind in DEVICES]
    said = statement([word for word in every if word.kind not in DEVICES], words(others))
    kinds = {word.kind for word in named}
    if _has_lost(every):
        return False
    if said is None or len(kinds - {"pci"}) > 1 or _TWO_STATEMENTS.search("".join(map(_letter, every))):
        return False
    if kinds == {"gpu"} and _take_links(found, every, cite):
        return True
    kind = next((one for one in _FACTS if one in kinds), None)
    values = _FACTS[kind](said) if kind else {}
    if kind == "pci" and any(word.text == "gpu" for word in every):
        values["pci_class"] = _GPU_CLASS
    values |= _ids(every) if kind == "pci" else {}
    if kind is None or not any(value is not None for value in values.values()):
        return False
    for key in [key for word in named if word.kind == kind for key in _keys(word)]:
        _add(found, kind, key, cite, values)
    return True


def _take_instead(found: FactCollector, line: str, where: str, cite: Evidence) -> bool:
    """Add the link of a sentence in any words about one device or none: "my card runs at x8 instead of x16"."""
    said, named = instead(line), list(_ANY_DEVICE.finditer(line))
    if said is None or len(named) > 1:
        return False
    kind = named[0].lastgroup if named else None
    if kind == "gpu" or (kind is None and names_gpu(line)):
        keys = _keys(Word("gpu", named[0][0].lower(), "")) if named else iter((NAMELESS,))
        for key in keys:
            found.add(Gpu, key, cite, **said.of_gpu())
    elif kind in (None, "pci"):
        key = next(_keys(Word("pci", named[0][0].lower(), ""))) if named else where
        found.add(Pci, key, cite, **said.of_function())
    return kind in (None, "gpu", "pci")


def _ids(every: Sequence[Word]) -> dict[str, Any]:
    """Vendor and device in "0000:41:00.0 (10de:2684)"."""
    found = [word.text.split(":") for word in every if word.kind == "ids"]
    return {"vendor": int(found[0][0], 16), "device": int(found[0][1], 16)} if len(found) == 1 else {}


def _take_links(found: FactCollector, every: Sequence[Word], cite: Evidence) -> bool:
    """Add the NVLinks of GPUs that the line calls down. False: it is about something else."""
    numbers, counts = links_down.named(every), links_down.counted(every)
    for key in [key for word in every if word.kind == "gpu" and (numbers or counts) for key in _keys(word)]:
        up, present = counts or (None, None)
        found.add(Gpu, key, cite, nvlinks=up, nvlinks_present=present)
        for number in numbers if not counts else ():
            found.add(GpuLink, f"{key}/nvlink{number}", cite, gpu=key, kind="nvlink", active=False)
    return bool(numbers or counts)


def _has_lost(every: Sequence[Word]) -> bool:
    """Whether the line says that something lost a GPU: "gpu-12 has lost a GPU". Its name is that of a machine."""
    gone = next((place for place, word in enumerate(every) if word.kind == "gone"), len(every))
    return any(word.text in ("gpu", "gpus") for word in every[gone:])


def _letter(word: Word) -> str:
    """Of a device d, of a number n, of a word that changes what a number means m."""
    if word.kind in DEVICES:
        return "d"
    return {"lanes": "n", "speed": "n", "rate": "n", "most": "m", "wanted": "m"}.get(word.kind, "")


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
        yield pci_address(word.text if word.text.count(":") > 1 else f"0000:{word.text}")
    else:
        yield word.text


def _gpu(said: Statement) -> dict[str, Any]:
    """Fields of a Gpu."""
    return {
        "pcie_width": _lanes(said, "now"),
        "pcie_max_width": _lanes(said, "most"),
        "pcie_wanted_width": _lanes(said, "wanted"),
        "pcie_speed": said.get("speed"),
        "pcie_max_speed": said.get("speed", "most"),
        "pcie_wanted_speed": said.get("speed", "wanted"),
        **said.gpu,
    }


def _function(said: Statement) -> dict[str, Any]:
    """Fields of a Pci."""
    below = tuple(name for name, of in (("speed", "speed"), ("width", "lanes")) if said.get(of, "wanted"))
    return {
        "width": _lanes(said, "now"),
        "max_width": _lanes(said, "most") or _lanes(said, "wanted"),
        "speed": said.get("speed"),
        "max_speed": said.get("speed", "most") or said.get("speed", "wanted"),
        "downgraded": below or None,
        "lost": True if "failure" in said.gpu else None,
    }


def _port(said: Statement) -> dict[str, Any]:
    """Fields of a Port."""
    state = said.state or ("ACTIVE" if said.physical == "LinkUp" else "DOWN" if said.physical else None)
    wanted = said.get("rate", "wanted") or said.get("rate", "most")
    return {"state": state, "physical_state": said.physical, "rate": said.get("rate"), "wanted_rate": wanted}


def _net(said: Statement) -> dict[str, Any]:
    """Fields of a Net."""
    carrier = {"ACTIVE": True, "DOWN": False}.get(said.state or "")
    if carrier is None and said.physical in ("LinkUp", "Down"):
        carrier = said.physical == "LinkUp"
    most = said.get("rate", "most") or said.get("rate", "wanted")
    return {"carrier": carrier, "speed": said.get("rate"), "max_speed": most}


def _lanes(said: Statement, mark: str) -> int | None:
    lanes = said.get("lanes", mark)
    return None if lanes is None else int(lanes)


def _add(found: FactCollector, kind: str, key: str, cite: Evidence, values: Mapping[str, Any]) -> None:
    """Add the fact of one device."""
    if kind == "nic":
        device = key.partition("/")[0]
        found.add(Rdma, device, cite)
        found.add(Port, key, cite, device=device, **values)
    elif kind == "net":
        found.add(Net, key, cite, link_type="ethernet", **values)
    else:
        found.add(Gpu if kind == "gpu" else Pci, key, cite, **values)


_FACTS: Mapping[str, Callable[[Statement], dict[str, Any]]] = {
    "gpu": _gpu,
    "nic": _port,
    "net": _net,
    "pci": _function,
}
