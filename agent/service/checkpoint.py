"""The checkpoint of a service: findings and their age, measured rates, and earlier observations survive a restart."""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal

import msgspec
from msgspec.structs import replace

from ...models.catalog import codes
from ...models.diagnosis.hysteresis import History, Key, restarted, until
from ...models.facts.jsonl import decode, encode
from ...models.facts.machine import Event
from ...models.facts.records import Observation
from ...probes.calls.bounded_read import bounded_read
from ..inputs.site_file import BadInput
from ..pipeline.cycle import Memory
from ..pipeline.renumbering import found_again
from ..state import acceptance, inventory_file
from ..state.service_lock import LOCK
from ..state.state_file import CLOCK_STEP, close_to_others, give_to_owner, opened_folder, write_state_file

_FILE = "service.json"
_TRIES, _PAUSE = 5, 0.1  # seconds: `linkgauge status` holds the lock for a moment
_MOST = 64 << 20  # bytes
_log = logging.getLogger("linkgauge")


class _Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    version: Literal[1] = 1
    at: float  # seconds since 1970
    histories: tuple[tuple[Key, History], ...] = msgspec.field(name="standing", default=())  # of findings
    measured: tuple[str, ...] = ()  # records as JSON lines (models/facts/jsonl.py)
    past: tuple[Observation, ...] = ()
    rates: tuple[Observation, ...] = ()  # of flows, by earlier runs of the probes
    boot_id: str | None = None  # of the machine, when the findings were evaluated
    events: tuple[str, ...] = ()  # of this boot, as JSON lines
    gpus: dict[str, str] = {}  # the place of each GPU that has a number (pipeline/renumbering.py)
    ignored: dict[str, float] = {}  # entry of [ignore] -> when it matched a finding last


class Lock:
    """The lock of a state folder. It ends when it is closed, and with the process."""

    def __init__(self, folder: str) -> None:
        self._folder, self._path = folder, os.path.join(folder, LOCK)
        self._descriptor: int | None = None
        self._failure = ""  # the last one that was logged

    def take(self) -> None:
        """Lock the folder. Raises OSError, and BadInput if another service has locked it."""
        descriptor = _opened_lock(self._folder)
        try:
            _lock(descriptor, self._folder)
        except BadInput:
            os.close(descriptor)
            raise
        self.close()
        self._descriptor = descriptor

    def renew(self) -> None:
        """Lock the folder again if it was deleted or replaced. A failure is logged once."""
        if self._descriptor is None or _is_at(self._descriptor, self._path):
            return
        try:
            self.take()
        except (OSError, BadInput) as refused:
            failure = f"{self._path}: {getattr(refused, 'strerror', None) or refused}: the folder is not locked"
            if failure != self._failure:
                _log.warning(failure)
            self._failure = failure
        else:
            _log.warning("%s: the folder or its lock was deleted: the service writes its files again", self._folder)
            self._failure = ""

    def close(self) -> None:
        """Release the lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor = None


def _is_at(descriptor: int, path: str) -> bool:
    """Whether the path still leads to the open file."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except OSError:
        return False


@contextmanager
def exclusive(folder: str) -> Iterator[Lock]:
    """Lock the folder, so that two services do not overwrite each other's state. Raises BadInput if it is locked."""
    lock = Lock(folder)
    try:
        with suppress(OSError):  # `save` reports a folder that cannot be written to
            lock.take()
            _sweep(folder)
            close_to_others(folder)
        yield lock
    finally:
        lock.close()


def _opened_lock(folder: str) -> int:
    """A descriptor of the lock file. Other users can open the folder, so they could lock the folder itself."""
    with opened_folder(folder, create=True) as above:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(LOCK, flags, 0o600, dir_fd=above)
        if os.fstat(descriptor).st_nlink == 1:  # no second name of another file
            give_to_owner(descriptor, above)
        return descriptor


def _lock(descriptor: int, folder: str) -> None:
    for _ in range(_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE)
        except OSError:
            return  # a file system without locks
        else:
            return
    why = "another 'linkgauge serve' uses this folder: stop it, or choose another folder"
    raise BadInput(f"--state-dir {folder}: {why}")


def _sweep(folder: str) -> None:
    """Delete the temporary files that a killed service left."""
    with suppress(OSError), opened_folder(folder) as descriptor:
        for name in os.listdir(descriptor):
            if name.startswith(f".{_FILE}."):
                os.unlink(name, dir_fd=descriptor)


def save(folder: str, memory: Memory, now: float) -> str | None:
    """Write the checkpoint. Returns the error as text (a full disk, a folder without write permission), or None."""
    stored = _Checkpoint(
        at=now,
        histories=tuple(memory.histories.items()),
        measured=tuple(map(encode, memory.measured)),
        past=memory.past,
        rates=memory.rates,
        boot_id=memory.boot_id,
        events=tuple(map(encode, memory.events)),
        gpus=dict(memory.gpus),
        ignored=dict(memory.ignored),
    )
    try:
        write_state_file(folder, _FILE, msgspec.json.encode(stored))
    except OSError as refused:
        return f"{folder}: {refused.strerror}"
    return None


def load(folder: str, memory: Memory, now: float) -> Memory:
    """Return the memory with the contents of the checkpoint, or unchanged if there is none.

    `memory.boot_id` is the present boot. All findings are stale until they are evaluated again. A checkpoint that
    cannot be used is logged as a warning and ignored. Findings whose code this version does not have are dropped. Times
    after `now` become `now`: a clock was set back.
    """
    path = os.path.join(folder, _FILE)
    try:
        stored = _parsed(bounded_read(path, _MOST, os.O_NOFOLLOW))
        measured = tuple(map(decode, stored.measured))
        events = tuple(one for one in map(decode, stored.events) if isinstance(one, Event))
    except FileNotFoundError:
        return memory
    except (OSError, ValueError) as wrong:
        _log.warning("%s: %s: the checkpoint is ignored", path, getattr(wrong, "strerror", None) or wrong)
        return memory
    if stored.at > now + CLOCK_STEP:
        _log.warning("%s: its time is in the future: the clock was set back, so its times are not used", path)
    known = {key: until(history, now) for key, history in stored.histories if key[0] in codes() and history.findings}
    rebooted = None not in (stored.boot_id, memory.boot_id) and stored.boot_id != memory.boot_id
    histories = restarted(known, rebooted)
    boot_id = memory.boot_id or stored.boot_id
    return replace(
        memory,
        histories=histories,
        measured=measured,
        past=stored.past,
        rates=stored.rates,
        baseline=found_again(memory.baseline, stored.gpus),
        boot_id=boot_id,
        events=() if rebooted else events,
        gpus=stored.gpus,
        ignored={entry: min(at, now) for entry, at in stored.ignored.items()},
    )


def without_future_acceptance(memory: Memory, now: float) -> Memory:
    """The memory without an acceptance later than `now`: it would make each new log line a line of before."""
    wrong = memory.accepted is not None and memory.accepted > now + CLOCK_STEP
    return replace(memory, accepted=None) if wrong else memory


def with_acceptance(memory: Memory, accepted: acceptance.Acceptance) -> Memory:
    """The memory with this acceptance, whose counters and rates get the present numbers of the GPUs."""
    return replace(
        memory,
        baseline=found_again(accepted.baseline, memory.gpus),
        accepted=accepted.at,
        inventory=inventory_file.newest(memory.inventory, accepted),
        listed=frozenset(),
    )


def _parsed(content: bytes) -> _Checkpoint:
    """Raises ValueError with the reason."""
    try:
        stored = msgspec.json.decode(content, type=_Checkpoint)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise ValueError(f"damaged ({wrong})") from None
    return stored
