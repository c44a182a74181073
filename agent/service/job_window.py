"""Changes during a job: read counters when the job starts and when it ends, and report the differences."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...models.diagnosis.counter_diff import Change, Logged, Window, changes
from ...models.diagnosis.passive_rates import SUFFIX
from ...models.facts.gpu import Gpu
from ...models.facts.machine import Event
from ...models.facts.records import Flow, NotChecked, Observation, Record
from ...models.facts.units import as_size, as_utc
from ...models.jobs.job_rates import LEAST, QUANTITY
from ...probes.host.host import Host
from ..inputs.site_file import BadInput
from ..pipeline.hang_guard import collect_all
from ..pipeline.registry import named
from ..state import status_file
from ..state.state_file import opened_folder, read_state_file, write_state_file
from ..state.status_file import StatusUnknown

_FOLDER = "windows"
_JOB = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}")
_OLD = 30 * 86400.0  # seconds after which an open window is deleted
_MOST_PEAKS = 256  # ports and collectives of one window
_COUNTED = ("count", "bytes", "seconds")
# The sources of counters, and the kernel log.
_READERS = named("gpus", "pci_links", "net", "rdma", "host_counters", "kernel_log")


class _OpenWindow(msgspec.Struct, frozen=True, kw_only=True):
    version: Literal[1] = 1
    at: float  # seconds since 1970
    booted: float
    counts: tuple[tuple[str, str, str, float], ...]  # about, quantity, unit, value


class _Reading(Struct, frozen=True):
    at: float
    records: tuple[Record, ...]

    @property
    def counts(self) -> dict[tuple[str, str, str], float]:
        return {
            (one.about, one.quantity, one.unit): one.value
            for one in self.records
            if isinstance(one, Observation) and isinstance(one.about, str) and one.unit in _COUNTED
        }


def open_window(host: Host, folder: str, job: str) -> None:
    """Store the present counters. Raises BadInput for an invalid job name or a folder that cannot be written to."""
    name = _name(job)
    reading = _take_reading(host)
    counts = tuple((*key, value) for key, value in reading.counts.items())
    opened = _OpenWindow(at=reading.at, booted=_booted(), counts=counts)
    try:
        write_state_file(folder, name, msgspec.json.encode(opened), below=_FOLDER)
        _delete_old(folder)
    except OSError as refused:
        raise BadInput(f"--state-dir {folder}: {refused.strerror}") from None


def close_window(host: Host, folder: str, job: str) -> Window:
    """Return the changes since `open_window` and close the window. Raises BadInput if the job has no open window."""
    name = _name(job)
    try:
        opened = read_state_file(os.path.join(folder, _FOLDER, name), _OpenWindow)
    except FileNotFoundError:
        raise BadInput(f"job {job} has no open window: 'linkgauge window open {job}' opens one") from None
    except (OSError, ValueError) as wrong:
        raise BadInput(f"the window of job {job} cannot be read: {getattr(wrong, 'strerror', None) or wrong}") from None
    reading = _take_reading(host)
    with suppress(OSError), opened_folder(folder, _FOLDER) as descriptor:
        os.unlink(name, dir_fd=descriptor)
    before = {(about, quantity, unit): value for about, quantity, unit, value in opened.counts}
    restarted = abs(_booted() - opened.booted) > 60  # setting the clock moves the boot time a little
    found, gone = changes({} if restarted else before, reading.counts, reset=restarted)
    peaks, why = _peaks(folder, job)
    return Window(
        job=job,
        began=as_utc(opened.at),
        ended=as_utc(reading.at),
        seconds=max(reading.at - opened.at, 0.0),
        restarted=restarted,
        changes=_with_peaks(found, peaks),
        logged=tuple(_logged(reading.records, opened.at)),
        gone=gone,
        not_read=tuple(sorted({f"{one.subject} {one.what}: {one.why}" for one in _not_checked(reading.records)} | why)),
    )


def updated_peaks(
    folder: str, before: Mapping[str, Mapping[str, float]], collected: Mapping[str, Iterable[Record]]
) -> dict[str, Mapping[str, float]]:
    """Update the highest rate of each port and collective in each open window. The service calls it each cycle.

    `collected`: source -> its records of this cycle.
    """
    try:
        jobs = [
            name.removesuffix(".json") for name in os.listdir(os.path.join(folder, _FOLDER)) if name.endswith(".json")
        ]
    except OSError:
        return {}
    found: dict[str, Mapping[str, float]] = {}
    rates = [*_traffic(collected), *_collectives(collected)] if jobs else []
    for job in jobs:
        most = dict(before.get(job, {}))
        for about, rate in rates:
            if about in most or len(most) < _MOST_PEAKS:
                most[about] = max(most.get(about, 0.0), rate)
        found[job] = most
    return found


def _traffic(collected: Mapping[str, Iterable[Record]]) -> Iterator[tuple[str, float]]:
    for one in collected.get("traffic", ()):
        if isinstance(one, Observation) and one.quantity.endswith(SUFFIX):
            yield str(one.about), one.value


def _collectives(collected: Mapping[str, Iterable[Record]]) -> Iterator[tuple[str, float]]:
    """The GPUs, the operation and its size, and the bus bandwidth. Latency decides that of smaller sizes."""
    every = (one for records in collected.values() for one in records)
    keys = {one.uuid: one.key for one in every if isinstance(one, Gpu) and one.uuid}
    for one in collected.get("jobs", ()):
        if isinstance(one, Observation) and one.quantity == QUANTITY and isinstance(flow := one.about, Flow):
            ends = tuple(sorted(keys.get(end, end) for end in flow.ends))
            if (flow.size or 0) >= LEAST:
                yield f"{replace(flow, ends=ends).subject} {flow.op} {as_size(flow.size or 0)}", one.value


def _take_reading(host: Host) -> _Reading:
    return _Reading(host.now(), tuple(collect_all(_READERS, host)))


def _name(job: str) -> str:
    if not _JOB.fullmatch(job):
        raise BadInput(f"{job!r} is not a valid job name: use at most 64 letters, digits and _ . + -")
    return f"{job}.json"


def _booted() -> float:
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


def _delete_old(folder: str) -> None:
    """Delete windows of jobs whose epilog never ran."""
    with opened_folder(folder, _FOLDER) as descriptor:
        for name in os.listdir(descriptor):
            seen = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            if stat.S_ISREG(seen.st_mode) and seen.st_mtime < time.time() - _OLD:
                os.unlink(name, dir_fd=descriptor)


def _peaks(folder: str, job: str) -> tuple[Mapping[str, float], set[str]]:
    try:
        return status_file.read(folder).peaks.get(job, {}), set()
    except StatusUnknown as unknown:
        return {}, {f"node peak: {unknown}"}


def _with_peaks(found: Iterable[Change], peaks: Mapping[str, float]) -> tuple[Change, ...]:
    return (*found, *sorted(map(_peak, peaks, peaks.values()), key=lambda one: (one.kind, one.about, one.quantity)))


def _peak(name: str, rate: float) -> Change:
    about, _, collective = name.partition(" ")
    return Change(
        kind="reached" if collective else "peak",
        about=about,
        quantity=collective or "most in a second",
        unit="bytes_per_second",
        value=rate,
    )


def _logged(records: Iterable[Record], since: float) -> Iterator[Logged]:
    for one in records:
        if isinstance(one, Event) and one.at is not None and one.at >= since:
            yield Logged(kind=one.kind or "", subject=one.subject or "", at=as_utc(one.at), text=one.text or "")


def _not_checked(records: Iterable[Record]) -> Iterator[NotChecked]:
    return (one for one in records if isinstance(one, NotChecked))
