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
_XID = re.compile(r"\b(?:XID|Error|Xid)[^0-9\n]{0,20}(?P<code>[0-9]{1,3})\b")
_DOUBLE = re.compile(r"\bDBE error count: ?(?P<count>[0-9]{1,9})\b")
_NOTIFIED = 4  # lines of a notification
_GPU = "gpu"


def read_text(part: Part, rows: list[tuple[int, str]], found: FactCollector) -> Iterator[Record]:
    """An event per violation. Xids and double-bit errors give the facts that other sources give."""
    for place, (number, line) in enumerate(rows):
        if not (sentence := _SENTENCE.search(line)):
            continue
        following = [text.strip() for _, text in rows[place + 1 : place + _NOTIFIED]]
        values = " ".join(takewhile(lambda text: not _SENTENCE.search(text), following))
        where = part.cite(number, line)
        what = sentence["what"].lower()
        if "xid" in what and (code := _XID.search(values)):
            text = f"{line.strip()} {values}"[:300]
            key = f"xid {_GPU} {code['code']}"
            found.add(Event, key, where, kind="xid", code=int(code["code"]), subject=_GPU, text=text)
        elif "double" in what and (count := _DOUBLE.search(values)):
            found.add(Gpu, _GPU, where, ecc_uncorrected=int(count["count"]))
        elif not find_messages(line, catalog("dcgm")):
            dcgm_words.failed(found, "DCGM's policy", _GPU, f"{line.strip()} {values}"[:300], where)
    yield from ()
