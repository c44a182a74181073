"""Read the history file. Another user may have prepared it: the service's user owns the folder, and root reads here."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import quote

import msgspec

from ...models.facts.records import Flow
from ...models.history.past import History, Past, State
from ...models.inventory.inventory import Inventory
from ...models.report import Verdict
from .history_file import FILE, MOST_BYTES, SCHEMA

LIMIT = 10.0  # seconds for all queries of one reading
_STEPS = 1000  # of SQLite's virtual machine between two looks at the clock, about a tenth of a millisecond


def read_history(folder: str, since: float, limit: float = LIMIT) -> History:
    """What is recorded since that time, and the state before it. Raises OSError, or ValueError with a message.

    `limit`: seconds for the queries.
    """
    path = os.path.join(folder, FILE)
    with _reading(path, limit) as file:
        rows = _since(file, "state", "at, verdict, findings", since)
        rates = file.execute("SELECT flow, at, rate FROM rate WHERE at >= ? ORDER BY at", (since,)).fetchall()
        inventories = _since(file, "inventory", "content", since)
    try:
        states = tuple(State(at, _verdict(verdict), _findings(findings)) for at, verdict, findings in rows)
        items = tuple(msgspec.json.decode(content, type=Inventory) for (content,) in inventories)
        return History(states, _series(rates), items)
    except (msgspec.DecodeError, TypeError) as wrong:
        raise ValueError(f"{path}: damaged, or of another version ({wrong})") from None


def _since(file: sqlite3.Connection, table: str, columns: str, since: float) -> list[tuple[Any, ...]]:
    """The rows since that time, and the row that was in force at it."""
    first = f"coalesce((SELECT max(at) FROM {table} WHERE at <= ?), ?)"
    return file.execute(f"SELECT {columns} FROM {table} WHERE at >= {first} ORDER BY at", (since, since)).fetchall()


def _series(rates: Iterable[tuple[str, float, float]]) -> dict[Flow, tuple[tuple[float, float], ...]]:
    series: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for flow, at, rate in rates:
        series[flow].append((float(at), float(rate)))
    return {msgspec.json.decode(flow, type=Flow): tuple(several) for flow, several in series.items()}


@contextmanager
def _reading(path: str, limit: float) -> Iterator[sqlite3.Connection]:
    """The file for reading: plain files of the service's size, with its tables alone, within `limit` seconds."""
    _check_file(path)
    for beside in (f"{path}-wal", f"{path}-shm"):
        if os.path.lexists(beside):
            _check_file(beside)
    end = time.monotonic() + limit
    try:
        with closing(sqlite3.connect(f"file:{quote(os.path.abspath(path))}?mode=ro", timeout=5.0, uri=True)) as file:
            file.set_progress_handler(lambda: time.monotonic() >= end, _STEPS)
            file.execute("PRAGMA trusted_schema = OFF")
            file.execute("PRAGMA query_only = ON")
            _check_schema(file)
            yield file
    except sqlite3.OperationalError as wrong:
        slow = str(wrong) == "interrupted"
        raise ValueError(f"{path}: {f'no answer within {limit:g} s' if slow else wrong}") from None
    except sqlite3.Error as wrong:
        raise ValueError(f"{path}: {wrong}. 'systemctl restart linkgauge' sets a damaged file aside") from None


def _check_file(path: str) -> None:
    """Refuse links, pipes, and files that the service does not write."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    status = os.fstat(descriptor)
    os.close(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{path}: not a plain file")
    if status.st_size > 2 * MOST_BYTES:
        raise ValueError(f"{path}: larger than any file of the service")


def _check_schema(file: sqlite3.Connection) -> None:
    """Refuse other tables. Views, generated columns and virtual tables run code when they are read."""
    found = {sql for (sql,) in file.execute("SELECT sql FROM sqlite_schema")}
    if found != set(SCHEMA):
        raise sqlite3.DatabaseError("not the tables of the service: move the file away")


def _verdict(text: str) -> Verdict:
    verdict: Verdict = msgspec.convert(text, Verdict)
    return verdict


def _findings(text: str) -> tuple[Past, ...]:
    return msgspec.json.decode(text, type=tuple[Past, ...])
