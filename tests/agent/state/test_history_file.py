"""The history in the state folder: what is written, what survives, and what is refused."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from linkgauge.agent.state.history_file import FILE, Writer
from linkgauge.agent.state.read_history import read_history
from linkgauge.models.facts.records import Flow
from linkgauge.models.facts.units import as_utc
from linkgauge.models.inventory.inventory import Inventory, Item
from linkgauge.models.report import Level, Report
from tests.support.nodes.described import node, report_of
from tests.support.nodes.small_nodes import observation

DAY = 86400.0
FLOW = Flow("copy", ("gpu0", "gpu1"), via="nvlink")


def add(writer: Writer, measured: tuple[Report, float, float], at: float) -> None:
    """Add a report with a measurement: its time and its rate."""
    report, then, rate = measured
    level = Level(op=FLOW.op, ends=FLOW.ends, via=FLOW.via, observed=rate, observed_at=as_utc(then))
    run = [replace(observation(FLOW, "rate", value), at=then) for value in (0.5 * rate, rate, rate + 1e9)]
    writer.add(replace(report, levels=(level,)), at, run)


def test_changes_and_rates_are_kept(tmp_path: Path) -> None:
    good, bad = report_of(node("hgx-h100")), report_of(node("hgx-h100", "[device.gpu1]\nwidth = 8\n"))
    writer = Writer(str(tmp_path))
    for hour, report in enumerate((good, good, bad, bad, good)):
        add(writer, (report, hour * 3600.0, 390e9 + hour), hour * 3600.0)
        add(writer, (report, hour * 3600.0, 390e9 + hour), hour * 3600.0 + 15)  # a cycle without a measurement
    writer.close()
    found = read_history(str(tmp_path), 0.0)
    assert [(one.at, one.verdict, [past.code for past in one.findings]) for one in found.states] == [
        (0.0, "ok", []),
        (7200.0, "failed", ["pcie-link-narrow"]),
        (14400.0, "ok", []),
    ]
    assert found.rates == {FLOW: tuple((hour * 3600.0, 390e9 + hour) for hour in range(5))}
    later = read_history(str(tmp_path), 10_000.0)  # the state that was in force at that time belongs to it
    assert [one.at for one in later.states] == [7200.0, 14400.0]


def test_a_restart_continues(tmp_path: Path) -> None:
    report = report_of(node("hgx-h100"))
    for start in (0.0, 100.0):
        writer = Writer(str(tmp_path))
        add(writer, (report, start, 1e9), start)
        add(writer, (report, start, 1e9), start)
        writer.close()
    found = read_history(str(tmp_path), 0.0)
    assert [one.at for one in found.states] == [0.0]
    assert [at for at, _ in found.rates[FLOW]] == [0.0, 100.0]


@pytest.mark.parametrize("content", [b"no database at all" * 500, "cut"])
def test_a_damaged_file_is_set_aside(tmp_path: Path, content: bytes | str) -> None:
    file, report = tmp_path / FILE, report_of(node("hgx-h100"))
    writer = Writer(str(tmp_path))
    for second in range(300):
        add(writer, (report, float(second), 1e9 + second), float(second))
    writer.close()
    whole = file.read_bytes()
    file.write_bytes(content if isinstance(content, bytes) else whole[:8192] + bytes(4096) + whole[12288:])
    writer = Writer(str(tmp_path))
    add(writer, (report, 400.0, 2e9), 400.0)
    writer.close()
    assert (tmp_path / f"{FILE}.damaged").exists()
    assert read_history(str(tmp_path), 0.0).rates == {FLOW: ((400.0, 2e9),)}


def test_old_rows_go(tmp_path: Path) -> None:
    report = report_of(node("hgx-h100"))
    writer = Writer(str(tmp_path))
    for day in (0, 300, 500):
        add(writer, (report, day * DAY, 1e9 + day), day * DAY)
    writer.close()
    assert [at for at, _ in read_history(str(tmp_path), 0.0).rates[FLOW]] == [300 * DAY, 500 * DAY]


def test_only_the_service_and_its_group_read_it(tmp_path: Path) -> None:
    writer = Writer(str(tmp_path))
    add(writer, (report_of(node("hgx-h100")), 0.0, 1e9), 0.0)
    assert {name: oct((tmp_path / name).stat().st_mode & 0o777) for name in os.listdir(tmp_path)} == {
        FILE: "0o640",
        f"{FILE}-wal": "0o640",
        f"{FILE}-shm": "0o640",
    }
    writer.close()


def test_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"")
    (tmp_path / FILE).symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="symbolic links"):
        Writer(str(tmp_path))
    with pytest.raises(OSError, match="symbolic links"):
        read_history(str(tmp_path), 0.0)


def test_a_pipe_does_not_block(tmp_path: Path) -> None:
    """The service's user can make one in its folder. `linkgauge history` of root waited for ever for a writer."""
    os.mkfifo(tmp_path / FILE)
    refusals: list[str] = []
    reader = threading.Thread(target=lambda: refusals.append(refusal_of(tmp_path)), daemon=True)
    reader.start()
    reader.join(5)
    assert refusals == [f"{tmp_path / FILE}: not a plain file"]


def refusal_of(folder: Path) -> str:
    with pytest.raises(ValueError, match="not a plain file") as refused:
        read_history(str(folder), 0.0)
    return str(refused.value)


def prepared(folder: Path, *statements: str) -> str:
    """The error of a reader, for a file that another program prepared."""
    Writer(str(folder)).close()
    with closing(sqlite3.connect(folder / FILE)) as file:
        file.executescript(";".join(statements))
    with pytest.raises(ValueError, match=FILE) as refused:
        read_history(str(folder), 0.0)
    return str(refused.value).removeprefix(f"{folder / FILE}: ")


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT 0.0, 'x', i + 0.0 FROM n"


@pytest.mark.parametrize(
    "statements",
    [
        ("DROP TABLE rate", f"CREATE VIEW rate (at, flow, rate) AS {ENDLESS}"),
        ("CREATE TRIGGER t AFTER INSERT ON rate BEGIN DELETE FROM state; END",),
        ("ALTER TABLE rate ADD COLUMN more AS (length(hex(zeroblob(at))))",),
        ("DROP TABLE rate",),
    ],
)
def test_a_prepared_schema_is_refused(tmp_path: Path, statements: tuple[str, ...]) -> None:
    assert prepared(tmp_path, *statements).startswith("not the tables of the service: move the file away")


def test_a_long_query_ends(tmp_path: Path) -> None:
    writer, report = Writer(str(tmp_path)), report_of(node("hgx-h100"))
    for second in range(300):
        add(writer, (report, float(second), 1e9 + second), float(second))
    writer.close()
    with pytest.raises(ValueError, match="no answer within 0 s"):
        read_history(str(tmp_path), 0.0, limit=0.0)


def test_the_hardware_is_kept_when_it_changes(tmp_path: Path) -> None:
    first = Inventory(taken_at=10.0, devices=(Item(kind="gpu", key="0000:18:00.0", firmware="96.00"),))
    again, updated = (
        replace(first, taken_at=20.0),
        replace(first, taken_at=30.0, devices=(replace(first.devices[0], firmware="96.01"),)),
    )
    for inventory in (first, again, updated):  # with a restart between them
        writer = Writer(str(tmp_path))
        writer.add_inventory(inventory)
        writer.close()
    assert read_history(str(tmp_path), 0.0).inventories == (first, updated)
    assert read_history(str(tmp_path), 40.0).inventories == (updated,)


def test_a_full_disk_is_an_error_and_loses_nothing(tmp_path: Path) -> None:
    report = report_of(node("hgx-h100"))
    writer = Writer(str(tmp_path))
    add(writer, (report, 0.0, 1e9), 0.0)
    writer._file.execute("PRAGMA max_page_count = 1")  # as ENOSPC: SQLITE_FULL
    with pytest.raises(sqlite3.OperationalError, match="full"):
        fill(writer, report)
    writer.close()
    again = Writer(str(tmp_path))
    add(again, (report, 5000.0, 3e9), 5000.0)
    again.close()
    kept = read_history(str(tmp_path), 0.0).rates[FLOW]
    assert (kept[0], kept[-1]) == ((0.0, 1e9), (5000.0, 3e9))
    assert not (tmp_path / f"{FILE}.damaged").exists()


def fill(writer: Writer, report: Report) -> None:
    for second in range(1, 2000):
        add(writer, (report, float(second), 1e9), float(second))


def test_kill_9_a_hundred_times(tmp_path: Path) -> None:
    """Each rate that was written is there; that of the kill may be missing."""
    for attempt in range(100):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            write_until_killed(str(tmp_path), attempt * 1000.0, writing)
        os.close(writing)
        written = b""
        while len(written) < 1 + attempt % 7:
            written += os.read(reading, 1)
        time.sleep(attempt % 5 / 1000)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        while more := os.read(reading, 4096):
            written += more
        os.close(reading)
        times = {at for at, _ in read_history(str(tmp_path), attempt * 1000.0).rates[FLOW]}
        assert {attempt * 1000.0 + number for number in range(len(written))} <= times
    assert not (tmp_path / f"{FILE}.damaged").exists()


def write_until_killed(folder: str, start: float, done: int) -> None:
    """One byte for each rate that is written."""
    report = Report(node="n", taken_at=None, source="live", context="host", profile=None, verdict="ok")
    writer = Writer(folder)
    for number in range(900):
        add(writer, (report, start + number, 1e9), start + number)
        os.write(done, b".")
    signal.pause()
