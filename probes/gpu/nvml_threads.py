"""Asking a driver that may hang: each GPU in a thread of its own, none for longer than the whole may take."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from ...models.facts.gpu import Driver, Gpu, GpuLink
from ...models.facts.reason import Reason, reason_of
from ...models.facts.records import Evidence, Fact, NotChecked, Observation, Record
from ...models.facts.registry import kind_name
from ..calls.threaded_call import ThreadedCall
from ..calls.timeouts import no_answer
from ..parsing.parsers import word
from .nvml_library import (
    ABSENT,
    FUNCTION_NOT_FOUND,
    GONE,
    LIBRARY_NOT_FOUND,
    NO_PERMISSION,
    NOT_SUPPORTED,
    Field,
    Library,
    Refused,
)

T = TypeVar("T")

CONTROL = "/dev/nvidiactl"  # through which every program talks to the driver
# Where nothing keeps GPUs initialized, the first who asks waits 1 to 3 seconds for each, ECC scrubbing
# (https://docs.nvidia.com/deploy/driver-persistence/overview.html): 30 s with 8 A100 (Azure/aks-gpu, install.sh).
# Whether something does, only the driver knows: Ubuntu starts nvidia-persistenced with --no-persistence-mode.
_SECONDS = 40.0
# A GPU hangs where nothing at all was answered for this share of it: the first who asks waits 4 s for an A100.
_STALL = 0.2
_CONTAINER = "in a container, give it the GPUs (--gpus all)"


@dataclass(frozen=True, slots=True)
class Row:
    """A field, the calls that give it (the first that is there), what they take, and how the answer is read."""

    field: str
    calls: tuple[str, ...]
    takes: tuple[Any, ...] = ()
    read: Callable[[Any], Any] = int


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a GPU cannot be used."""

    reason: Reason
    detail: str


_DRIVER = (
    Row("library", ("SystemGetDriverVersion",), read=word),
    Row("nvml", ("SystemGetNVMLVersion",), read=word),
    Row("cuda", ("SystemGetCudaDriverVersion",), read=lambda number: f"{number // 1000}.{number % 1000 // 10}"),
)


@dataclass
class Asking:
    """What is known so far of one thing; the main thread reads it also while the thing's own thread hangs."""

    library: Library
    kind: type[Fact]
    key: str
    handle: Any = None
    fields: dict[str, Any] = field(default_factory=dict)
    links: list[GpuLink] = field(default_factory=list)
    observed: list[Observation] = field(default_factory=list)
    lost: list[NotChecked] = field(default_factory=list)

    def take(self, row: Row) -> None:
        """Ask for the field of a row; what is not there leaves it out."""
        self.attempt(row.field, lambda: self.fields.update({row.field: row.read(self.first(row))}))

    def first(self, row: Row) -> Any:
        """The answer of the first of its calls that is there. Raises Refused."""
        given = row.takes if self.handle is None else (self.handle, *row.takes)
        for call in row.calls[:-1]:
            try:
                return self.library.ask(call, *given)
            except Refused as refusal:
                if refusal.code not in (FUNCTION_NOT_FOUND, NOT_SUPPORTED):
                    raise
        return self.library.ask(row.calls[-1], *given)

    def attempt(self, name: str, question: Callable[[], T]) -> T | None:
        """The answer; None where it is not there, or would not be given: then `name` is missed.

        Raises Refused where the GPU is gone.
        """
        try:
            return question()
        except Refused as refusal:
            if refusal.code in GONE:
                raise
            if refusal.code not in ABSENT:
                self.miss(name, refusal.reason, str(refusal), refusal.how)
        except ValueError as wrong:
            self.miss(name, Reason.UNREADABLE, str(wrong))
        return None

    def miss(self, name: str, reason: Reason, detail: str, how: str | None = None) -> None:
        """Say that a field was wanted and not given; of several reasons, the first is enough."""
        if not self.missed(name):
            what = f"{kind_name(self.kind)}.{name}"
            lost = NotChecked(what=what, subject=self.key, reason=reason, detail=detail, how=how)
            self.lost.append(lost)

    def rest(self) -> Iterator[Record]:
        """All but the fact itself."""
        yield from self.links.copy()
        yield from self.observed.copy()
        yield from self.lost.copy()

    def missed(self, name: str) -> bool:
        """Whether a field was not given."""
        return any(known.what == f"{kind_name(self.kind)}.{name}" for known in self.lost)

    def observe(self, about: str, quantity: str, unit: str, value: float, source: str) -> None:
        """A number of this moment; `source` is where NVML has it."""
        evidence = Evidence(source, f"{value:.15g}")
        seen = Observation(about=about, quantity=quantity, unit=unit, value=value, at=time.time(), evidence=evidence)
        self.observed.append(seen)

    def numbers(self, fields: Iterable[Field]) -> Mapping[Field, float | Refused]:
        """What each of these fields holds, or why it is not said. Raises Refused(GONE)."""
        wanted = list(fields)
        try:
            said = self.library.values(self.handle, wanted) if wanted else {}
        except Refused as refusal:
            if refusal.code in GONE:
                raise
            return dict.fromkeys(wanted, refusal)
        for answer in said.values():
            if isinstance(answer, Refused) and answer.code in GONE:
                raise answer
        return said

    def count(
        self, about: str, quantity: str, number: int, answer: float | Refused, unit: str = "count", per: float = 1
    ) -> None:
        """Observe what the field with this number holds, in `unit`s, of which `per` are one."""
        value = self.attempt(quantity, lambda: answered(answer))
        if value is not None:
            self.observe(about, quantity, unit, value / per, f"NVML field {number}")


def answered(answer: float | Refused) -> Any:
    """The number; raises what was said instead of it."""
    if isinstance(answer, Refused):
        raise answer
    return answer


def seconds() -> float:
    """How long the driver may take for everything; LINKGAUGE_NVML_SECONDS overrides it."""
    return float(os.environ.get("LINKGAUGE_NVML_SECONDS") or _SECONDS)


def stall() -> float:
    """For how many seconds no GPU may answer anything."""
    return _STALL * seconds()


def waited(question: ThreadedCall[T], library: Library, until: float) -> bool:
    """Whether there is an answer by the time `until`; given up before, once the driver answers nobody any more."""
    while not question.wait(end := min(until, library.answered + stall())):
        if min(until, library.answered + stall()) <= end:
            return False
    return True


def opened(until: float) -> tuple[Library, Asking] | Driver | NotChecked:
    """The library, ready, and the driver's own facts; or whose fault it is that there are none."""
    try:
        library = Library()
    except ImportError as missing:
        return NotChecked(
            what="Gpu",
            subject="node",
            reason=Reason.NOT_INSTALLED,
            detail=str(missing),
            how="install the package nvidia-ml-py",
        )
    opening = ThreadedCall(partial(_open, library))
    if not opening.wait(until):
        return Driver(key="nvidia", failure=no_answer(seconds()), failure_reason=Reason.NO_ANSWER)
    try:
        return library, opening.answer()
    except Refused as refusal:
        return _failure(refusal)


def _open(library: Library) -> Asking:
    library.ask("Init")
    driver = Asking(library, Driver, "nvidia")
    for row in _DRIVER:
        driver.take(row)
    driver.fields["gpus"] = library.ask("DeviceGetCount")
    return driver


def _failure(refusal: Refused) -> Driver | NotChecked:
    """Nobody can use the driver, or only this process cannot: without the library, or shut out of its device."""
    if refusal.code in (LIBRARY_NOT_FOUND, FUNCTION_NOT_FOUND):
        how = f"install the driver's libnvidia-ml.so.1; {_CONTAINER}"
        return NotChecked(what="Gpu", subject="node", reason=refusal.reason, detail=str(refusal), how=how)
    shut = _shut_out()
    if refusal.code == NO_PERMISSION or shut:
        reason = reason_of(shut.errno) if shut else refusal.reason
        why = f"{refusal}: {CONTROL}: {shut.strerror}" if shut else str(refusal)
        return NotChecked(what="Gpu", subject="node", reason=reason, detail=why, how=f"run as root; {_CONTAINER}")
    return Driver(key="nvidia", failure=str(refusal), failure_reason=refusal.reason)


def _shut_out() -> OSError | None:
    """Why this process cannot open the driver's device.

    A container without it, or whose right to it was taken away, gets the errors of a broken driver: "Driver Not
    Loaded", "Unknown Error" (https://github.com/NVIDIA/nvidia-container-toolkit/issues/48).
    """
    try:
        os.close(os.open(CONTROL, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
    except (FileNotFoundError, PermissionError) as error:
        return error
    except OSError:
        pass  # the driver's own word on it is the error that we have
    return None


def answering(ask: Callable[[Asking], None]) -> Iterator[Asking]:
    """Each GPU, as far as it answered; none where the driver cannot be used, which others say (nvml.py)."""
    until = time.monotonic() + seconds()
    ready = opened(until)
    if isinstance(ready, tuple):
        library, driver = ready
        yield from (asking for asking, _ in each_gpu(library, driver.fields["gpus"], ask, until))


def each_gpu(
    library: Library, count: int, ask: Callable[[Asking], None], until: float
) -> Iterator[tuple[Asking, Failure | None]]:
    """Each GPU, as far as it answered `ask`, and why it cannot be used; in their order."""
    askings = [Asking(library, Gpu, f"gpu{index}") for index in range(count)]
    questions = [ThreadedCall(partial(_one_gpu, asking, index, ask)) for index, asking in enumerate(askings)]
    faults: list[Exception] = []
    for asking, question in zip(askings, questions, strict=True):
        failure: Failure | None = Failure(Reason.NO_ANSWER, no_answer(stall()))
        if waited(question, library, until):
            try:
                failure = question.answer()
            except Exception as fault:  # our own: the other GPUs first
                faults.append(fault)
                continue
        yield asking, failure
    if faults:
        raise faults[0]


def _one_gpu(asking: Asking, index: int, ask: Callable[[Asking], None]) -> Failure | None:
    """Why the GPU cannot be used; None: it can."""
    try:
        asking.handle = asking.library.ask("DeviceGetHandleByIndex", index)
        ask(asking)
    except Refused as refusal:
        if refusal.code == NO_PERMISSION:
            asking.lost = [
                NotChecked(what="Gpu", subject=asking.key, reason=refusal.reason, detail=str(refusal), how=refusal.how)
            ]
            return None
        return Failure(refusal.reason, str(refusal))
    if not asking.fields and asking.lost:
        first, asking.lost = asking.lost[0], []
        return Failure(first.reason, first.why)
    return None
