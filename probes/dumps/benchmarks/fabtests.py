"""Tables of libfabric's fabtests: fi_rdm_tagged_bw, fi_msg_bw, fi_rma_bw, fi_rdm_pingpong and their kin.

https://github.com/ofiwg/libfabric, fabtests/common/shared.c (show_perf, size_str): MB are 10^6 bytes, and the units of
sizes are powers of 1024. The other end is another machine. The output names the NIC only in the command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....models.facts.reason import Reason
from ....models.facts.records import Flow, NotChecked, Record
from ....models.facts.units import GIB, KIB, MIB
from ..core.part import Part

_HEADING = r"(?:name[ \t]+)?bytes[ \t]+(?:iters|#sent)[ \t]+(?:#ack[ \t]+)?total[ \t]+time[ \t]+MB/sec[ \t]+usec/xfer"
BEGIN = rf"^[ \t]*(?:(?:[$%#] )?(?:\S{{1,80}}/)?fi_[a-z]{{2,12}}_(?:[a-z]{{1,12}}_)?(?:bw|pingpong)[ ]|{_HEADING})"
_COMMAND = re.compile(r"\bfi_(?P<test>[a-z_]{4,40})[ ].{0,400}")
_DOMAIN = re.compile(r"(?:[ ]-d[ ]?|--domain[ =])(?P<device>[A-Za-z][\w.]{1,40}?)(?:-rdm|-dgrm)?(?:[ ]|$)")
_ROW = re.compile(
    r"[ \t]*(?P<size>[0-9]{1,9}(?:\.[0-9]{1,2})?)(?P<unit>[kmg]?)[ \t]+[0-9.]{1,9}[kmg]?[ \t]+"
    r"(?:=?[0-9.]{1,9}[kmg]?[ \t]+)?[0-9.]{1,9}[kmgt]?[ \t]+[0-9.]{1,9}s[ \t]+(?P<rate>[0-9]{1,7}\.[0-9]{2})"
    r"[ \t]+[0-9.]{1,12}[ \t]+[0-9.]{1,9}[ \t]*"
)
_UNITS = {"": 1, "k": KIB, "m": MIB, "g": GIB}
_MB = 1e6


def read(part: Part) -> Iterator[Record]:
    """The rate of each message size, if the command names the NIC."""
    device, op, reported = "", "send", False
    for number, line in part.lines():
        if command := _COMMAND.search(line):
            named = _DOMAIN.search(line)
            device, reported = named["device"] if named else "", False
            op = "write" if "rma" in command["test"] else "send"
        elif row := _ROW.fullmatch(line):
            if device:
                flow = Flow(op, (device, f"{device}/1"), int(float(row["size"]) * _UNITS[row["unit"]]))
                yield part.rate(flow, float(row["rate"]) * _MB, part.cite(number, line))
            elif not reported:
                reported = True
                yield _nameless(part, number)


def _nameless(part: Part, number: int) -> NotChecked:
    return NotChecked(
        what="Observation",
        subject="node",
        reason=Reason.UNREADABLE,
        path=part.where(number),
        detail="no line before the table of fabtests names the NIC",
        how="name the NIC in the command (-d), and keep the command",
    )
