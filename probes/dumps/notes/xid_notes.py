"""Xids that people and programs name beside the number of a GPU: "GPU3 Xid 79", "Xids: 31, 43, 79", a table with the
columns GPU and XID, a metric with both as labels.

The driver's own lines ("NVRM: Xid (PCI:0000:53:00): 79, ...") are read by kernel_log/forms.py. A text that names an Xid
without a GPU only mentions it (models/catalog/messages/unexplained.toml).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ....models.facts.machine import Event
from ....models.facts.records import Record
from ..core.part import Part

LINES = True
_UNNAMED = "gpu"
_GPU = r"gpu[ _#:]{0,2}(?P<gpu>[0-9]{1,3})(?![\w.])"
_CODES = r"(?P<codes>[1-9][0-9]{0,2}(?:(?:,[ ]?|[ ]and[ ]|[ ]?/[ ]?)[1-9][0-9]{0,2}){0,16})(?![\w.(-])"
_XID = rf"(?<![\w-])(?<!no )(?<!not )(?<!any )(?<!detected )xids?(?:[ ](?:errors?|codes?))?[ ]?[:=#]?[ ]?{_CODES}"
_FORMS = (
    rf"(?<![\w-]){_GPU}[^\n0-9|\"]{{0,30}}?{_XID}",
    rf"{_XID}(?:[ ]?\([^)\n]{{0,60}}\))?[, ]{{1,2}}(?:on|of|for|from|at|in)[ ]{_GPU}",
    rf"(?<![\w-])(?:xids|xid[ ](?:errors|codes))[ ]?[:=][ ]?{_CODES}",
    r"[a-z_]{0,40}xid[a-z_]{0,40}\{(?=[^}\n]{0,300}\bxid=\"(?P<codes>[1-9][0-9]{0,2})\")"
    r"(?=[^}\n]{0,300}\bgpu(?:_id|_index)?=\"(?P<gpu>[0-9]{1,3})\")[^}\n]{0,400}\}[ ][1-9]",
)
_HEAD = (
    r"[ \t|]{0,8}(?:[\w ]{1,24}[|,\t][ \t]{0,8}|[\w]{1,24}[ ]{1,12}){0,4}gpu(?:[ _]?(?:id|index))?[ \t]{0,12}[|,\t ]"
)
_TABLE = rf"(?=[^\n]{{0,120}}\bxids?\b){_HEAD}[^\n:=]{{0,120}}$"


def _unnamed(text: str) -> str:
    return re.sub(r"\(\?P<\w+>", "(?:", text)


# Not a line of JSON, and not a row of a table: other readers know these.
BEGIN = rf"^(?i:(?![ \t]*\||[^\n]{{0,200}}\"[ \t]*:)[^\n]{{0,200}}?(?:{'|'.join(map(_unnamed, _FORMS))})|{_TABLE})"
_ANY = tuple(re.compile(form, re.IGNORECASE) for form in _FORMS)
_TITLE = re.compile(_TABLE, re.IGNORECASE)


def read(part: Part) -> Iterator[Record]:
    """An event for each Xid of a GPU."""
    columns: tuple[int, int] | None = None  # of the GPU and of the Xid
    for number, line in part.lines():
        if _TITLE.match(line):
            columns = _columns(line)
        elif columns and (row := _row(line, columns)):
            yield from _events(part, number, line, *row)
        elif found := next((found for form in _ANY if (found := form.search(line[:600]))), None):
            yield from _events(part, number, line, found.groupdict().get("gpu"), re.findall(r"[0-9]+", found["codes"]))


def _cells(line: str) -> list[str]:
    text = line.strip().strip("|")
    return [cell.strip() for cell in re.split(r"\||,|\t|[ ]{2,}" if re.search(r"\||,|\t|[ ]{2}", text) else " ", text)]


def _columns(title: str) -> tuple[int, int] | None:
    names = [re.sub(r"[ _]?(?:id|index|errors?|codes?)$", "", cell.lower()) for cell in _cells(title)]
    gpu = next((place for place, name in enumerate(names) if name == "gpu"), None)
    xid = next((place for place, name in enumerate(names) if name in ("xid", "xids", "x")), None)
    return None if gpu is None or xid is None else (gpu, xid)


def _row(line: str, columns: tuple[int, int]) -> tuple[str, list[str]] | None:
    """The number of the GPU and its Xid. None: another row, or no Xid ("0", "-")."""
    cells = _cells(line)
    if len(cells) <= max(columns):
        return None
    gpu, xid = (cells[column] for column in columns)
    named = re.fullmatch(r"(?i:gpu)?[ #]?([0-9]{1,3})", gpu)
    return (named[1], [xid]) if named and re.fullmatch(r"[1-9][0-9]{0,2}", xid) else None


def _events(part: Part, number: int, line: str, gpu: str | None, codes: Sequence[str]) -> Iterator[Event]:
    subject, where = f"gpu{int(gpu)}" if gpu else _UNNAMED, part.cite(number, line)
    for code in dict.fromkeys(codes):
        key = f"xid {subject} {code}"
        yield Event(
            key=key,
            kind="xid",
            code=int(code),
            subject=subject,
            text=line.strip()[:300],
            count=1,
            cites={"text": where},
        )
