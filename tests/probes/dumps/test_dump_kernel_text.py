"""Logs of the kernel with every form of time, cut, shuffled, among other outputs, and of rubbish."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.gpu import Driver
from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import Event, Node
from linkgauge.models.facts.records import Evidence, Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps import recognise
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.host import kernel_text
from linkgauge.probes.dumps.host.log_times import head

SHARED = Path(__file__).parents[4] / "shared"
MOMENT = datetime(2026, 11, 2, 3, 4, 5, tzinfo=timezone.utc).timestamp()
IN_2000 = datetime(2000, 11, 2, 3, 4, 5, tzinfo=timezone.utc) - datetime(2000, 1, 1, tzinfo=timezone.utc)
XID = "NVRM: Xid (PCI:0000:53:00): 79, pid=77, name=python3, GPU has fallen off the bus."
LIMITED = (
    "pci 0000:41:00.0: 63.012 Gb/s available PCIe bandwidth, limited by 16.0 GT/s PCIe x4 link at 0000:40:01.0 "
    "(capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)"
)


def said(text: str) -> list[Record]:
    return list(kernel_text.read(Part("log", 1, text, 0.0)))


def xid(line: int, whole: str, **fields: object) -> Event:
    event = Event(
        key="xid 79 0000:53:00.0",
        kind="xid",
        code=79,
        subject="0000:53:00.0",
        text=XID,
        count=1,
        cites={"text": Evidence(f"log:{line}", whole)},
    )
    return replace(event, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "clock", "at"),
    [
        ("[74889.644138] ", "boot", 74889.644138),
        ("[    5.000001] ", "boot", 5.000001),
        ("<4>[    5.000001] ", "boot", 5.000001),
        ("kern  :err   : [    5.000001] ", "boot", 5.000001),
        ("[    5.000001] [  T123] ", "boot", 5.000001),
        ("[    5.000001][ C12] ", "boot", 5.000001),
        ("[    5.000001 <    0.000004>] ", "boot", 5.000001),
        ("[    5.000001] node7 kernel: ", "boot", 5.000001),
        ("3,1234,5000001,-;", "boot", 5.000001),
        ("4,1236,7000000,c,caller=T1;", "boot", 7.0),
        ("[Mon Nov  2 03:04:05 2026] ", "dated", MOMENT),
        ("Mon 2026-11-02 03:04:05 CET node7 kernel: ", "dated", MOMENT),
        ("2026-11-02 03:04:05 node7 kernel: ", "dated", MOMENT),
        ("Mon 2026-11-02 03:04:05 UTC node7 kernel: ", "zoned", MOMENT),
        ("2026-11-02T03:04:05,250000+00:00 ", "zoned", MOMENT + 0.25),
        ("2026-11-02T04:34:05+0130 node7 kernel: ", "zoned", MOMENT),
        ("2026-11-02T03:04:05.5Z node7 kernel: [   12.345678] ", "zoned", MOMENT + 0.5),
        ("2026-11-01T22:04:05.123456-05:00 node7 kernel: ", "zoned", MOMENT + 0.123456),
        ("Nov  2 03:04:05 node7 kernel: ", "yearless", IN_2000.total_seconds()),
        ("Nov  2 03:04:05 node7 kernel: [   12.345678] ", "yearless", IN_2000.total_seconds()),
        ("Nov 02 03:04:05.123456 node7.site.org kernel: ", "yearless", IN_2000.total_seconds()),
        ("[Mon Nov  2 03:04:05 2026 <    0.000004>] ", "dated", MOMENT),
        ("2026-11-02 03:04:05 kernel: ", "dated", MOMENT),
        ("<4>1 2026-11-02T03:04:05.5Z node7 kernel - - - ", "zoned", MOMENT + 0.5),
        ('1 2026-11-02T03:04:05Z node7 kernel 1 - [meta sequenceId="1"] [   12.345678] ', "zoned", MOMENT),
        (f"{MOMENT:.6f} node7 kernel: ", "zoned", MOMENT),
        ("Nov  2 03:04:05 node7 kern.warn kernel: ", "yearless", IN_2000.total_seconds()),
        ("Nov  2 03:04:05 node7 vmunix: ", "yearless", IN_2000.total_seconds()),
        ("Nov  2 03:04:05 kernel: ", "yearless", IN_2000.total_seconds()),
        ("[<    0.000004>] ", "untimed", None),
        ("[  +0.000004] ", "untimed", None),
        ("[Nov 2 03:04] ", "untimed", None),
        ("[Nov21 03:04] ", "untimed", None),
        ("[Sat Feb 31 03:04:05 2026] ", "untimed", None),
        ("0000-00-00T00:00:00+0000 node7 kernel: ", "untimed", None),
        ("kernel: ", "untimed", None),
        ("    ", "untimed", None),
        ("", "untimed", None),
    ],
)
def test_forms_of_time(before: str, clock: str, at: float | None) -> None:
    text = f"{before}{XID}"
    assert recognise(text)
    assert head(text)[::2] == (clock, XID) or before == "kernel: "
    assert head(text)[1] == (at if at is None else pytest.approx(at, abs=1e-6))
    shown = None if at is None else at if clock in ("boot", "zoned") else 0.0
    (event,) = said(text)
    assert isinstance(event, Event)
    assert event == xid(
        1, text.strip(), at=event.at, first=event.at, until=event.at, recent=None if at is None else 1, text=event.text
    )
    assert event.at == (shown if shown is None else pytest.approx(shown, abs=1e-6))


LOG = f"""\
[    0.000000] Linux version 6.8.0-45-generic (x@y) (gcc 13) #45-Ubuntu SMP
[    9.100000] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (dvs-builder@x)
[   10.735323] {LIMITED}
[  100.000000] {XID}
[  101.000000] CPU: 1 PID: 2 Comm: python3
[  200.000000] {XID}
[ 9000.000000] {XID}
[ 9001.500000] usb 1-1: new device"""
LINES = LOG.splitlines()
KERNEL = Node(key="node", kernel="6.8.0-45-generic", cites={"kernel": Evidence("log:1", LINES[0])})
DRIVER = Driver(key="nvidia", version="570.86.15", cites={"version": Evidence("log:2", LINES[1])})


def test_a_log() -> None:
    loaded = Event(
        key="driver loaded nvidia",
        kind="driver loaded",
        subject="nvidia",
        text=LINES[1][15:],
        at=9.1,
        first=9.1,
        count=1,
        recent=1,
        until=9001.5,
        cites={"text": Evidence("log:2", LINES[1])},
    )
    narrow = Event(
        key="pcie limited 0000:41:00.0 0000:40:01.0",
        kind="pcie limited",
        subject="0000:41:00.0",
        text=LIMITED,
        at=10.735323,
        first=10.735323,
        count=1,
        recent=1,
        until=9001.5,
        port="0000:40:01.0",
        rate=7.8765e9,
        able=31.506e9,
        cites={"text": Evidence("log:3", LINES[2])},
    )
    fallen = xid(7, LINES[6], at=9000.0, first=100.0, count=3, recent=1, until=9001.5)
    assert said(LOG) == [KERNEL, DRIVER, loaded, narrow, fallen]


def test_a_log_that_was_cut() -> None:
    whole = {one.key for one in said(LOG) if isinstance(one, Event | Node | Driver)}
    for end in (0, *(found.end() for found in re.finditer("\n|$", LOG))):
        for one in said(LOG[:end]):
            assert isinstance(one, Event | Node | Driver)
            assert one.key in whole
    for end in range(len(LOG)):
        assert all(one.text in LOG for one in said(LOG[:end]) if isinstance(one, Event) and one.text)


@given(st.permutations(LINES[1:]))
def test_lines_in_any_order(lines: list[str]) -> None:
    told = {one.key: one for one in said("\n".join(lines)) if isinstance(one, Event)}
    assert {key: (one.at, one.first, one.count, one.recent) for key, one in told.items()} == {
        "driver loaded nvidia": (9.1, 9.1, 1, 1),
        "pcie limited 0000:41:00.0 0000:40:01.0": (10.735323, 10.735323, 1, 1),
        "xid 79 0000:53:00.0": (9000.0, 100.0, 3, 1),
    }


def test_only_the_last_boot_counts() -> None:
    """As in the live log: seconds since boot of two boots cannot be compared."""
    again = f"[    0.000000] Linux version 6.8.0-46-generic (x)\n[    4.000000] {XID}\n[    6.000000] x"
    _, _, *events = said(f"{LOG}\n{again}")
    assert events == [xid(10, again.splitlines()[1], at=4.0, first=4.0, recent=1, until=6.0)]


def test_a_year_that_nobody_wrote() -> None:
    """Moments lie within half a year of the end: those of December are before those of January."""
    lines = [f"Dec 31 23:59:50 node7 kernel: {XID}", f"Jan  1 00:00:10 node7 kernel: {XID}"]
    assert said("\n".join(lines)) == [xid(2, lines[1], at=20.0, first=0.0, count=2, recent=2, until=20.0)]
    newest_first = xid(1, lines[1], at=20.0, first=0.0, count=2, recent=2, until=20.0)
    assert said("\n".join(reversed(lines))) == [newest_first]


def test_two_clocks_in_one_text() -> None:
    """Two logs, one behind the other: no time of one is compared with one of the other."""
    lines = [f"[ 5000.000000] {XID}", f"Nov  2 03:04:05 node7 kernel: {XID}", "Nov  2 04:04:05 node7 kernel: usb"]
    assert said("\n".join(lines)) == [
        xid(1, lines[0], at=5000.0, first=5000.0, recent=1, until=5000.0),
        xid(2, lines[1], at=0.0, first=0.0, recent=1, until=3600.0),
    ]


@pytest.mark.parametrize(
    ("last", "severity"),
    [("Nov  2 23:04:05", "critical"), ("Nov  3 03:04:04", "critical"), ("Nov  3 03:04:06", "info")],
)
def test_a_day_before_the_log_ends_is_history(last: str, severity: str) -> None:
    """Whenever it is read."""
    text = f"Nov  2 03:04:05 node7 kernel: {XID.replace('79', '119')}\n{last} node7 kernel: usb"
    for now in (0.0, 1e9, 2e9):
        report = evaluate(assemble(said(text), Site(), now, origin="dumps"))
        assert [(one.code, one.severity) for one in report.findings] == [("gpu-xid", severity)]


def test_a_driver_that_was_loaded_in_another_log_ends_nothing() -> None:
    loaded = "Nov  2 03:04:05 node7 kernel: NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun"
    broken = XID.replace("79", "119")
    for text, severity in (
        (f"[   50.000000] {broken}\n{loaded}", "critical"),
        (
            f"{loaded[:4]} 1{loaded[6:].replace('loading NVIDIA UNIX x86_64 Kernel', 'x')}\n"
            f"Nov  2 03:03:05 node7 kernel: {broken}\n{loaded}",
            "info",
        ),
    ):
        report = evaluate(assemble(said(text), Site(), 0.0, origin="dumps"))
        assert [(one.code, one.severity) for one in report.findings] == [("gpu-xid", severity)]


@pytest.mark.parametrize(
    "line",
    [
        "node7:77:88 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>",
        "[2026-11-02 03:04:05] node7:77:88 [0] NCCL WARN Cuda failure",
        "[1614000000.123456] [node7:77:0]  parser.c:1 UCX  WARN unused variable",
        "[    12.345] (II) Loading extension GLX",
        "2026-11-02 03:04:05,123 INFO started",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03",
        "Nov  2 03:04:05 node7 systemd[1]: Started it",
        "[Nov 02 2026 03:04:05] [INFO] [tid 1] Fabric Manager",
        "53:00.0 3D controller: NVIDIA Corporation GH100",
        "GPU 0: NVIDIA H100 80GB HBM3",
        "mlx5_0 port 1 ==> eth0 (Up)",
        "",
    ],
)
def test_what_is_no_log(line: str) -> None:
    assert not re.search(kernel_text.BEGIN, line, re.MULTILINE)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded outputs of ../shared are not here")
def test_outputs_of_other_tools_hold_no_log() -> None:
    files = [path for path in SHARED.glob("data/outputs/**/*") if path.is_file() and path.suffix not in (".gz", ".tsv")]
    found = {
        path.parent.name
        for path in files
        if re.search(kernel_text.BEGIN, path.read_text(errors="replace"), re.MULTILINE)
    }
    assert found == {"kmsg"}


pieces = st.sampled_from(
    [
        *LINES,
        "\n",
        "[",
        "[    5.000001] ",
        "Nov  2 03:04:05 a kernel: ",
        "3,1,5,-;",
        "[Mon Nov  2 03:04:05 2026] ",
        "2026-11-02T03:04:05+9999 a kernel: ",
        "9999-12-31T23:59:59-2359 a kernel: ",
        XID,
        LIMITED,
        "Linux version 1 ",
    ]
)


@given(st.lists(pieces | st.text(max_size=8), max_size=20).map("".join) | st.text())
def test_any_text(text: str) -> None:
    for one in said(text):
        assert isinstance(one, Event | Node | Driver)
        assert decode(encode(one)) == one
        if isinstance(one, Event) and one.at is not None:
            assert one.first is not None
            assert one.until is not None
            assert one.first <= one.at <= one.until
