"""A stretch of a file that is the output of one tool."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, Flow, NotChecked, Observation


@dataclass(frozen=True, slots=True)
class Part:
    """Lines of a file, without colour codes and carriage returns; `first` is the number of the first of them."""

    file: str
    first: int
    text: str
    at: float = 0.0  # seconds since 1970 when it was read: most dumps carry no time

    def where(self, number: int) -> str:
        """The file and the line of the `number`th line of the part, which counts from 0: "topo.txt:7"."""
        return f"{self.file}:{self.first + number}"

    def cite(self, number: int, line: str) -> Evidence:
        """A line of the part as evidence."""
        return Evidence(self.where(number), line.strip()[:300])

    def rate(self, flow: Flow, value: float, evidence: Evidence, quantity: str = "rate") -> Observation:
        """What a tool that puts load on the flow measured of it; bytes per second in one direction."""
        return Observation(
            about=flow,
            quantity=quantity,
            unit="bytes_per_second",
            value=value,
            at=self.at,
            busy=True,
            evidence=evidence,
        )

    def cut(self, number: int, what: str) -> NotChecked:
        """A note that an output ends too soon, with its `number`th line: where that is sure, and nowhere else."""
        why = f"line {self.first + number}: the output ends here, {what}; what stands before that was read"
        return NotChecked(
            what="dump", subject=self.file, reason=Reason.UNREADABLE, detail=why, how="copy the whole output"
        )

    def lines(self) -> Iterator[tuple[int, str]]:
        """The lines with their numbers, counted from 0."""
        yield from enumerate(self.text.split("\n"))

    def lines_with(self, needles: Iterable[str]) -> Iterator[tuple[int, str]]:
        """The lines that hold one of them, numbered from 0: searches are faster than a look at each line of a log."""
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
        """The matches of a pattern, each with the number of the line that it begins in, counted from 0."""
        number = before = 0
        for found in pattern.finditer(self.text):
            number += self.text.count("\n", before, found.start())
            before = found.start()
            yield number, found

    @property
    def last(self) -> int:
        """The number of the last line in the file."""
        return self.first + self.text.rstrip("\n").count("\n")
