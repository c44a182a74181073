"""Reads one device with NVML and holds the results: facts, observations, and what is missing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from msgspec import Struct, field

from ...models.facts.gpu import GpuLink
from ...models.facts.reason import Reason
from ...models.facts.records import Evidence, Fact, NotChecked, Observation, Record
from ...models.facts.registry import kind_name
from .nvml_library import FUNCTION_NOT_FOUND, GONE, NOT_SUPPORTED, Field, Library, NvmlError

T = TypeVar("T")

_MOST_DIVIDED = 12  # requests of one GPU: two bad fields among 60 are found


class FieldQuery(Struct, frozen=True):
    """A field, its calls (the first available one is used), their arguments, and the parser of the result."""

    field: str
    calls: tuple[str, ...]
    arguments: tuple[Any, ...] = ()
    read: Callable[[Any], Any] = int


class NvmlReader(Struct):
    """Reads one device (driver, GPU, link or pair) and holds the results.

    The main thread reads these results even if the device's own thread hangs.
    """

    library: Library
    kind: type[Fact]
    key: str
    handle: Any = None
    fields: dict[str, Any] = field(default_factory=dict)
    links: list[GpuLink] = field(default_factory=list)
    observed: list[Observation] = field(default_factory=list)
    lost: list[NotChecked] = field(default_factory=list)
    divided: int = 0  # refused requests that were divided

    def take(self, query: FieldQuery) -> None:
        """Read the field of `query`. An unsupported field stays absent."""
        self.attempt(query.field, lambda: self.fields.update({query.field: query.read(self.first(query))}))

    def first(self, query: FieldQuery) -> Any:
        """Return the result of the first available call of `query`. Raises NvmlError."""
        arguments = query.arguments if self.handle is None else (self.handle, *query.arguments)
        for call in query.calls[:-1]:
            try:
                return self.library.call(call, *arguments)
            except NvmlError as refusal:
                if refusal.code not in (FUNCTION_NOT_FOUND, NOT_SUPPORTED):
                    raise
        return self.library.call(query.calls[-1], *arguments)

    def attempt(self, name: str, call: Callable[[], T]) -> T | None:
        """Return the result of `call`; None if it is unsupported or refused. A refused field is recorded as missed.

        Raises NvmlError if the GPU is lost.
        """
        try:
            return call()
        except NvmlError as refusal:
            if refusal.code in GONE:
                raise
            if not refusal.is_absence:
                self.miss(name, refusal.reason, str(refusal), refusal.how)
        except ValueError as wrong:
            self.miss(name, Reason.UNREADABLE, str(wrong))
        return None

    def miss(self, name: str, reason: Reason, detail: str, how: str | None = None) -> None:
        """Record that a field cannot be read. Only the first reason for a field is kept."""
        if not self.missed(name):
            what = f"{kind_name(self.kind)}.{name}"
            lost = NotChecked(what=what, subject=self.key, reason=reason, detail=detail, how=how)
            self.lost.append(lost)

    def rest(self) -> Iterator[Record]:
        """Yield all records except the fact itself."""
        yield from self.links.copy()
        yield from self.observed.copy()
        yield from self.lost.copy()

    def missed(self, name: str) -> bool:
        """Whether a field is recorded as missed."""
        return any(known.what == f"{kind_name(self.kind)}.{name}" for known in self.lost)

    def observe(self, about: str, quantity: str, unit: str, value: float, source: str) -> None:
        """Record a value of this moment. `source` names the NVML call or field."""
        self.observed.append(self.observation(about, quantity, unit, value, source))

    def observation(self, about: str, quantity: str, unit: str, value: float, source: str) -> Observation:
        """A value of this moment. `source` names the NVML call or field."""
        evidence = Evidence(source, f"{value:.15g}")
        return Observation(about=about, quantity=quantity, unit=unit, value=value, at=time.time(), evidence=evidence)

    def numbers(self, fields: Iterable[Field]) -> Mapping[Field, float | NvmlError]:
        """Return the value or the error of each field. Raises NvmlError if the GPU is lost.

        NVML refuses a whole request for one field that it cannot handle. So a refused request is divided.
        """
        wanted = list(fields)
        try:
            answers = self.library.values(self.handle, wanted) if wanted else {}
        except NvmlError as refusal:
            if refusal.code in GONE:
                raise
            if len(wanted) == 1 or refusal.code == FUNCTION_NOT_FOUND or self.divided >= _MOST_DIVIDED:
                return dict.fromkeys(wanted, refusal)
            self.divided += 1
            middle = len(wanted) // 2
            return {**self.numbers(wanted[:middle]), **self.numbers(wanted[middle:])}
        for answer in answers.values():
            if isinstance(answer, NvmlError) and answer.code in GONE:
                raise answer
        return answers

    def known(self, name: str, answer: float | NvmlError) -> float | NvmlError:
        """The answer. A refusal that is no absence is recorded as missed."""
        self.attempt(name, lambda: value_of(answer))
        return answer

    def count(
        self, about: str, quantity: str, number: int, answer: float | NvmlError, unit: str = "count", per: float = 1
    ) -> None:
        """Observe the value of the field with this number, divided by `per` to convert it to `unit`."""
        value = self.attempt(quantity, lambda: value_of(answer))
        if value is not None:
            self.observe(about, quantity, unit, value / per, f"NVML field {number}")


def value_of(answer: float | NvmlError) -> Any:
    """Return the value. Raises NvmlError if there is an error instead."""
    if isinstance(answer, NvmlError):
        raise answer
    return answer
