"""Tools whose output is about an InfiniBand fabric. The format is known, but the reader gives no facts.

infiniband-diags: ibnetdiscover(8), iblinkinfo(8), ibportstate(8), smpquery(8).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....models.facts.reason import Reason
from ....models.facts.records import NotChecked, Record
from ..core.part import Part

_TOOLS = {
    "ibnetdiscover": r"(?:CA|SW|RT) {1,8}[0-9]{1,5} {1,4}[0-9]{1,3} 0x[0-9a-f]{16} |vendid=0x[0-9a-f]{1,8}[ \t]*$",
    "iblinkinfo": r"(?:CA|Switch): [^\n]{1,120}:[ \t]*\n[ \t]+(?:0x[0-9a-f]{16} [ \t]*)?[0-9]{1,5} {1,6}[0-9]{1,3}\[",
    "ibportstate": r"(?:(?:CA/RT |Switch |Peer )?PortInfo:[ \t]*$|# Port info: Lid [0-9]|(?:Phys)?LinkState:\.{3})",
}
_FABRIC = (
    "a fabric has many nodes, but linkgauge evaluates one node",
    "add the output of ibstat or ibv_devinfo of the node",
)
BEGIN = rf"^[ \t]*(?:{'|'.join(_TOOLS.values())})"
_BEGUN = {tool: re.compile(rf"^[ \t]*(?:{form})", re.MULTILINE) for tool, form in _TOOLS.items()}


def read(part: Part) -> Iterator[Record]:
    """A NotChecked with the reason for each tool in the text."""
    for tool, begun in _BEGUN.items():
        if found := begun.search(part.text):
            where = part.where(part.text.count("\n", 0, found.start()))
            why, how = _FABRIC
            yield NotChecked(
                what="Port.counters",
                subject="node",
                reason=Reason.OTHER,
                path=where,
                detail=f"{tool} is not read: {why}",
                how=how,
            )
