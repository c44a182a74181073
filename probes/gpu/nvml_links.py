"""NVLinks and NVLink-C2C of one GPU as NVML tells them: which are active, how fast, and what they counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from ...models.facts.gpu import GpuLink
from ..parsing.nvml_enums import bit_error_rate, nvlink_generation, nvlink_rate
from .nvml_library import (
    FUNCTION_NOT_FOUND,
    GONE,
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    Field,
    Refused,
)
from .nvml_threads import Asking, Row, answered

# Fields of the GPU: how many NVLinks it has, their common speed in MB/s, how many C2C links it has.
_COUNT, _COMMON_SPEED, _C2C_COUNT = 91, 90, 170
OF_ALL_LINKS = (_COUNT, _COMMON_SPEED, _C2C_COUNT)
# Fields of a link, whose number is their scope: speed in MB/s, version; C2C: active or not, speed in MB/s.
_SPEED, _VERSION, _C2C_STATUS, _C2C_SPEED = 164, 166, 171, 172
_MOST_LINKS = 36  # NVML_NVLINK_MAX_LINKS


@dataclass(frozen=True, slots=True)
class _Counter:
    """What a link counts: the numbers of its fields, added up. Each is of link 0, 6, or has the link as its scope."""

    quantity: str
    scoped: tuple[int, ...] = ()
    first: tuple[int, ...] = ()  # of links 0 to 5 in a row ...
    seventh: tuple[int, ...] = ()  # ... and of links 6 to 11

    def fields(self, link: int) -> list[Field]:
        """The fields of one link."""
        if link < 6:
            own = [(number + link, 0) for number in self.first]
        else:
            own = [(number + link - 6, 0) for number in self.seventh] if link < 12 else []
        return own or [(number, link) for number in self.scoped]


# Until Ampere each link has fields of its own; Hopper has the link in the scope, and one CRC count instead of two for
# flow control and data (NVML change log, 520); Blackwell counts as InfiniBand does, and has none of the older ones.
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
_BLACKWELL = (
    _Counter("nvlink_recovery", (215,)),
    _Counter("nvlink_recovery_failed", (214,)),
    _Counter("nvlink_symbol_errors", (221,)),
    _Counter("nvlink_effective_errors", (219,)),
)
# How many blocks there were of which error correction mended 0, 1 ... 15 symbols: near the end of it links fail.
_CORRECTED = range(235, 251)
_BIT_ERROR_RATES: Mapping[str, int] = {"nvlink_effective_ber": 220, "nvlink_raw_ber": 293}


def links(asking: Asking, said: Mapping[Field, float | Refused]) -> None:
    """The links into `asking`; `said` has the fields OF_ALL_LINKS. Raises Refused where the GPU is gone."""
    states = link_states(asking, _number(said[_COUNT, 0]))
    if states is not None and not asking.missed("nvlinks"):
        asking.fields.update(nvlinks_present=len(states), nvlinks=sum(states.values()))
    states = states or {}
    c2c = range(min(_number(said[_C2C_COUNT, 0]), _MOST_LINKS))
    details = asking.numbers(
        [(number, link) for link in states for number in (_SPEED, _VERSION)]
        + [(number, link) for link in c2c for number in (_C2C_STATUS, _C2C_SPEED)]
    )
    generation = _nvlinks(asking, states, details, _number(said[_COMMON_SPEED, 0]))
    _c2c_links(asking, c2c, details)
    _errors(asking, states, generation)


def link_count(asking: Asking) -> int:
    """How many NVLinks the GPU has; 0 where the driver does not say. Raises Refused where the GPU is gone."""
    return _number(asking.numbers([(_COUNT, 0)])[_COUNT, 0])


def link_states(asking: Asking, count: int) -> dict[int, bool] | None:
    """Whether each NVLink is active; None where the driver has no such question.

    Beyond the last link NVML says NOT_SUPPORTED or INVALID_ARGUMENT (both were seen); where the GPU has `count` of
    them, also between links: some are cut off in the factory.
    """
    states: dict[int, bool] = {}
    for link in range(_MOST_LINKS):
        try:
            states[link] = asking.library.ask("DeviceGetNvLinkState", asking.handle, link) == 1
        except Refused as refusal:
            if refusal.code in GONE:
                raise
            if refusal.code == FUNCTION_NOT_FOUND:
                return None
            if refusal.code not in (NOT_SUPPORTED, INVALID_ARGUMENT):
                asking.miss("nvlinks", refusal.reason, f"link {link}: {refusal}", refusal.how)
            elif len(states) >= count:
                break
    return states


def _number(answer: float | Refused) -> int:
    return 0 if isinstance(answer, Refused) else int(answer)


def _nvlinks(
    asking: Asking, states: Mapping[int, bool], details: Mapping[Field, float | Refused], common: int
) -> int | None:
    """A fact of each NVLink; gives their generation. Versions and speeds are those of active ones."""
    version: int | None = None
    generations: set[int] = set()
    rates: list[float] = []
    for link, active in states.items():
        megabytes = _number(details[_SPEED, link]) or common
        speed = megabytes * 1e6 if active and megabytes else None
        version = _number(details[_VERSION, link]) or version
        if active and version is None:  # drivers before 525 have the call alone
            row = Row("nvlink_version", ("DeviceGetNvLinkVersion",), (link,))
            version = asking.attempt(row.field, partial(asking.first, row)) or 0
        generation = nvlink_generation(version or 0, speed) if active else None
        asking.links.append(
            GpuLink(
                key=f"{asking.key}/nvlink{link}",
                gpu=asking.key,
                kind="nvlink",
                active=active,
                version=generation,
                speed=speed,
            )
        )
        rates += [nvlink_rate(speed, generation)] if speed else []
        generations |= {generation} if generation else set()
    if rates:
        asking.fields["nvlink_rate"] = max(rates)
    return max(generations, default=None)


def _c2c_links(asking: Asking, links: range, details: Mapping[Field, float | Refused]) -> None:
    """Links to a Grace processor; a GPU without them says nothing."""
    speeds: list[float | None] = []
    for link in links:
        status = asking.attempt("c2c_links", partial(answered, details[_C2C_STATUS, link]))
        speed = _number(details[_C2C_SPEED, link]) * 1e6 or None if status else None
        speeds += [speed] if status else []
        asking.links.append(
            GpuLink(
                key=f"{asking.key}/c2c{link}",
                gpu=asking.key,
                kind="c2c",
                active=None if status is None else bool(status),
                speed=speed,
                remote_kind="cpu",
            )
        )
    if links and not asking.missed("c2c_links"):
        asking.fields["c2c_links"] = len(speeds)
        asking.fields["c2c_rate"] = max(filter(None, speeds), default=None)


def _errors(asking: Asking, states: Mapping[int, bool], generation: int | None) -> None:
    """What the links counted: of the GPU always, of a link where it is not zero."""
    counters = _HOPPER if generation in (None, 4) else _AMPERE if generation < 4 else _BLACKWELL
    rates = _BIT_ERROR_RATES if counters is _BLACKWELL else {}
    wanted = [field for link in states for counter in counters for field in counter.fields(link)]
    more = (*rates.values(), *_CORRECTED) if rates else ()
    said = asking.numbers([*wanted, *((number, link) for link in states for number in more)])
    for counter in counters:
        _sum(asking, counter, states, said)
    for link, active in states.items():
        for quantity, number in rates.items() if active else ():
            rate = asking.attempt("nvlink_errors", partial(answered, said[number, link]))
            if rate is not None:
                about, ratio = f"{asking.key}/nvlink{link}", bit_error_rate(int(rate))
                asking.observe(about, quantity, "ratio", ratio, f"NVML field {number}")
        corrected = [number for number in _CORRECTED if rates and active and _number(said[number, link])]
        if corrected:
            about, most = f"{asking.key}/nvlink{link}", corrected[-1] - _CORRECTED[0]
            asking.observe(about, "nvlink_fec_mended", "symbols", most, f"NVML field {corrected[-1]}")


def _sum(asking: Asking, counter: _Counter, states: Mapping[int, bool], said: Mapping[Field, float | Refused]) -> None:
    """Observe one count: of each link, and their sum."""
    counts: list[float] = []
    for link, active in states.items():
        values = [said[field] for field in counter.fields(link)]
        if not active and any(isinstance(value, Refused) for value in values):
            continue  # a link that is down need not count
        count = asking.attempt("nvlink_errors", partial(_added, values))
        if count:
            source = " + ".join(f"NVML field {number}" for number, _ in counter.fields(link))
            asking.observe(f"{asking.key}/nvlink{link}", counter.quantity, "count", count, source)
        counts += [] if count is None else [count]
    if counts:
        asking.observe(asking.key, counter.quantity, "count", sum(counts), "NVML, all of its links")


def _added(values: Iterable[float | Refused]) -> float:
    """Raises Refused where one of them is not said."""
    return float(sum(answered(value) for value in values))
