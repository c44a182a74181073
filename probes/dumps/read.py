"""Read the output of other tools: find the reader of each part of a text, and name the lines that no reader knows."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from msgspec.structs import replace

from ...models.catalog.log_messages import KERNEL, PROGRAMS, is_said, message
from ...models.facts.machine import Event
from ...models.facts.reason import Reason
from ...models.facts.records import Fact, NotChecked, Observation, Record
from ..host.host import Host, Unreadable
from ..kernel_log.messages import catalog, find_messages
from ..kernel_log.patterns import event_of
from ..parsing.parsers import shown
from .benchmarks.nccl_commands import read_commands
from .core.bare_rows import bare_rows
from .core.clean import clean
from .core.part import Part, sources
from .core.reader import Reader
from .core.split import is_filler, split
from .gpu_tools.check_lines import read_check_lines
from .gpu_tools.driver_options import read_driver_options
from .gpu_tools.health_events import read_health
from .health.redfish_drives import read_drives
from .host.iommu import read_iommu
from .host.log_events import read_events
from .lines.bracketed import without_brackets
from .lines.code_spans import with_spans_as_lines
from .lines.cut_lines import cut_lines, without_cut_numbers
from .lines.damaged_words import damaged_words
from .lines.expected_output import without_expected
from .lines.repeats import once
from .lines.table_rows import open_rows
from .lines.wrapped import LONGEST, joined
from .notes.instead import NAMELESS, with_named
from .pci.boot_windows import read_boot_windows
from .pci.link_halves import with_halves
from .pci.link_heads import with_heads
from .registry import READERS
from .unknown_lines import HOW, unknown_text, unread_faults

# the part of an XML file before its root element
_NOTHING = re.compile(r"(?:\s|<\?xml[^>]*>|<!--(?s:.*?)-->|<!DOCTYPE[^>]*>)*")
_HEAD = 1 << 16  # characters
_OF_RATES = ("bandwidth-low", "nic-rate-low", "node-slow")  # codes of sentences that the reader of rates understands
_TOOLS = frozenset(one.name for one in READERS) - {"device_lists", "device_notes", "xid_notes", "rates"}
_OWN_EVENTS = ("kernel_text", "other_hosts")  # readers of parts in which no further log lines are searched
_OWN_IOMMU = ("host_text", "other_hosts")
_EXPECTED = "an output that the text calls expected, or an example, was not read"
_OWN_ONLY = "leave such outputs out, so that what is left is of this machine"
_WIDER = "copy the output from a wider window, or from a file"


def recognise(text: str) -> bool:
    """Whether the text contains the output of a known tool."""
    return any(_is_known(some) for some in dict.fromkeys((text[:_HEAD], text)))  # the head is enough for most files


def _is_known(text: str) -> bool:
    parts = list(split("", text, 0.0, READERS))
    return any(reader for reader, _ in parts) or any(True for _, part in parts for _ in read_events(part))


def read_dump(name: str, host: Host) -> Iterator[Record]:
    """The records in a file, and a NotChecked that names the lines in no known format."""
    printable = os.fsencode(name).decode("utf-8", "replace")  # a file name can contain any bytes
    try:
        text = host.read(name)
    except Unreadable as refusal:
        if refusal.code != errno.EISDIR:  # the files of a folder behind a link are read under their own names
            yield _unread(printable, refusal.why, refusal.how)
        return
    if text is None:
        why = "a symbolic link whose target is missing or outside the folder"
        yield _unread(printable, why, "copy the file into the folder")
        return
    yield from read_text(printable, text, host.now())


def _unread(name: str, why: str, how: str | None) -> NotChecked:
    """The gap of a whole file or folder. It prevents the verdict ok, unlike lines in no known format."""
    return NotChecked(what="dump", subject=name, reason=Reason.INCOMPLETE, detail=why, how=how)


def read_text(name: str, text: str, at: float) -> Iterator[Record]:
    """The records in a text with this name. `at` is the time at which it was read, in seconds since 1970."""
    if not text:  # archives can have thousands of empty files
        yield unknown_text(name, [], 0)
        return
    if len(text) > LONGEST:
        yield from _records(name, text, at)
        return
    own = without_expected(text)
    copy = once(own)
    plain = without_cut_numbers(own if copy != own and _is_log(copy) else copy)
    best = _best(name, plain, at)
    best = [*best, *_quoted(name, plain, at, best)]
    yield from with_named(with_heads(with_halves(best, plain), name, plain))
    if own != text:
        yield NotChecked(what="dump", subject=name, reason=Reason.INCOMPLETE, detail=_EXPECTED, how=_OWN_ONLY)


def _is_log(text: str) -> bool:
    """Whether lines of the text are events: those that come again happened again."""
    return any(map(event_of, text.split("\n"))) or bool(find_messages(text, catalog(*KERNEL, *PROGRAMS)))


def _best(name: str, text: str, at: float) -> Sequence[Record]:
    """The records in a short text: those of the most values, if a program may have wrapped its lines, or if a person
    may have written remarks behind values.
    """
    best = list(_records(name, text, at))
    most, plain = _read(best), clean(text)
    for one in joined(plain):
        records = list(_records(name, one.text, at, one.origin))
        values = _read(records)
        if values > most or (one.trust and values == most) or one.trust > 1:
            best, most = records, values
            if one.trust:
                break
    return _without_remarks(name, plain, at, best)


def _without_remarks(name: str, text: str, at: float, best: Sequence[Record]) -> Sequence[Record]:
    """The records without remarks behind values, if they have as many values, and what only a remark says."""
    messages = (one for one in best if isinstance(one, Event) and one.kind == "message" and not _said(one))
    whole = {place - 1 for one in messages for place in _places(one)}
    if not (bare := without_brackets(text, whole)):
        return best
    records = list(_records(name, bare.text, at, range(bare.text.count("\n") + 1)))
    if _read(_shown(records)) < _read(_shown(best)):
        return best
    read = set(chain.from_iterable(map(sources, records)))
    said = [one for one in best if isinstance(one, Event) and _said(one) and read.isdisjoint(sources(one))]
    return [*records, *said, *_doubted(name, bare.doubt)]


def _doubted(name: str, doubt: tuple[int, str] | None) -> Iterator[NotChecked]:
    """A gap for a remark that says more of a value than the readers understand."""
    if doubt:
        why = f"line {doubt[0] + 1}: what a remark says of the value was not compared: {shown(doubt[1], 80)}"
        yield NotChecked(what="dump", subject=name, reason=Reason.INCOMPLETE, detail=why, how=HOW)


def _quoted(name: str, text: str, at: float, known: Iterable[Record]) -> Iterator[Record]:
    """The facts of values that sentences quote, in lines from which nothing was read. They are a part of an output."""
    if not (quotes := with_spans_as_lines(text)):
        return
    cited = set(chain.from_iterable(map(sources, known)))
    first = None
    for one in _records(name, quotes.text, at, quotes.origin):
        places = _places(one)
        if isinstance(one, Fact) and not isinstance(one, Event) and not {f"{name}:{place}" for place in places} & cited:
            gpu = quotes.gpus.get(min(places) - 1) if places and one.key == NAMELESS else None
            first = first or min(places, default=None)
            yield replace(one, key=gpu) if gpu else one
    if first:
        why = f"line {first}: values in a sentence are a part of an output"
        yield NotChecked(what="dump", subject=name, reason=Reason.INCOMPLETE, detail=why, how=HOW)


def _places(one: Record) -> set[int]:
    """The numbers of the lines (from 1) that a record cites."""
    return {int(source.rpartition(":")[2].partition(".")[0]) for source in sources(one) if source}


def _shown(records: Iterable[Record]) -> list[Record]:
    """The records without what sentences say."""
    return [one for one in records if not (isinstance(one, Event) and _said(one))]


def _said(event: Event) -> bool:
    """Whether it is a sentence of a person."""
    return event.kind == "message" and event.name is not None and is_said(event.name)


def _read(records: Sequence[Record]) -> int:
    """The number of values in the records."""
    return sum(_values(one) for one in records if isinstance(one, Fact | Observation))


def _values(one: Fact | Observation) -> int:
    if isinstance(one, Observation):
        return 1
    values = (getattr(one, name) for name in one.__struct_fields__)
    return sum(len(value) if isinstance(value, tuple) else value is not None for value in values)


def _records(name: str, text: str, at: float, origin: Sequence[int] | None = None) -> Iterator[Record]:
    """The records in a text. `origin` has the number (from 0) of the line from which each line comes."""
    unknown: list[Part] = []
    left: list[tuple[str, str]] = []
    gaps: dict[str, Record] = {}
    checks = tuple(_of_whole_records(Part(name, 1, clean(text), at))) if origin is None else ()
    yield from checks
    yield from read_commands(Part(name, 1, "", at).unframed(clean(text), origin))
    known = int(bool(checks))
    for reader, part in split(name, text, at, READERS, origin):
        own, of_tool = (reader is not None and reader.name in names for names in (_OWN_EVENTS, _TOOLS))
        records = tuple(_of_reader(reader, part)) if reader else ()
        rates = records if reader and reader.name == "rates" else ()
        events: tuple[Record, ...] = () if own else tuple(_without_said(read_events(part, of_tool), checks, rates))
        events += tuple(read_iommu(part)) if reader is None or reader.name not in _OWN_IOMMU else ()
        events += tuple(read_boot_windows(part)) if reader is None or reader.name != "other_hosts" else ()
        events += tuple(read_driver_options(part))
        yield from (*events, *records)
        if reader and not own:
            left += unread_faults(part, (*events, *records))
        if reader or events:
            known += 1
        elif not _NOTHING.fullmatch(part.text) and not is_filler(part):
            found, only = bare_rows(part)
            gaps = {**{one.what: one for one in found}, **gaps}
            unknown += [] if only else [part]
    yield from gaps.values()
    if known:
        whole = Part(name, 1, clean(text), at)
        yield from _damage(whole, origin)
        yield from _pieces(whole, origin)
    if unknown or not (known or gaps):
        yield unknown_text(name, unknown, known)
    for place, line in left[:1]:
        why = f"line {place} behind the output of a tool may name a fault: {shown(line, 80)}"
        yield NotChecked(what="dump", subject=name, reason=Reason.INCOMPLETE, detail=why, how=HOW)


def _without_said(events: Iterable[Event], checks: Iterable[Record], rates: Iterable[Record]) -> Iterator[Event]:
    """The events without sentences that another reader understands better: those in the lines of failed checks, and
    those about rates in the lines of rates.
    """
    of_checks, of_rates = (set(chain.from_iterable(map(sources, records))) for records in (checks, rates))
    for event in events:
        if _said(event):
            lines = of_checks | of_rates if message(event.name or "").code in _OF_RATES else of_checks
            if any(cite.source in lines for cite in event.cites.values()):
                continue
        yield event


def _of_reader(reader: Reader, part: Part) -> Iterator[Record]:
    """The records of a reader. If it reads no value and no gap in lines that look like its own, those of lists."""
    records = list(reader.read(part))
    yield from records
    if all(isinstance(one, Fact) and not one.cites for one in records):
        for other in READERS:
            if other.find and other is not reader and any(True for _ in other.find(part)):
                yield from other.read(part)


def _damage(part: Part, origin: Sequence[int] | None) -> Iterator[NotChecked]:
    """A gap for the words that are one letter away from a state."""
    found = [
        f"line {(origin[number] if origin else number) + 1}: {word!r}" for number, word in damaged_words(part.text)
    ]
    if found:
        why = f"a damaged word may be the name of a state: {', '.join(found)}"
        yield NotChecked(
            what="dump", subject=part.file, reason=Reason.INCOMPLETE, detail=why, how="take the output again"
        )


def _pieces(part: Part, origin: Sequence[int] | None) -> Iterator[NotChecked]:
    """A gap for the first row of a table that has no end, and for the first other line that is cut."""
    lines = part.text.split("\n")
    for found, what in ((open_rows(lines), "a row of a table"), (cut_lines(lines), "a line")):
        for number in islice(found, 1):
            where = (origin[number] if origin else number) + 1
            why = f"line {where}: {what} is cut: the rest is on the next line or missing"
            yield NotChecked(what="dump", subject=part.file, reason=Reason.INCOMPLETE, detail=why, how=_WIDER)


def _of_whole_records(part: Part) -> Iterator[Record]:
    """What readers of JSON objects and of checks find in a whole text, whatever is around them."""
    yield from read_health(part)
    yield from read_check_lines(part)
    yield from read_drives(part)
