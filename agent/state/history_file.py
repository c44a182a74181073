"""The history of a node in the state folder: its reports, measured rates and inventories, in SQLite.

The service writes a row when the verdict, the findings or the hardware change, and one for each new rate. A kill or a
loss of power loses at most the last rows. A damaged file is set aside, and a new one begins.
"""

from __future__ import annotations

import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from statistics import median

import msgspec

from ...models.bandwidth.best_rates import RATES
from ...models.facts.records import Flow, Observation, Record
from ...models.history.past import past
from ...models.inventory.inventory import Inventory, equal
from ...models.report import Report
from .state_file import opened_folder

FILE = "history.sqlite3"
_ASIDE = f"{FILE}.damaged"
_VERSION = 1  # PRAGMA user_version
SCHEMA = (
    "CREATE TABLE state (at REAL NOT NULL, verdict TEXT NOT NULL, findings TEXT NOT NULL)",
    "CREATE TABLE rate (at REAL NOT NULL, flow TEXT NOT NULL, rate REAL NOT NULL)",
    "CREATE TABLE inventory (at REAL NOT NULL, content TEXT NOT NULL)",
    "CREATE INDEX state_at ON state (at)",
    "CREATE INDEX rate_at ON rate (at)",
)
_OLDEST = 400 * 86400.0  # seconds: a year can be compared with the year before
_MOST_PAGES = 16384  # of 4 KiB: 64 MiB; eight GPUs that are measured each hour write 40 MiB in a year
MOST_BYTES = _MOST_PAGES * 4096
_DAY = 86400.0


class Writer:
    """The history of a service that runs. Each method raises sqlite3.Error or OSError if the file cannot be written."""

    def __init__(self, folder: str) -> None:
        self._file = _opened(folder)
        rows = self._file.execute("SELECT verdict, findings FROM state ORDER BY at DESC LIMIT 1").fetchone()
        self._last: tuple[str, str] | None = rows
        self._rated = self._file.execute("SELECT max(at) FROM rate").fetchone()[0] or -1.0
        self._pruned = 0.0
        self._inventory: Inventory | None = None
        latest = self._file.execute("SELECT content FROM inventory ORDER BY at DESC LIMIT 1").fetchone()
        with suppress(msgspec.DecodeError):  # of another version
            self._inventory = msgspec.json.decode(latest[0], type=Inventory) if latest else None

    def add(self, report: Report, at: float, measured: Iterable[Record] = ()) -> None:
        """Add what changed since the last report. `measured`: the records of its measurements."""
        findings = tuple(past(one) for one in report.findings if one.silenced is None)
        state = report.verdict, msgspec.json.encode(findings).decode()
        rates = [(seen, flow, rate) for seen, flow, rate in _rates(report, measured) if seen > self._rated]
        if state == self._last and not rates:
            return
        with self._file:  # one transaction
            if state != self._last:
                self._file.execute("INSERT INTO state VALUES (?, ?, ?)", (at, *state))
            self._file.executemany("INSERT INTO rate VALUES (?, ?, ?)", rates)
            if abs(at - self._pruned) > _DAY:
                self._prune(at)
        self._last, self._rated = state, max([self._rated, *(seen for seen, _, _ in rates)])

    def add_inventory(self, inventory: Inventory) -> None:
        """Add an inventory if the hardware differs from that of the last one."""
        if self._inventory is inventory or (self._inventory and equal(self._inventory, inventory)):
            return
        row = inventory.taken_at, msgspec.json.encode(inventory).decode()
        with self._file:
            self._file.execute("INSERT INTO inventory VALUES (?, ?)", row)
        self._inventory = inventory

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _prune(self, now: float) -> None:
        """Delete old rows, and the oldest rates of a file that grows too large."""
        for table in ("state", "rate"):
            self._file.execute(f"DELETE FROM {table} WHERE at < ?", (now - _OLDEST,))
        kept = "SELECT at FROM inventory ORDER BY at DESC LIMIT 1"
        self._file.execute(f"DELETE FROM inventory WHERE at < ? AND at < ({kept})", (now - _OLDEST,))
        (pages,), (free,) = (self._file.execute(f"PRAGMA {one}").fetchone() for one in ("page_count", "freelist_count"))
        if pages - free > 0.9 * _MOST_PAGES:
            oldest = "SELECT rowid FROM rate ORDER BY at LIMIT (SELECT count(*) / 4 FROM rate)"
            self._file.execute(f"DELETE FROM rate WHERE rowid IN ({oldest})")
        self._pruned = now


def _rates(report: Report, measured: Iterable[Record]) -> Iterator[tuple[float, str, float]]:
    """Time, flow as JSON, and rate of each flow: the median of its measurements of one run.

    The rate that a report shows is smoothed over several runs, which would hide the scatter of single ones.
    """
    shown = {level.flow for level in report.levels if level.observed is not None}
    series: dict[Flow, list[Observation]] = defaultdict(list)
    for one in measured:
        if isinstance(one, Observation) and one.quantity in RATES and one.about in shown:
            series[one.about].append(one)
    for flow, several in series.items():
        at, rate = max(one.at for one in several), median(one.value for one in several)
        yield at, msgspec.json.encode(flow).decode(), rate


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
        for statement in SCHEMA:
            file.execute(statement.replace("TABLE", "TABLE IF NOT EXISTS").replace("INDEX", "INDEX IF NOT EXISTS"))
        file.execute(f"PRAGMA user_version = {_VERSION}")
    except BaseException:
        file.close()
        raise
    return file
