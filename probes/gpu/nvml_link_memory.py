"""What a process remembers of the NVLinks of a GPU between two reads, so that one read takes few field values.

Each field value is a call to the firmware of the GPU. All counters of the 18 links of a B200 would be 456 values. So
speeds and versions are read when a link changes its state, and each hour. On NVLink 5 the sums of all links are read;
the counters of single links follow when a sum has moved, one kind of counter in each read. The histogram of forward
error correction is read of one link in each read, once an hour.

nvml.h promises sums (scope 0xFFFFFFFF) only for traffic. DCGM names all counters of NVLink 5 as summed
(NvmlFieldRequiresNvLinkAggregate in DcgmCMUtils.cpp). So the sum of a counter that is never zero is compared with two
links. Without a true sum, one kind of counter of all links is read in turn.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct, field

from ...models.facts.records import Observation
from ..parsing.nvml_enums import bit_error_rate
from .nvml_library import Field, NvmlError
from .nvml_reader import NvmlReader, value_of
from .nvml_traffic import ALL_LINKS

_REFRESH = 3600.0  # seconds
_MOST_LINKS = 18  # in one request
_EFFECTIVE = 219
_SUMS: Mapping[int, str] = {
    215: "nvlink_recovery",
    214: "nvlink_recovery_failed",
    221: "nvlink_symbol_errors",
    _EFFECTIVE: "nvlink_effective_errors",
}
_RATIOS: Mapping[int, str] = {220: "nvlink_effective_ber", 293: "nvlink_raw_ber"}
# Numbers of blocks in which FEC corrected 0, 1 ... 15 symbols. Links fail near the upper end.
_CORRECTED = range(235, 251)


class LinkMemory(Struct):
    """The last answers about the links of one GPU."""

    states: Mapping[int, bool]
    is_first: bool  # nothing is remembered: read all counters that are not zero at once
    details: Mapping[Field, float | NvmlError] = field(default_factory=dict)
    read_at: float | None = None  # monotonic
    sums: dict[int, float] = field(default_factory=dict)
    of_links: dict[tuple[int, str], Observation] = field(default_factory=dict)
    wanted: deque[tuple[Field, ...]] = field(default_factory=deque)  # to read next, one in each read
    histograms: deque[int] = field(default_factory=deque)  # links whose histogram is to be read
    has_sums: bool | None = None  # None: not known
    counts: dict[Field, float] = field(default_factory=dict)  # of single links, by a driver without sums
    totals: dict[int, Observation] = field(default_factory=dict)  # their sums


memories: dict[str, LinkMemory] = {}  # by UUID


def memory_of(reader: NvmlReader, states: Mapping[int, bool]) -> LinkMemory:
    """What this process remembers of the GPU. A link that changed its state begins anew."""
    key = str(reader.fields.get("uuid") or reader.fields.get("address") or reader.key)
    known = memories.get(key)
    if known is None or known.states != states:
        known = memories[key] = LinkMemory(dict(states), is_first=known is None)
    return known


def refreshed(memory: LinkMemory, read: Callable[[], Mapping[Field, float | NvmlError]]) -> bool:
    """Read speeds and versions if they are an hour old. Whether they were read."""
    now = time.monotonic()
    if memory.read_at is not None and now - memory.read_at < _REFRESH:
        return False
    memory.details, memory.read_at = read(), now
    memory.histograms = deque(link for link, active in memory.states.items() if active)
    for number, value in memory.sums.items():
        _want(memory, number if value else None)
    return True


def observe_counters(reader: NvmlReader, memory: LinkMemory, fresh: bool) -> None:
    """Observe the counters of NVLink 5.

    `fresh`: speeds were read in this read, so further values wait for the next one.
    """
    if memory.has_sums is None:
        memory.has_sums = _has_sums(reader, memory)
    if memory.has_sums:
        _observe_sums(reader, memory)
    elif not memory.wanted:
        for number in _SUMS:
            _want(memory, number)
    for fields in _next(memory, fresh):
        _read(reader, memory, fields)
    reader.observed += (*memory.totals.values(), *memory.of_links.values())
    memory.is_first = False


def _has_sums(reader: NvmlReader, memory: LinkMemory) -> bool:
    """Whether the driver sums a counter that no active link has at zero: blocks without a corrected symbol."""
    pair = [link for link, active in memory.states.items() if active][:2]
    number = _CORRECTED[0]
    answers = reader.numbers((number, scope) for scope in (ALL_LINKS, *pair))
    values = [0.0 if isinstance(one, NvmlError) else one for one in answers.values()]
    return bool(pair) and min(values) > 0 and values[0] >= sum(values[1:])


def _observe_sums(reader: NvmlReader, memory: LinkMemory) -> None:
    answers = reader.numbers((number, ALL_LINKS) for number in _SUMS)
    for number, quantity in _SUMS.items():
        value = reader.attempt("nvlink_errors", partial(value_of, answers[number, ALL_LINKS]))
        if value is not None:
            reader.observe(reader.key, quantity, "count", value, f"NVML field {number}, all links")
            if value != memory.sums.get(number, 0):
                _want(memory, number)
            memory.sums[number] = value


def _want(memory: LinkMemory, number: int | None) -> None:
    """Request a counter of each link, and with errors after correction the bit error rates."""
    links = list(memory.states)
    for wanted in () if number is None else (number, *(_RATIOS if number == _EFFECTIVE else ())):
        for start in range(0, len(links), _MOST_LINKS):
            fields = tuple((wanted, link) for link in links[start : start + _MOST_LINKS])
            if fields not in memory.wanted:
                memory.wanted.append(fields)


def _next(memory: LinkMemory, fresh: bool) -> Iterator[Sequence[Field]]:
    """What to read of single links now."""
    if memory.is_first:
        while memory.wanted:
            yield memory.wanted.popleft()
    elif fresh:
        return
    elif memory.wanted:
        yield memory.wanted.popleft()
    elif memory.histograms:
        link = memory.histograms.popleft()
        yield [(number, link) for number in _CORRECTED]


def _read(reader: NvmlReader, memory: LinkMemory, fields: Sequence[Field]) -> None:
    answers = reader.numbers(fields)
    corrected: dict[int, int] = {}
    for (number, link), answer in answers.items():
        if isinstance(answer, NvmlError) and not memory.states[link]:
            continue  # counters of an inactive link are optional
        if number in _CORRECTED:
            corrected[link] = max(corrected.get(link, -1), number if _positive(answer) else -1)
            continue
        value = reader.attempt("nvlink_errors", partial(value_of, answer))
        if value is not None and number in _SUMS and not memory.has_sums:
            memory.counts[number, link] = value
        name = _SUMS.get(number) or _RATIOS[number]
        memory.of_links.pop((link, name), None)
        if value is not None and (value or number in _RATIOS) and (number in _SUMS or memory.states[link]):
            unit, amount = ("count", value) if number in _SUMS else ("ratio", bit_error_rate(int(value)))
            memory.of_links[link, name] = _of_link(reader, link, name, unit, amount, number)
    for number in {number for number, _ in fields if not memory.has_sums and number in _SUMS}:
        if known := [value for (kind, _), value in memory.counts.items() if kind == number]:
            source = f"NVML field {number} of {len(known)} links"
            memory.totals[number] = reader.observation(reader.key, _SUMS[number], "count", sum(known), source)
    for link, number in corrected.items():
        if number >= 0:
            most = number - _CORRECTED[0]
            memory.of_links[link, "fec"] = _of_link(reader, link, "nvlink_fec_mended", "symbols", most, number)


def _positive(answer: float | NvmlError) -> bool:
    return not isinstance(answer, NvmlError) and answer > 0


def _of_link(reader: NvmlReader, link: int, name: str, unit: str, value: float, number: int) -> Observation:
    return reader.observation(f"{reader.key}/nvlink{link}", name, unit, value, f"NVML field {number}")
