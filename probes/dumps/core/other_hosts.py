"""Lines of further hosts in the output of a tool that queries many hosts (pdsh, clush). They are not read."""

from __future__ import annotations

from collections.abc import Iterator

from ....models.facts.reason import Reason
from ....models.facts.records import NotChecked, Record
from .part import Part
from .reader import Reader

_MOST_NAMED = 5


def read(part: Part) -> Iterator[Record]:
    """A NotChecked with the hosts. Each line of the part is a host name."""
    names = part.text.split("\n")
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    hosts = f"{', '.join(names[:_MOST_NAMED])}{more}"
    why = f"lines of {hosts} from line {part.place(0)} on: linkgauge evaluates one host at a time"
    yield NotChecked(
        what="dump", subject=part.file, reason=Reason.INCOMPLETE, detail=why, how="pass the lines of one host only"
    )


OTHER_HOSTS = Reader("other_hosts", "(?!)", read)  # frames.py makes these parts; the pattern matches no line
