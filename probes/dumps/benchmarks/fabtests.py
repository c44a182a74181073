"""Tables of libfabric's fabtests: fi_rdm_tagged_bw, fi_msg_bw, fi_rma_bw, fi_rdm_pingpong and their kin.

https://github.com/ofiwg/libfabric, fabtests/common/shared.c (show_perf, size_str): MB are 10^6 bytes, and the units of
sizes are powers of 1024. The other end is another machine. The output names the NIC only in the command.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....models.facts.reason import Reason
from ....models.facts.records import Record
from ....models.facts.units import from_megabytes
from ..core.part import Part
from ..core.read_tool import read_tool
from ..core.tables import Case, Line, Tool

_HEADING = r"(?:name[ \t]+)?bytes[ \t]+(?:iters|#sent)[ \t]+(?:#ack[ \t]+)?total[ \t]+time[ \t]+MB/sec[ \t]+usec/xfer"
BEGIN = rf"^[ \t]*(?:(?:[$%#] )?(?:\S{{1,80}}/)?fi_[a-z]{{2,12}}_(?:[a-z]{{1,12}}_)?(?:bw|pingpong)[ ]|{_HEADING})"
_COMMAND = r".{0,400}?\bfi_(?P<test>[a-z_]{4,40})[ ].{0,400}"
_NIC = r"(?=.{0,400}?(?:[ ]-d[ ]?|--domain[ =])(?P<device>[A-Za-z][\w.]{1,40}?)(?:-rdm|-dgrm)?(?:[ ]|$))"
_TOOL = Tool(
    lines=(Line(rf"{_NIC}{_COMMAND}", forgets=("*",)), Line(_COMMAND, forgets=("*",))),
    rows=(
        r"(?P<size>[0-9]{1,9}(?:\.[0-9]{1,2})?)(?P<size_unit>[kmg]?)\s+[0-9.]{1,9}[kmg]?\s+"
        r"(?:=?[0-9.]{1,9}[kmg]?\s+)?[0-9.]{1,9}[kmgt]?\s+[0-9.]{1,9}s\s+(?P<rate>[0-9]{1,7}\.[0-9]{2})"
        r"\s+[0-9.]{1,12}\s+[0-9.]{1,9}",
    ),
    cases=(
        Case(
            when={"device": ""},
            what="Observation",
            refused="no line before the table of fabtests names the NIC",
            reason=Reason.UNREADABLE,
            how="name the NIC in the command (-d), and keep the command",
        ),
        Case(("{device}", "{device}/1"), {"test": ".*rma.*"}, "write"),
        Case(("{device}", "{device}/1"), op="send"),
    ),
    units={"": from_megabytes(1)},
)


def read(part: Part) -> Iterator[Record]:
    """The rate of each message size, if the command names the NIC."""
    yield from read_tool(part, _TOOL)
