"""What the time of a job saw: counters when it began and when it ended, and what is between them."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import msgspec

from ...models.diagnosis.counter_diff import Change, Logged, Window, changes
from ...models.diagnosis.passive_rates import SUFFIX
from ...models.facts.machine import Event
from ...models.facts.records import NotChecked, Observation, Record
from ...models.facts.units import as_utc
from ...probes.host.host import Host
from ..inputs.resolve import BadInput
from ..pipeline.hang_guard import collect_all
from ..pipeline.registry import named
from ..state import status_file as last
from ..state.atomic_write import put
from ..state.state_file import read_small
from ..state.status_file import Unknown

_FOLDER = "windows"
_JOB = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}")
_OLD = 30 * 86400.0  # seconds after which a window that nobody closes is forgotten
_COUNTED = ("count", "bytes", "seconds")
# What counts, and what the kernel logged.
_READERS = named("gpus", "pci_links", "net", "rdma", "host_counters", "kernel_log")


class _Opened(msgspec.Struct, frozen=True, kw_only=True):
    version: Literal[1] = 1
    at: float  # seconds since 1970
    booted: float
    counts: tuple[tuple[str, str, str, float], ...]  # about, quantity, unit, value


@dataclass(frozen=True, slots=True)
class _Look:
    at: float
    said: tuple[Record, ...]

    @property
    def counts(self) -> dict[tuple[str, str, str], float]:
        return {
            (one.about, one.quantity, one.unit): one.value
            for one in self.said
            if isinstance(one, Observation) and isinstance(one.about, str) and one.unit in _COUNTED
        }


def begin(host: Host, folder: str, job: str) -> None:
    """Remember what is counted now. Raises BadInput: a name that is none, a folder that cannot be written to."""
    path = _path(folder, job)
    look = _look(host)
    counts = tuple((*key, value) for key, value in look.counts.items())
    opened = _Opened(at=look.at, booted=_booted(), counts=counts)
    try:
        _make(os.path.dirname(path))
        _forget_old(os.path.dirname(path))
        put(path, msgspec.json.encode(opened))
    except OSError as refused:
        raise BadInput(f"--state-dir {folder}: {refused.strerror}") from None


def end(host: Host, folder: str, job: str) -> Window:
    """What the time since `begin` saw; the window is closed. Raises BadInput where none of the job is open."""
    path = _path(folder, job)
    try:
        opened = read_small(path, _Opened)
    except FileNotFoundError:
        raise BadInput(f"no window of job {job} is open: 'linkgauge window open {job}' begins one") from None
    except (OSError, ValueError) as wrong:
        raise BadInput(f"the window of job {job} cannot be read: {getattr(wrong, 'strerror', None) or wrong}") from None
    look = _look(host)
    with suppress(OSError):
        os.unlink(path)
    before = {(about, quantity, unit): value for about, quantity, unit, value in opened.counts}
    restarted = abs(_booted() - opened.booted) > 60  # a clock that was set moves it a little
    found, gone = changes({} if restarted else before, look.counts, reset=restarted)
    peaks, why = _peaks(folder, job)
    return Window(
        job=job,
        began=as_utc(opened.at),
        ended=as_utc(look.at),
        seconds=max(look.at - opened.at, 0.0),
        restarted=restarted,
        changes=_with_peaks(found, peaks),
        logged=tuple(_logged(look.said, opened.at)),
        gone=gone,
        not_read=tuple(sorted({f"{one.subject} {one.what}: {one.why}" for one in _missed(look.said)} | why)),
    )


def followed(
    folder: str, before: Mapping[str, Mapping[str, float]], seen: Iterable[Record]
) -> dict[str, Mapping[str, float]]:
    """The highest rates in each open window, with what was seen now: for the service, which looks all the time."""
    try:
        jobs = [
            name.removesuffix(".json") for name in os.listdir(os.path.join(folder, _FOLDER)) if name.endswith(".json")
        ]
    except OSError:
        return {}
    found: dict[str, Mapping[str, float]] = {}
    rates = [one for one in seen if isinstance(one, Observation) and one.quantity.endswith(SUFFIX)]
    for job in jobs:
        most = dict(before.get(job, {}))
        for one in rates:
            most[str(one.about)] = max(most.get(str(one.about), 0.0), one.value)
        found[job] = most
    return found


def _look(host: Host) -> _Look:
    return _Look(host.now(), tuple(collect_all(_READERS, host)))


def _path(folder: str, job: str) -> str:
    if not _JOB.fullmatch(job):
        raise BadInput(f"{job!r} is no job: letters, digits and _ . + - are, 64 at most")
    return os.path.join(folder, _FOLDER, f"{job}.json")


def _booted() -> float:
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


def _make(folder: str) -> None:
    """A folder that the service can list, whatever the umask of a prolog takes."""
    if not os.path.isdir(folder):
        os.makedirs(folder)
        os.chmod(folder, 0o755)


def _forget_old(folder: str) -> None:
    """Of jobs whose epilog never ran. Root does this in a folder of another user: through no link."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        for name in os.listdir(descriptor):
            seen = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            if stat.S_ISREG(seen.st_mode) and seen.st_mtime < time.time() - _OLD:
                os.unlink(name, dir_fd=descriptor)
    finally:
        os.close(descriptor)


def _peaks(folder: str, job: str) -> tuple[Mapping[str, float], set[str]]:
    try:
        return last.read(folder).peaks.get(job, {}), set()
    except Unknown as unknown:
        return {}, {f"node peak: {unknown}"}


def _with_peaks(found: Iterable[Change], peaks: Mapping[str, float]) -> tuple[Change, ...]:
    rates = (
        Change(kind="peak", about=about, quantity="most in a second", unit="bytes_per_second", value=rate)
        for about, rate in sorted(peaks.items())
    )
    return (*found, *rates)


def _logged(said: Iterable[Record], since: float) -> Iterator[Logged]:
    for one in said:
        if isinstance(one, Event) and one.at is not None and one.at >= since:
            yield Logged(kind=one.kind or "", subject=one.subject or "", at=as_utc(one.at), text=one.text or "")


def _missed(said: Iterable[Record]) -> Iterator[NotChecked]:
    return (one for one in said if isinstance(one, NotChecked))
