"""Lines of further hosts in the output of a tool that asks many (pdsh, clush): known, and not read."""

from __future__ import annotations

from collections.abc import Iterator

from ....models.facts.reason import Reason
from ....models.facts.records import NotChecked, Record
from .part import Part
from .reader import Reader

_MOST_NAMED = 5


def read(part: Part) -> Iterator[Record]:
    """A NotChecked with the hosts, whose names are the part's lines."""
    names = part.text.split("\n")
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    why = f"lines of {', '.join(names[:_MOST_NAMED])}{more} from line {part.first} on: one host is judged at a time"
    yield NotChecked(
        what="dump", subject=part.file, reason=Reason.OTHER_CONTEXT, detail=why, how="give the lines of one host"
    )


OTHER_HOSTS = Reader("other_hosts", "(?!)", read)  # frames.py finds these lines: nothing begins such an output
