"""Xids that people and programs name: "GPU3 Xid 79", "65:00.0: Xid 48", "Xids: 31, 43, 79", a table with a column XID,
a metric with the GPU and the Xid as labels.

The driver's own lines ("NVRM: Xid (PCI:0000:53:00): 79, ...") are read by kernel_log/forms.py. A sentence that names an
Xid in other ways only mentions it (models/catalog/messages/unexplained.toml).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ....models.facts.machine import Event
from ....models.facts.reason import Reason
from ....models.facts.records import NotChecked, Record
from ...parsing.sentences import is_negated
from ..core.part import Part

LINES = True
_UNNAMED = "gpu"
# A time has the form of a short address, so that one needs its function: 65:00.0
_ADDRESS = (
    r"(?:[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-7])?"
    r"|(?<![0-9a-f:])[0-9a-f]{2}:[01][0-9a-f]\.[0-7])(?!\w|[.]\w)"
)
_GPU = (
    rf"(?:(?:gpu[ :=#-]{{0,3}})?\(?(?:pci[ :=]{{1,2}})?(?P<pci>{_ADDRESS})\)?"
    r"|gpu(?:[ _#:=]{0,2}|-(?![0-9]{2}))(?P<gpu>[0-9]{1,3})(?![\w.]|:[0-9a-f]))"  # "gpu-113" is a machine
)
_BETWEEN = r"(?:,[ ]?|[ ]and[ ]|[ ]?/[ ]?)"
_CODES = rf"(?P<codes>[1-9][0-9]{{0,2}}(?:{_BETWEEN}[1-9][0-9]{{0,2}}(?![\w:]|\.\w)){{0,16}})(?![\w(-]|[.:]\w)"
_XID = rf"(?:(?<![\w-])|(?<=nvidia-))(?<!no )(?<!not )(?<!any )xids?(?:[ ](?:errors?|codes?))?[ ]?[:=#]?[ ]?{_CODES}"
_WORDS = r"[^\n0-9|\".,;:?!]{0,60}?"
_SEEN = r"(?:found|observed|seen|logged|detected|reported)"
_LIST = (
    rf"(?:xids|xid[ -](?:errors|codes|error[ -]codes))(?:[ ]{_SEEN})?"
    r"(?:[ ](?:on|in|of)[ ](?:this|the)[ ](?:node|host|machine|log))?"
)
_ENDED = r"(?=[^\n]{0,200}(?<!\w)(?:killed|hangs?|hung|crash(?:ed|es)?|died|reboot)(?!\w))"
_FORMS = (
    rf"(?<![\w-]){_GPU}(?:[ ]on[ ][\w.-]{{1,40}}(?=[ ]))?[^\n0-9|\"]{{0,30}}?{_XID}",  # "GPU 5 on gpu-113"
    rf"{_XID}(?:[ ]?\([^)\n]{{0,60}}\))?(?:[ ](?:was|has been|error|{_SEEN})){{0,3}}[, ]{{1,2}}"
    rf"(?:on|of|for|from|at|in)[ ](?:[\w.-]{{1,40}}[ ]){{0,2}}?{_GPU}",
    rf"{_XID}[ ]?[:,;@ -][ ]{{0,2}}{_GPU}",
    # "Xid 94 contained ECC error and Xid 63 row remapping pending on GPU 0000:b9:00.0"
    rf"{_XID}(?=[ ]{_WORDS}(?:xid[ ]?[0-9]{{1,3}}[ ]{_WORDS})?(?:on|of|for|from|at)[ ]{_GPU})",
    rf"(?<![\w-]){_LIST}[ ]?[:=][ ]?{_CODES}",
    rf"{_XID}[ ]detected[ ]by[ ](?:dmesg|nvml|nvrm)\b",  # gpud
    rf"\b(?:kernel|NVRM):[ ](?:\[[ 0-9.]{{3,20}}\][ ]?)?(?:NVRM:[ ])?xid[ :]{{1,2}}{_CODES}(?=,|[ \t]*$)",
    # The title of an issue says what happened: "# Xid 145 on 8x B300: workers killed"
    rf"^[ \t]{{0,4}}#{{1,3}}[ ][^\n]{{0,100}}?{_XID}{_ENDED}",
    rf"^[ \t]{{0,8}}(?:[*-][ ])?xid[ :]{{1,2}}{_CODES}[ \t]*$",
    r"[a-z_]{0,40}xid[a-z_]{0,40}\{(?=[^}\n]{0,300}\bxid=\"(?P<codes>[1-9][0-9]{0,2})\")"
    r"(?=[^}\n]{0,300}\bgpu(?:_id|_index)?=\"(?P<gpu>[0-9]{1,3})\")[^}\n]{0,400}\}[ ][1-9]",
)
_HEAD = (
    r"[ \t|]{0,8}(?:[\w ]{1,24}[|,\t][ \t]{0,8}|[\w]{1,24}[ ]{1,12}){0,4}gpu(?:[ _]?(?:id|index))?[ \t]{0,12}[|,\t ]"
)
_TABLE = (  # the names of columns are no numbers
    rf"(?=[^\n]{{0,120}}\bxids?\b)(?:{_HEAD}[^\n:=0-9]{{0,120}}"
    r"|(?=[^\n]{0,120}\b(?:count|times|number)\b)[ \t|]{0,12}[a-z_ |,\t]{3,120})$"
)


def _unnamed(text: str) -> str:
    return re.sub(r"\(\?P<\w+>", "(?:", text)


# Not a line of JSON, and not a row of a table: other readers know these.
BEGIN = rf"^(?i:(?![ \t]*\||[^\n]{{0,200}}\"[ \t]*:)[^\n]{{0,200}}?(?:{'|'.join(map(_unnamed, _FORMS))})|{_TABLE})"
_ANY = tuple(re.compile(form, re.IGNORECASE) for form in _FORMS)
_TITLE = re.compile(_TABLE, re.IGNORECASE)
_LONGEST, _MOST = 600, 16  # characters and statements of a line


def read(part: Part) -> Iterator[Record]:
    """An event for each Xid of a GPU."""
    columns: tuple[int | None, int, int] | None = None  # of the GPU and of the Xid, and their number
    for number, line in part.lines():
        if _TITLE.match(line):
            columns = _columns(line)
        elif columns and columns[0] is None and _has_more(line, columns[2]):
            why = "a row of the table has more numbers than the heading has names: the name of a column is missing"
            path = part.where(number)
            yield NotChecked(what="Event", subject="node", reason=Reason.INCOMPLETE, path=path, detail=why)
        elif columns and (row := _row(line, columns[:2])):
            yield from _events(part, number, line, *row)
        else:
            for subject, codes in dict.fromkeys(_statements(line[:_LONGEST])):
                yield from _events(part, number, line, subject, codes)


def _statements(line: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The GPUs of a line, each with its Xids: the form that begins first, then what is behind it."""
    place = 0
    for _ in range(_MOST):
        found = min((one for form in _ANY if (one := form.search(line, place))), key=re.Match.start, default=None)
        if found is None:
            return
        place = found.end()
        if not is_negated(line, found.start(), found.end()):
            yield _subject(found), tuple(re.findall(r"[0-9]+", found["codes"]))


def _subject(found: re.Match[str]) -> str:
    groups = found.groupdict()
    if address := groups.get("pci"):
        return _address(address)
    return f"gpu{int(groups['gpu'])}" if groups.get("gpu") else _UNNAMED


def _address(text: str) -> str:
    """The address as the kernel writes it."""
    *domain, bus, device = text.lower().split(":")
    return f"{(domain or ['0000'])[0][-4:]}:{bus}:{device if '.' in device else f'{device}.0'}"


def _cells(line: str) -> list[str]:
    text = line.strip().strip("|")
    return [cell.strip() for cell in re.split(r"\||,|\t|[ ]{2,}" if re.search(r"\||,|\t|[ ]{2}", text) else " ", text)]


def _has_more(line: str, columns: int) -> bool:
    cells = _cells(line)
    return len(cells) > columns and all(map(str.isdecimal, cells))


def _columns(title: str) -> tuple[int | None, int, int] | None:
    names = [re.sub(r"[ _]?(?:id|index|errors?|codes?)$", "", cell.lower()) for cell in _cells(title)]
    gpu = next((place for place, name in enumerate(names) if name == "gpu"), None)
    xid = next((place for place, name in enumerate(names) if name in ("xid", "xids", "x")), None)
    return None if xid is None else (gpu, xid, len(names))


def _row(line: str, columns: tuple[int | None, int]) -> tuple[str, list[str]] | None:
    """The GPU and its Xid. None: another row, or no Xid ("0", "-")."""
    cells, (gpu, xid) = _cells(line), columns
    if len(cells) <= max(gpu or 0, xid) or not re.fullmatch(r"[1-9][0-9]{0,2}", cells[xid]):
        return None
    if gpu is None:
        return (_UNNAMED, [cells[xid]]) if all(cell.isdecimal() for cell in cells) else None
    if re.fullmatch(_ADDRESS, cells[gpu], re.IGNORECASE):
        return _address(cells[gpu]), [cells[xid]]
    named = re.fullmatch(r"(?i:gpu)?[ #]?([0-9]{1,3})", cells[gpu])
    return (f"gpu{int(named[1])}", [cells[xid]]) if named else None


def _events(part: Part, number: int, line: str, subject: str, codes: Sequence[str]) -> Iterator[Event]:
    where = part.cite(number, line)
    for code in dict.fromkeys(codes):
        yield Event(
            key=f"xid {subject} {code}",
            kind="xid",
            code=int(code),
            subject=subject,
            text=line.strip()[:300],
            count=1,
            cites={"text": where},
        )
