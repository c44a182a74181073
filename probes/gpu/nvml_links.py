"""NVLinks and NVLink-C2C of one GPU from NVML: which links are active, their speeds and error counters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from msgspec import Struct

from ...models.facts.gpu import GpuLink
from ..parsing.nvml_enums import nvlink_generation, nvlink_rate
from .nvml_library import (
    FUNCTION_NOT_FOUND,
    GONE,
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    Field,
    NvmlError,
)
from .nvml_link_memory import memory_of, observe_counters, refreshed
from .nvml_reader import FieldQuery, NvmlReader, value_of

# Fields of the GPU: number of NVLinks, their common speed in MB/s, number of C2C links.
_COUNT, _COMMON_SPEED, _C2C_COUNT = 91, 90, 170
OF_ALL_LINKS = (_COUNT, _COMMON_SPEED, _C2C_COUNT)
# Fields whose scope is the link number. NVLink: speed in MB/s, version. C2C: active or not, speed in MB/s.
_SPEED, _VERSION, _C2C_STATUS, _C2C_SPEED = 164, 166, 171, 172
_MOST_LINKS = 36  # NVML_NVLINK_MAX_LINKS
_BLACKWELL = 5  # generation of NVLink


class _Counter(Struct, frozen=True):
    """A link counter: the sum of some fields. A field number belongs to link 0 or 6, or the link is its scope."""

    quantity: str
    scoped: tuple[int, ...] = ()
    first: tuple[int, ...] = ()  # numbers for link 0; links 1 to 5 follow ...
    seventh: tuple[int, ...] = ()  # ... numbers for link 6; links 7 to 11 follow

    def fields(self, link: int) -> list[Field]:
        """Return the fields of one link."""
        if link < 6:
            own = [(number + link, 0) for number in self.first]
        else:
            own = [(number + link - 6, 0) for number in self.seventh] if link < 12 else []
        return own or [(number, link) for number in self.scoped]


# Until Ampere each link has its own field numbers. On Hopper the link is the scope, and one CRC counter replaces those
# of flow control and data (NVML change log, 520). Blackwell has InfiniBand-like counters and none of the older ones.
_AMPERE = (
    _Counter("nvlink_replay", first=(46,), seventh=(108,)),
    _Counter("nvlink_recovery", first=(53,), seventh=(114,)),
    _Counter("nvlink_crc", first=(32, 39), seventh=(96, 102)),
)
_HOPPER = (
    _Counter("nvlink_replay", (161,)),
    _Counter("nvlink_recovery", (162,)),
    _Counter("nvlink_crc", (163,)),
)


def links(reader: NvmlReader, answers: Mapping[Field, float | NvmlError]) -> None:
    """Read the links into `reader`; `answers` contains OF_ALL_LINKS. Raises NvmlError if the GPU is lost."""
    states = link_states(reader, _number(answers[_COUNT, 0]))
    if states is not None and not reader.missed("nvlinks"):
        reader.fields.update(nvlinks_present=len(states), nvlinks=sum(states.values()))
    states = states or {}
    c2c = range(min(_number(reader.known("c2c_links", answers[_C2C_COUNT, 0])), _MOST_LINKS))
    memory = memory_of(reader, states)
    fresh = refreshed(memory, lambda: reader.numbers(_details(states)))
    generation = _nvlinks(reader, states, memory.details, _number(answers[_COMMON_SPEED, 0]))
    _c2c_links(reader, c2c, reader.numbers((number, link) for link in c2c for number in (_C2C_STATUS, _C2C_SPEED)))
    if (generation or 0) < _BLACKWELL:
        _errors(reader, states, generation)
    else:
        observe_counters(reader, memory, fresh)


def _details(states: Mapping[int, bool]) -> list[Field]:
    """The speed of each active link, and the version of one: all links of a GPU have the same."""
    active = [link for link, up in states.items() if up]
    return [*((_SPEED, link) for link in active), *((_VERSION, link) for link in active[:1])]


def link_count(reader: NvmlReader) -> int:
    """Return the number of NVLinks; 0 if the driver does not report it. Raises NvmlError if the GPU is lost."""
    return _number(reader.numbers([(_COUNT, 0)])[_COUNT, 0])


def link_states(reader: NvmlReader, count: int) -> dict[int, bool] | None:
    """Return whether each NVLink is active, by link number; None if the driver lacks the call.

    Beyond the last link NVML returns NOT_SUPPORTED or INVALID_ARGUMENT (both were observed). It also does so between
    links, because some links are disabled in production: the loop ends after `count` links. Raises NvmlError if the GPU
    is lost.
    """
    states: dict[int, bool] = {}
    for link in range(_MOST_LINKS):
        try:
            states[link] = reader.library.call("DeviceGetNvLinkState", reader.handle, link) == 1
        except NvmlError as refusal:
            if refusal.code in GONE:
                raise
            if refusal.code == FUNCTION_NOT_FOUND:
                return None
            if refusal.code not in (NOT_SUPPORTED, INVALID_ARGUMENT):
                reader.miss("nvlinks", refusal.reason, f"link {link}: {refusal}", refusal.how)
            elif len(states) >= count:
                break
    return states


def _number(answer: float | NvmlError) -> int:
    return 0 if isinstance(answer, NvmlError) else int(answer)


def _nvlinks(
    reader: NvmlReader, states: Mapping[int, bool], details: Mapping[Field, float | NvmlError], common: int
) -> int | None:
    """Add a `GpuLink` for each NVLink and return the generation. Only active links have a version and a speed."""
    version: int | None = None
    generations: set[int] = set()
    rates: list[float] = []
    for link, active in states.items():
        megabytes = _number(details.get((_SPEED, link), 0)) or common
        speed = megabytes * 1e6 if active and megabytes else None
        version = _number(details.get((_VERSION, link), 0)) or version
        if active and version is None:  # drivers before 525 have only the call
            query = FieldQuery("nvlink_version", ("DeviceGetNvLinkVersion",), (link,))
            version = reader.attempt(query.field, partial(reader.first, query)) or 0
        generation = nvlink_generation(version or 0, speed) if active else None
        reader.links.append(
            GpuLink(
                key=f"{reader.key}/nvlink{link}",
                gpu=reader.key,
                kind="nvlink",
                active=active,
                version=generation,
                speed=speed,
            )
        )
        rates += [nvlink_rate(speed, generation)] if speed else []
        generations |= {generation} if generation else set()
    if rates:
        reader.fields["nvlink_rate"] = max(rates)
    return max(generations, default=None)


def _c2c_links(reader: NvmlReader, links: range, details: Mapping[Field, float | NvmlError]) -> None:
    """Add the links to a Grace processor. A GPU without C2C links adds none."""
    speeds: list[float | None] = []
    for link in links:
        status = reader.attempt("c2c_links", partial(value_of, details[_C2C_STATUS, link]))
        speed = _number(details[_C2C_SPEED, link]) * 1e6 or None if status else None
        speeds += [speed] if status else []
        reader.links.append(
            GpuLink(
                key=f"{reader.key}/c2c{link}",
                gpu=reader.key,
                kind="c2c",
                active=None if status is None else bool(status),
                speed=speed,
                remote_kind="cpu",
            )
        )
    if links and not reader.missed("c2c_links"):
        reader.fields["c2c_links"] = len(speeds)
        reader.fields["c2c_rate"] = max(filter(None, speeds), default=None)


def _errors(reader: NvmlReader, states: Mapping[int, bool], generation: int | None) -> None:
    """Observe the error counters: always for the GPU, and for each link with a non-zero counter."""
    counters = _HOPPER if generation in (None, 4) else _AMPERE
    answers = reader.numbers(field for link in states for counter in counters for field in counter.fields(link))
    for counter in counters:
        _sum(reader, counter, states, answers)


def _sum(
    reader: NvmlReader, counter: _Counter, states: Mapping[int, bool], answers: Mapping[Field, float | NvmlError]
) -> None:
    """Observe one counter for each link, and the sum for the GPU."""
    counts: list[float] = []
    for link, active in states.items():
        values = [answers[field] for field in counter.fields(link)]
        if not active and any(isinstance(value, NvmlError) for value in values):
            continue  # counters of an inactive link are optional
        count = reader.attempt("nvlink_errors", partial(_total, values))
        if count:
            source = " + ".join(f"NVML field {number}" for number, _ in counter.fields(link))
            reader.observe(f"{reader.key}/nvlink{link}", counter.quantity, "count", count, source)
        counts += [] if count is None else [count]
    if counts:
        reader.observe(reader.key, counter.quantity, "count", sum(counts), "NVML, all of its links")


def _total(values: Iterable[float | NvmlError]) -> float:
    """Return the sum of the values. Raises NvmlError if one value is refused."""
    return float(sum(value_of(value) for value in values))
