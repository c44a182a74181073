"""The history of a node in the state folder: its reports and measured rates, in SQLite.

The service writes a row when the verdict or the findings change, and one for each new rate. A kill or a loss of power
loses at most the last rows. A damaged file is set aside, and a new one begins.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress

import msgspec

from ...models.facts.records import Flow
from ...models.facts.units import from_utc
from ...models.history.past import History, Past, State, past
from ...models.report import Report, Verdict
from .state_file import opened_folder

FILE = "history.sqlite3"
_ASIDE = f"{FILE}.damaged"
_VERSION = 1  # PRAGMA user_version
_TABLES = """
CREATE TABLE IF NOT EXISTS state (at REAL NOT NULL, verdict TEXT NOT NULL, findings TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS rate (at REAL NOT NULL, flow TEXT NOT NULL, rate REAL NOT NULL);
CREATE INDEX IF NOT EXISTS state_at ON state (at);
CREATE INDEX IF NOT EXISTS rate_at ON rate (at);
"""
_OLDEST = 400 * 86400.0  # seconds: a year can be compared with the year before
_MOST_PAGES = 16384  # of 4 KiB: 64 MiB; eight GPUs that are measured each hour write 40 MiB in a year
_DAY = 86400.0


class Writer:
    """The history of a service that runs. Each method raises sqlite3.Error or OSError if the file cannot be written."""

    def __init__(self, folder: str) -> None:
        self._file = _opened(folder)
        rows = self._file.execute("SELECT verdict, findings FROM state ORDER BY at DESC LIMIT 1").fetchone()
        self._last: tuple[str, str] | None = rows
        self._rated = self._file.execute("SELECT max(at) FROM rate").fetchone()[0] or -1.0
        self._pruned = 0.0

    def add(self, report: Report, at: float) -> None:
        """Add what changed since the last report."""
        findings = tuple(past(one) for one in report.findings if one.silenced is None)
        state = report.verdict, msgspec.json.encode(findings).decode()
        rates = [(seen, flow, rate) for seen, flow, rate in _rates(report) if seen > self._rated]
        if state == self._last and not rates:
            return
        with self._file:  # one transaction
            if state != self._last:
                self._file.execute("INSERT INTO state VALUES (?, ?, ?)", (at, *state))
            self._file.executemany("INSERT INTO rate VALUES (?, ?, ?)", rates)
            if abs(at - self._pruned) > _DAY:
                self._prune(at)
        self._last, self._rated = state, max([self._rated, *(seen for seen, _, _ in rates)])

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _prune(self, now: float) -> None:
        """Delete old rows, and the oldest rates of a file that grows too large."""
        for table in ("state", "rate"):
            self._file.execute(f"DELETE FROM {table} WHERE at < ?", (now - _OLDEST,))
        (pages,), (free,) = (self._file.execute(f"PRAGMA {one}").fetchone() for one in ("page_count", "freelist_count"))
        if pages - free > 0.9 * _MOST_PAGES:
            oldest = "SELECT rowid FROM rate ORDER BY at LIMIT (SELECT count(*) / 4 FROM rate)"
            self._file.execute(f"DELETE FROM rate WHERE rowid IN ({oldest})")
        self._pruned = now


def _rates(report: Report) -> Iterator[tuple[float, str, float]]:
    """Time, flow as JSON, and rate of each measured flow."""
    for level in report.levels:
        if level.observed is not None and level.observed_at is not None:
            yield from_utc(level.observed_at), msgspec.json.encode(level.flow).decode(), level.observed


def _opened(folder: str) -> sqlite3.Connection:
    """The file, new if there is none or if it is damaged."""
    path = os.path.join(folder, FILE)
    with opened_folder(folder, create=True) as above:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        os.close(os.open(FILE, flags, 0o640, dir_fd=above))
        try:
            return _ready(path)
        except sqlite3.DatabaseError as damaged:
            if isinstance(damaged, sqlite3.OperationalError):  # a full disk, no permission: the content may be good
                raise
            os.replace(FILE, _ASIDE, src_dir_fd=above, dst_dir_fd=above)
            for name in (f"{FILE}-wal", f"{FILE}-shm"):
                with suppress(OSError):
                    os.unlink(name, dir_fd=above)
    return _ready(path)


def _ready(path: str) -> sqlite3.Connection:
    file = sqlite3.connect(path, timeout=5.0, check_same_thread=False)
    try:
        file.execute("PRAGMA journal_mode = WAL")
        file.execute("PRAGMA synchronous = NORMAL")
        file.execute(f"PRAGMA max_page_count = {_MOST_PAGES}")
        found = file.execute("PRAGMA quick_check(1)").fetchone()[0]
        version = file.execute("PRAGMA user_version").fetchone()[0]
        if found != "ok" or version not in (0, _VERSION):
            raise sqlite3.DatabaseError(found if found != "ok" else f"version {version}")
        file.executescript(_TABLES)
        file.execute(f"PRAGMA user_version = {_VERSION}")
    except BaseException:
        file.close()
        raise
    return file


def read_history(folder: str, since: float) -> History:
    """What is recorded since that time, and the state before it. Raises OSError, or ValueError with a message."""
    path = os.path.join(folder, FILE)
    with _reading(path) as file:
        rows = file.execute(
            "SELECT at, verdict, findings FROM state WHERE at >= coalesce((SELECT max(at) FROM state WHERE at <= ?), ?)"
            " ORDER BY at",
            (since, since),
        ).fetchall()
        rates = file.execute("SELECT flow, at, rate FROM rate WHERE at >= ? ORDER BY at", (since,)).fetchall()
    series: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for flow, at, rate in rates:
        series[flow].append((at, rate))
    try:
        states = tuple(State(at, _verdict(verdict), _findings(findings)) for at, verdict, findings in rows)
        flows: Mapping[Flow, tuple[tuple[float, float], ...]] = {
            msgspec.json.decode(flow, type=Flow): tuple(several) for flow, several in series.items()
        }
    except msgspec.DecodeError as wrong:
        raise ValueError(f"{path}: damaged, or of another version ({wrong})") from None
    return History(states, flows)


@contextmanager
def _reading(path: str) -> Iterator[sqlite3.Connection]:
    """The file for reading. Links and pipes are refused: the service's user owns the folder, and root may read here."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    plain = stat.S_ISREG(os.fstat(descriptor).st_mode)
    os.close(descriptor)
    if not plain:
        raise ValueError(f"{path}: not a plain file")
    try:
        with closing(sqlite3.connect(f"file:{_escaped(path)}?mode=ro", timeout=5.0, uri=True)) as file:
            yield file
    except sqlite3.Error as wrong:
        raise ValueError(f"{path}: {wrong}") from None


def _escaped(path: str) -> str:
    from urllib.parse import quote

    return quote(os.path.abspath(path))


def _verdict(text: str) -> Verdict:
    verdict: Verdict = msgspec.convert(text, Verdict)
    return verdict


def _findings(text: str) -> tuple[Past, ...]:
    return msgspec.json.decode(text, type=tuple[Past, ...])
