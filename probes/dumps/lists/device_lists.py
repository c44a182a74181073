"""Lists of devices that no other reader knows: tables, JSON, blocks of lines with names and values, and metrics.

Each value is read with its name by the vocabulary of notes/words.py. A value in other words is left out; if it is
marked as a fault, or differs from those of all other devices of the list, a NotChecked says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....models.facts.gpu import Gpu
from ....models.facts.machine import Rdma
from ....models.facts.reason import Reason
from ....models.facts.records import NotChecked, Record
from ...parsing.expressions import ignoring_case
from ..core.fields import FactCollector
from ..core.part import Part
from ..notes.device_fields import FIELDS, GPU_CLASS, add_fact, add_nic_link, keys_of, marked_fields
from ..notes.statement import Statement, statement
from ..notes.words import DEVICES, MARK, spelled, words
from .blocks import blocks
from .counter_samples import counted, counter_records
from .differences import odd_cells
from .item import NAMING, Cell, Item, Listed, device_in, device_kind, is_product
from .objects import objects
from .port_states import port_state
from .samples import samples
from .tables import tables

BEGIN = r"^Lists of devices:[ \t]*$"
_MARKED = (  # as a fault. Zeros and denials are none
    rf"{MARK}|\b(?:fail\w{{0,4}}|err(?:or)?s?|degraded|bad|critical|warn\w{{0,4}}|alert|abnormal|unhealthy|wrong|mismatch"
    r"|nok|faulty)\b"
)
_NONE = r"[-–—. ]{0,8}|n/?a|none|null|unknown|\?|\[?not supported\]?"
# Names that add nothing to a value that says what it is: "Link: Gen5 x16", "Throttle: HW Thermal Slowdown"
_NEUTRAL = (
    r"(?:pcie?|nvlink|port|device|current)?[ _]?(?:link|connection|status|state|health|info|details?|interface|bus"
    r"|thrott\w{2,6}|reasons?|clocks?|pcie?)(?:[ _](?:status|state|info|reasons?))?"
)
_BRACKETS = str.maketrans("()[]", "    ")  # a word behind a bracket does not belong to a mark before it
_SHORT_RATE = r"([0-9]{1,4}) ?G$"
_ADDRESS = r"\b(?:pci|bdf|address|bus)\b(?![ _-]?(?:e|gen|link|width|speed))"
_HOW = "paste the output of the tool that the list was made from"


def found_lists(part: Part) -> Iterator[Listed]:
    """The lists in a part that have a value in known words."""
    lines = part.text.split("\n")
    for listed in (*tables(lines), *objects(part), *blocks(lines), *samples(lines)):
        if any(port_state(cell) or _statements(cell) for item in listed.items for cell in item.cells):
            yield listed


def find(part: Part) -> Iterator[tuple[int, int]]:
    """The first line of each list, and the line behind its last one (from 0)."""
    yield from ((listed.first, listed.end) for listed in found_lists(part))
    numbers = [sample.number for sample, *_ in counted(part.text.split("\n"))]
    if numbers:
        yield numbers[0], numbers[-1] + 1


def read(part: Part) -> Iterator[Record]:
    """Fields of Gpu, Pci, Net, Rdma and Port facts, and a NotChecked for values that are marked as a fault."""
    found, unclear = FactCollector(), dict[int, Cell]()
    for listed in found_lists(part):
        odd = odd_cells(listed.items)
        for item in listed.items:
            for cell in item.cells:
                if not _take(found, part, item, cell) and (_is_marked(cell) or cell in odd):
                    unclear.setdefault(cell.number, cell)
    yield from found.records()
    yield from counter_records(part)
    for cell in list(unclear.values())[:1]:
        more = f" and {len(unclear) - 1} more" if len(unclear) > 1 else ""
        yield NotChecked(
            what="dump",
            subject=part.file,
            reason=Reason.INCOMPLETE,
            path=part.where(cell.number),
            detail=f"line {part.place(cell.number)}{more} of a list of devices has a value that is marked as a fault "
            f"or differs from all others, and was not understood: {cell.name}: {cell.value[:60]}",
            how=_HOW,
        )


def _is_marked(cell: Cell) -> bool:
    return bool(ignoring_case(_MARKED).search(cell.value)) and not re.match(r"(?:no|0)\b", cell.value.lower())


def _take(found: FactCollector, part: Part, item: Item, cell: Cell) -> bool:
    """Add what one value says about the device of its item. False: it is not understood."""
    cite = part.cite(cell.number, cell.line)
    kind = device_kind(item.device)
    (device,) = words(item.device)[:1] or (None,)
    if device is None or not kind:
        return False
    keys = list(keys_of(device))
    if NAMING.fullmatch(cell.name) and device_kind(device_in(cell.value) or "") == "pci":
        if kind in ("gpu", "nic") and len(keys) == 1:
            found.add(Gpu if kind == "gpu" else Rdma, keys[0].partition("/")[0], cite, address=_address_of(item))
        return True
    known, address = False, _address_of(item)
    if address is None and any(ignoring_case(_ADDRESS).search(one.name) for one in item.cells):
        return False  # the address is damaged
    marked = bool(ignoring_case(MARK).search(cell.value))
    state = port_state(cell) if kind in ("nic", "net") else None
    statements = [state] if state else _statements(cell)
    for said in statements:
        if kind == "nic" and add_nic_link(found, keys[0], address, said, cite, marked):
            known = True
            continue
        values = marked_fields(FIELDS[kind](said)) if marked else FIELDS[kind](said)
        if kind == "pci" and any(is_product(one.value) for one in item.cells):
            values["pci_class"] = GPU_CLASS
        for key in keys if any(value is not None for value in values.values()) else ():
            add_fact(found, kind, key, cite, values)
            known = True
    return known and (not marked or any(_explains(kind, said) for said in statements))


def _explains(kind: str, said: Statement) -> bool:
    """Whether a value that is marked as a fault says what is wrong: a port is down, or one value of a link is low."""
    one = kind != "gpu" and len(said.values) == 1
    return one or said.state not in (None, "ACTIVE") or said.physical not in (None, "LinkUp")


def _address_of(item: Item) -> str | None:
    """The PCI address of a device that has another name."""
    named = [device_in(one.value) or "" for one in item.cells if NAMING.fullmatch(one.name)]
    found = [name for name in named if device_kind(name) == "pci"]
    return next(keys_of(words(found[0])[0])) if found else None


def _statements(cell: Cell) -> list[Statement]:
    """What a value says with its name: "width 8"; "8/16" below "width cur/max" says two things."""
    if ignoring_case(_NONE).fullmatch(cell.value) or (NAMING.fullmatch(cell.name) and device_in(cell.value)):
        return []
    found: list[Statement] = []
    for name, value in _pairs(cell.name, ignoring_case(MARK).sub(" ", cell.value).strip() or cell.value):
        short = ignoring_case(_SHORT_RATE).sub(r"\1 Gb/s", value) if ignoring_case("rate|speed").search(name) else value
        texts = [f"{name.translate(_BRACKETS)} {short}"]
        texts += [value] if ignoring_case(_NEUTRAL).fullmatch(name) else []
        some = next((every for text in texts if (every := words(spelled(text)))), ())
        said = statement([one for one in some if one.kind not in DEVICES]) if some else None
        if said and (said.values or said.state or said.physical or said.gpu):
            found.append(said)
    return found


def _pairs(name: str, value: str) -> list[tuple[str, str]]:
    base, _, last = name.rpartition(" ")
    names, values = last.split("/"), value.split("/")
    if len(names) != 2 or len(values) != 2:
        return [(name, value)]
    return [(f"{base} {mark}", one) for mark, one in zip(names, values, strict=True)]
