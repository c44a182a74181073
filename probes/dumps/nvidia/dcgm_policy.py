"""Violations that `dcgmi policy --reg` prints: dcgmi/Policy.cpp of https://github.com/NVIDIA/DCGM.

A notification has a sentence and the value that violated the policy. It does not name the GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile

from ....models.facts.gpu import Gpu
from ....models.facts.machine import Event
from ....models.facts.records import Record
from ...kernel_log.messages import catalog, find_messages
from ..core.fields import FactCollector
from ..core.part import Part
from . import dcgm_words

_SENTENCE = re.compile(r"(?P<what>[A-Z][\w -]{4,80}?) has violated policy manager values")
_XID = re.compile(r"\b(?:XID|Error|Xid)[^\w\n]{0,20}(?P<code>[0-9]{1,3})\b")
_DOUBLE = re.compile(r"\bDBE error count: ?(?P<count>[0-9]{1,9})\b")
_NOTIFIED = 4  # lines of a notification
_GPU = "gpu"


def read_text(part: Part, rows: list[tuple[int, str]], found: FactCollector) -> Iterator[Record]:
    """An event per violation. Xids and double-bit errors give the facts that other sources give."""
    for place, (number, line) in enumerate(rows):
        if not (sentence := _SENTENCE.search(line)):
            continue
        values = list(takewhile(lambda row: not _SENTENCE.search(row[1]), rows[place + 1 : place + _NOTIFIED]))
        text = " ".join((line.strip(), *(value.strip() for _, value in values)))[:300]
        what = sentence["what"].lower()
        if "xid" in what and (code := _value(_XID, values)):
            where = part.cite(code[0], code[1].string)
            key = f"xid {_GPU} {code[1]['code']}"
            found.add(Event, key, where, kind="xid", code=int(code[1]["code"]), subject=_GPU, text=text)
        elif "double" in what and (count := _value(_DOUBLE, values)):
            found.add(Gpu, _GPU, part.cite(count[0], count[1].string), ecc_uncorrected=int(count[1]["count"]))
        elif not find_messages(line, catalog("dcgm")):
            dcgm_words.failed(found, "DCGM's policy", _GPU, text, part.cite(number, line))
    yield from ()


def _value(pattern: re.Pattern[str], rows: list[tuple[int, str]]) -> tuple[int, re.Match[str]] | None:
    """The first row with a value, as its number and the match."""
    return next(((number, match) for number, line in rows if (match := pattern.search(line))), None)
