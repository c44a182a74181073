"""A part of a file: the output of one tool."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from ....models.facts.machine import Event
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, Fact, Flow, NotChecked, Observation, Record
from ...kernel_log.messages import KIND


class Part(Struct, frozen=True):
    """Lines of a file, without color codes and carriage returns.

    `first` is the line number of the first one in the file.
    """

    file: str
    first: int
    text: str
    at: float = 0.0  # time of reading, in seconds since 1970: most dumps contain no time
    # Lines of the file as they were before markup.py changed them, by line number
    before: Mapping[int, str] = field(default_factory=dict)
    # If lines were joined or unfolded: the place in the file of each line that `first` counts
    places: Sequence[str] = ()

    def place(self, number: int) -> str:
        """The line number in the file of line `number` of the part (from 0): "7"; "7.2" is the second line within a
        string on line 7.
        """
        counted = self.first + number
        return self.places[min(counted, len(self.places)) - 1] if self.places else str(counted)

    def where(self, number: int) -> str:
        """File and line number of line `number` of the part (from 0): "topo.txt:7"."""
        return f"{self.file}:{self.place(number)}"

    def unframed(self, text: str, origin: Sequence[int] | None) -> Part:
        """The part without the frame around its lines. `origin` has the line (from 0) from which each line comes."""
        if origin is None:
            return replace(self, text=text)
        several, index, places = Counter(origin), Counter[int](), list[str]()
        for line in origin:
            index[line] += 1
            places.append(f"{self.place(line)}.{index[line]}" if several[line] > 1 else self.place(line))
        shown = ((number, self.before.get(self.first + line)) for number, line in enumerate(origin, 1))
        before = {number: text for number, text in shown if text is not None} if self.before else {}
        return Part(self.file, 1, text, self.at, before, tuple(places))

    def cite(self, number: int, line: str) -> Evidence:
        """A line of the part as evidence, as it is in the file."""
        shown = self.before.get(self.first + number) if self.before else None
        is_line = shown and "".join(filter(str.isalnum, line)) in "".join(filter(str.isalnum, shown))
        return Evidence(self.where(number), (shown if shown and is_line else line).strip()[:300])

    def rate(self, flow: Flow, value: float, evidence: Evidence, quantity: str = "rate") -> Observation:
        """The rate of a flow under load, in bytes per second in one direction; its latency in seconds."""
        return Observation(
            about=flow,
            quantity=quantity,
            unit="seconds" if quantity == "latency" else "bytes_per_second",
            value=value,
            at=self.at,
            busy=True,
            evidence=evidence,
        )

    def event(self, number: int, line: str, name: str, subject: str, text: str) -> Event:
        """The event of the row `name` of the catalog (models/catalog/messages), which a reader finds in a line."""
        cites, place = {"text": self.cite(number, line)}, self.first + number
        key = f"{name} {subject}"
        return Event(key=key, kind=KIND, subject=subject, name=name, text=text, count=1, cites=cites, place=place)

    def gap(
        self,
        line: int | str,
        why: str,
        what: str = "Observation",
        reason: Reason = Reason.INCOMPLETE,
        how: str | None = "keep the whole output of the tool",
        subject: str = "node",
    ) -> NotChecked:
        """A note that values at a line (from 0) or place could not be read or used."""
        path = line if isinstance(line, str) else self.where(line)
        return NotChecked(what=what, subject=subject, reason=reason, path=path, detail=why, how=how)

    def cut(self, number: int, what: str) -> NotChecked:
        """A note that the output ends too early at line `number`. Used only if the truncation is certain."""
        why = f"line {self.place(number)}: the output ends here, {what}; everything before it was read"
        return NotChecked(
            what="dump", subject=self.file, reason=Reason.INCOMPLETE, detail=why, how="copy the whole output"
        )

    def lines(self) -> Iterator[tuple[int, str]]:
        """The lines with their numbers (from 0)."""
        yield from enumerate(self.text.split("\n"))

    def lines_with(self, needles: Iterable[str]) -> Iterator[tuple[int, str]]:
        """The lines that contain one of the needles, with their numbers (from 0).

        Faster than a loop over all lines of a log.
        """
        starts: set[int] = set()
        for needle in needles:
            place = self.text.find(needle)
            while place >= 0:
                starts.add(self.text.rfind("\n", 0, place) + 1)
                end = self.text.find("\n", place)
                place = self.text.find(needle, end) if end >= 0 else -1
        number = before = 0
        for start in sorted(starts):
            number += self.text.count("\n", before, start)
            before, end = start, self.text.find("\n", start)
            yield number, self.text[start : end if end >= 0 else len(self.text)]

    def matches(self, pattern: re.Pattern[str]) -> Iterator[tuple[int, re.Match[str]]]:
        """The matches of a pattern, each with the number (from 0) of its first line."""
        number = before = 0
        for found in pattern.finditer(self.text):
            number += self.text.count("\n", before, found.start())
            before = found.start()
            yield number, found

    @property
    def last(self) -> str:
        """The line number of the last line in the file."""
        return self.place(self.text.rstrip("\n").count("\n"))


def transfer(op: str, sender: str, receiver: str, size: int | None = None, both: bool = False) -> Flow:
    """The flow of a write or a send. A read goes the other way. `both`: the other direction runs at the same time."""
    ends = (receiver, sender) if op == "read" else (sender, receiver)
    return Flow(op, ends, size, beside=(ends[::-1],) if both else ())


def sources(one: Record) -> Iterator[str | None]:
    """The lines that a record cites: "dmesg.txt:7"."""
    if isinstance(one, Observation):
        yield one.evidence.source
    elif isinstance(one, NotChecked):
        yield one.path
    elif isinstance(one, Fact):
        yield from (cite.source for cite in one.cites.values())
