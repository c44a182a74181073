"""Checks of a dump reader that must hold for any text."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.records import Evidence, Fact, NotChecked, Observation, Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.core.clean import clean
from linkgauge.probes.dumps.core.other_hosts import OTHER_HOSTS
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.core.reader import Reader
from linkgauge.probes.dumps.core.split import split
from linkgauge.probes.dumps.lines.markup import without_markup
from linkgauge.probes.dumps.registry import READERS

AT = 1795230000.0
_FILE = "fuzz.txt"
_LONGEST = 1000  # characters of a citation


class TooSlow(BaseException):
    """Not an Exception, because the fuzzed code may catch those."""


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raises TooSlow after this much processor time. Other load on the machine does not count."""
    signal.signal(signal.SIGPROF, _ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _ring(*_: object) -> None:
    raise TooSlow("too slow")


def check(reader: Reader, text: str, through: bool, evaluated: bool) -> float:
    """Read a text and check that its records are well formed and cite the text. Returns the seconds of reading.

    `through`: also split the text into parts, like a file. `evaluated`: also make a report. Raises AssertionError with
    the defect.
    """
    start = time.perf_counter()
    plain = clean(text)
    records = list(reader.read(Part(_FILE, 1, plain, AT)))
    took = time.perf_counter() - start
    well_formed(records, plain)
    if through:
        records = _whole(text, plain)
    if evaluated:
        evaluate(assemble(records, Site(), AT, origin="dumps"))
    return took


def _whole(text: str, plain: str) -> list[Record]:
    """The records of all readers.

    The parts must together be the text, except for frames around lines (lines/frames.py) and markup (lines/markup.py).
    """
    lines, records, words = plain.split("\n"), list[Record](), list[str]()
    bared = without_markup(plain)[0] != plain
    for reader, part in split(_FILE, text, AT, READERS):
        mine = part.text.rstrip("\n").split("\n")
        theirs = lines[part.first - 1 : part.first - 1 + len(mine)]
        unfolded = len(theirs) < len(mine) and "\\n" in "".join(theirs)  # a string of JSON with several lines
        assert reader is OTHER_HOSTS or unfolded or len(theirs) == len(mine), "a part has more lines than the text"
        # In interleaved logs, each part has empty lines in place of the lines of others.
        bared |= unfolded or reader is OTHER_HOSTS
        bared |= any(one not in ("", other) for one, other in zip(mine, theirs, strict=False))
        words += part.text.split()
        records += reader.read(part) if reader else ()
    assert bared or sorted(words) == sorted(plain.split()), "split lost a line, or gave it twice"
    well_formed(records, plain)
    return records


def well_formed(records: Iterable[Record], plain: str) -> None:
    """Check that each record survives encoding and cites existing lines."""
    last = plain.count("\n") + 1
    for one in records:
        assert isinstance(one, Fact | Observation | NotChecked), f"{one!r} is nothing that a reader says"
        assert decode(encode(one)) == one, f"{one!r} is not what it was after it was passed on"
        if isinstance(one, NotChecked):
            assert all((one.what, one.subject, one.why)), f"{one!r} does not say what, of what, or why"
        for cite in _cites(one):
            file, _, number = cite.source.rpartition(":")
            assert file == _FILE, f"{one!r} cites another file"
            assert number.isdecimal(), f"{one!r} cites no line"
            assert 1 <= int(number) <= last, f"{one!r} cites a line that is not there"
            assert len(cite.text) <= _LONGEST, f"{one!r} cites more than a line"
            assert "\n" not in cite.text, f"{one!r} cites several lines"


def _cites(one: Record) -> Iterable[Evidence]:
    if isinstance(one, Fact):
        assert one.key, f"{one!r} has no key"
        assert one.cites.keys() <= set(type(one).__struct_fields__), f"{one!r} cites what it has not"
        return one.cites.values()
    return (one.evidence,) if isinstance(one, Observation) else ()
