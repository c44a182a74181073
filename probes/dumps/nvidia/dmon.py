"""Monitors that print a row per GPU and second: `dcgmi dmon` and `nvidia-smi dmon`.

The columns of dcgmi have the short names of DCGM's fields: dcgmi/DeviceMonitor.cpp and dcgmlib/src/dcgm_fields.cpp of
https://github.com/NVIDIA/DCGM. Those of nvidia-smi are in `nvidia-smi dmon --help`. The second line of a heading has
the units. The last row of a GPU counts. If it is damaged, the values that change from row to row are not known. Each
Xid is an event. Rows without their heading have the columns that the command `dcgmi dmon -e` names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from ....models.facts.gpu import Gpu
from ....models.facts.machine import Event
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, NotChecked, Observation, Record
from ....models.facts.units import MIB
from ...parsing.nvml_enums import COMPUTE_MODES, clock_reasons, hertz, meaning, pci_address, pcie_speed
from ...parsing.parsers import count, flag, pcie_width, word
from ..core.fields import FactCollector
from ..core.part import Part

_ENTITY = r"#[ ]?Entity[ \t]{1,40}[A-Z][A-Z0-9#]{2,7}\b"
_INDEX = r"#[ ]?(?:Date[ \t]{1,20}Time[ \t]{1,20})?gpu[ \t]{1,20}(?!pid\b)[a-z][a-z0-9]{1,7}\b"
_COMMAND = r"[^\n]{0,80}?\bdcgmi dmon [^\n|#]{0,60}?(?:-e|--field-id)[ =]?[0-9]{1,4}(?:,[0-9]{1,4}){0,60}(?![\w,])"
_TITLE = rf"[ \t]*(?:{_ENTITY}|{_INDEX})"
BEGIN = rf"^(?:{_TITLE}|{_COMMAND})"
_HEAD, _FIELD_IDS = re.compile(_TITLE), re.compile(rf"(?={_COMMAND}).*?(?:-e|--field-id)[ =]?(?P<ids>[0-9,]+)")
_UNITS = re.compile(r"[ \t]*(?:ID|Id|# ?Idx|#YYYYMMDD)\b")
_ROW = re.compile(r"[ \t]*GPU[ \t]{1,8}(?P<gpu>[0-9]{1,3})\b(?P<rest>.*)")
_TIMED = re.compile(r"[ \t]*(?:[0-9]{8}[ \t]{1,8}[0-9:]{8}[ \t]{1,8})?(?P<gpu>[0-9]{1,3})\b(?P<rest>[ \t].*)")
_NUMBER = re.compile("[0-9]{1,20}")
_NONE = ("N/A", "-", "")
_BLANK = 0x7FFFFFF0  # DCGM_INT32_BLANK and the numbers above it: the field has no value (dcgm_structs.h)
_JOINED = re.compile(r"\s(?:ID|Id|# ?Idx|#YYYYMMDD)\b")  # the units in the line of the names
_NAME, _XID = "DVNAM", "XIDER"
_HOT, _HEAT = "tviol", "thermal violation"  # of nvidia-smi; pviol is no fault: the power limit is normal under load
_SHARE = 0.1  # of the rows: fewer are moments
# Values that change from row to row: an earlier row does not show the last ones.
_MOMENTS = frozenset(
    {"PCILG", "PSTAT", "SMCLK", "MMCLK", "DVCCTR", "TMPTR", "POWER", "FBUSD", "pwr", "gtemp", "mclk", "pclk"}
)
_MOST_WORDS = 5  # of the name of a product, behind the first one


def _megabytes(text: str) -> int:
    return int(count(text)) * MIB


def _clock(text: str) -> float:
    return hertz(count(text))


def _speed(text: str) -> float | None:
    return pcie_speed(count(text))


def _reasons(text: str) -> tuple[str, ...]:
    return clock_reasons(count(text))


def _mode(text: str) -> str:
    return meaning(COMPUTE_MODES, count(text))


def _number(text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,6}(?:\.[0-9]{1,6})?", text):
        raise ValueError(f"{text[:40]!a} is not a number")
    return float(text)


def _degrees(text: str) -> float:
    return float(count(text))


def _state(text: str) -> int:
    if (state := count(text)) > 15:
        raise ValueError(f"{state} is no performance state")
    return state


_FIELDS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "DVNAM": ("name", word),
    "UUID#": ("uuid", word),
    "PCBID": ("address", pci_address),
    "VBVER": ("vbios", word),
    "PCILG": ("pcie_speed", _speed),
    "PCILW": ("pcie_width", pcie_width),
    "PCIMG": ("pcie_max_speed", _speed),
    "PCIMW": ("pcie_max_width", pcie_width),
    "PSTAT": ("performance_state", _state),
    "SMCLK": ("clock", _clock),
    "SMMAX": ("clock_max", _clock),
    "MMCLK": ("memory_clock", _clock),
    "MMMAX": ("memory_clock_max", _clock),
    "DVCCTR": ("clock_reasons", _reasons),
    "TMPTR": ("temperature", _degrees),
    "POWER": ("power", _number),
    "EPLMT": ("power_limit", _number),
    "PMDEF": ("power_limit_default", _number),
    "FBTTL": ("memory", _megabytes),
    "FBUSD": ("memory_used", _megabytes),
    "B1TTL": ("bar1", _megabytes),
    "ECCUR": ("ecc", flag),
    "ECPEN": ("ecc_pending", flag),
    "ESVTL": ("ecc_corrected", count),
    "EDVTL": ("ecc_uncorrected", count),
    "ESATL": ("ecc_corrected_lifetime", count),
    "EDATL": ("ecc_uncorrected_lifetime", count),
    "URMPS": ("remapped_uncorrectable", count),
    "CRMPS": ("remapped_correctable", count),
    "RRF": ("remap_failed", flag),
    "RRP": ("remap_pending", flag),
    "MGMOD": ("mig", flag),
    "PMMOD": ("persistence", flag),
    "CMMOD": ("compute_mode", _mode),
    "pwr": ("power", _number),
    "gtemp": ("temperature", _degrees),
    "mclk": ("memory_clock", _clock),
    "pclk": ("clock", _clock),
    "sbecc": ("ecc_corrected_lifetime", count),
    "dbecc": ("ecc_uncorrected_lifetime", count),
}
# The numbers of these fields (dcgmlib/dcgm_fields.h)
_IDS: Mapping[str, str] = {
    **{"50": "DVNAM", "54": "UUID#", "57": "PCBID", "85": "VBVER", "65": "CMMOD", "66": "PMMOD", "67": "MGMOD"},
    **{"90": "B1TTL", "100": "SMCLK", "101": "MMCLK", "112": "DVCCTR", "113": "SMMAX", "114": "MMMAX"},
    **{"150": "TMPTR", "155": "POWER", "163": "PMDEF", "164": "EPLMT", "190": "PSTAT", "202": "RPCTR"},
    **{"230": "XIDER", "235": "PCIMG", "236": "PCIMW", "237": "PCILG", "238": "PCILW", "250": "FBTTL", "252": "FBUSD"},
    **{"300": "ECCUR", "301": "ECPEN", "310": "ESVTL", "311": "EDVTL", "312": "ESATL", "313": "EDATL"},
    **{"393": "URMPS", "394": "CRMPS", "395": "RRF", "396": "RRP"},
    **{"409": "NFELT", "419": "NDELT", "429": "NRELT", "439": "NRCLT"},
}
_COUNTERS: Mapping[str, str] = {
    "RPCTR": "pcie_replay",
    "NFELT": "nvlink_crc",
    "NDELT": "nvlink_crc",
    "NRELT": "nvlink_replay",
    "NRCLT": "nvlink_recovery",
    "pci": "pcie_replay",
}


class _Table(Struct):
    """The columns of a heading, the last value of each column of a GPU, the Xids of all rows, and the rows of each GPU
    with a thermal violation.
    """

    columns: list[str] = field(default_factory=list)
    last: dict[tuple[str, str], tuple[str, Evidence]] = field(default_factory=dict)
    xids: dict[tuple[str, int], Evidence] = field(default_factory=dict)
    rows: Counter[str] = field(default_factory=Counter[str])
    hot: dict[str, list[Evidence]] = field(default_factory=dict)
    unread: tuple[str, str] | None = None  # the first row with another number of cells


def read(part: Part) -> Iterator[Record]:
    """A `Gpu` with the values of its last row, counters, and an event for each Xid."""
    table = _Table()
    for number, line in part.lines():
        if _HEAD.match(line):
            table.columns = _columns(line)
        elif command := _FIELD_IDS.match(line):
            table.columns = [_IDS.get(one, one) for one in command["ids"].strip(",").split(",")]
        elif line.lstrip().startswith("#") and not _UNITS.match(line):
            table.columns = []  # the heading of another table
        elif table.columns and not _UNITS.match(line) and (row := _row_of(line, table.columns)):
            _take(table, row, line, part.where(number), part.cite(number, line))
    yield from _facts(table)
    yield from _counters(table, part)
    if table.unread:
        path, why = table.unread
        how = "keep the whole lines of the tool"
        yield NotChecked(what="row of dmon", subject="node", reason=Reason.UNREADABLE, path=path, detail=why, how=how)


def _columns(heading: str) -> list[str]:
    """The columns behind that of the entity."""
    names = re.findall(r"[A-Za-z][\w#]*", _JOINED.split(heading)[0])
    return names[next(place for place, name in enumerate(names) if name in ("Entity", "gpu")) + 1 :]


def _row_of(line: str, columns: Sequence[str]) -> re.Match[str] | None:
    return (_TIMED if columns[0].islower() else _ROW).match(line)


def _take(table: _Table, row: re.Match[str], line: str, path: str, cite: Evidence) -> None:
    """Keep the values of a row. A row with another number of cells than columns is a gap."""
    gpu, cells = f"gpu{int(row['gpu'])}", _named(row["rest"].split(), table.columns)
    if len(cells) != len(table.columns):
        wrong = f"{line.strip()[:60]!a} has not as many values as the heading has columns"
        table.unread = table.unread or (path, wrong)
        for name in _MOMENTS:
            if (gpu, name) in table.last:
                table.last[gpu, name] = "", cite
        return
    table.rows[gpu] += 1
    for name, text in zip(table.columns, cells, strict=True):
        if name == _HOT and text == "1":
            table.hot.setdefault(gpu, []).append(cite)
        blank = text in _NONE or (name != "DVCCTR" and _NUMBER.fullmatch(text) is not None and int(text) >= _BLANK)
        if name == _XID and not blank and re.fullmatch("[1-9][0-9]{0,3}", text):
            table.xids.setdefault((gpu, int(text)), cite)
        table.last[gpu, name] = ("" if blank else text, cite)


def _named(cells: list[str], columns: Sequence[str]) -> list[str]:
    """The cells with the name of the product in one cell: it has several words."""
    more = len(cells) - len(columns)
    if not 0 < more <= _MOST_WORDS or _NAME not in columns:
        return cells
    place = columns.index(_NAME)
    words, behind = cells[place : place + more + 1], cells[place + more + 1 :]
    if not words[-1][-1].isalnum() or words[-1].isdecimal() or not all(map(_is_value, behind[:1])):
        return cells  # a word is missing, so the end of the name is not known
    return [*cells[:place], " ".join(words), *behind]


def _is_value(text: str) -> bool:
    return text in _NONE or not re.search("[A-Za-z]", text)


def _facts(table: _Table) -> Iterator[Record]:
    found = FactCollector()
    for (gpu, name), (text, cite) in table.last.items():
        found.add(Gpu, gpu, cite)
        if text and name in _FIELDS:
            found.take(Gpu, gpu, cite, _FIELDS[name][0], text, _FIELDS[name][1])
    for gpu, cites in table.hot.items():
        if len(cites) > _SHARE * table.rows[gpu]:
            found.add(Gpu, gpu, cites[-1], clock_reasons=(_HEAT,))
    for (gpu, code), cite in table.xids.items():
        key = f"xid {gpu} {code}"
        found.add(Event, key, cite, kind="xid", code=code, subject=gpu, text=cite.text)
    yield from found.records()


def _counters(table: _Table, part: Part) -> Iterator[Observation]:
    """The last value of each counter. CRC errors of NVLink are the sum of two columns."""
    sums: dict[tuple[str, str], tuple[float, Evidence]] = {}
    for (gpu, name), (text, cite) in table.last.items():
        if name in _COUNTERS and re.fullmatch("[0-9]{1,18}", text):
            before = sums.get((gpu, _COUNTERS[name]), (0.0, cite))[0]
            sums[gpu, _COUNTERS[name]] = before + float(text), cite
    for (gpu, quantity), (value, cite) in sums.items():
        yield Observation(about=gpu, quantity=quantity, unit="count", value=value, at=part.at, evidence=cite)
