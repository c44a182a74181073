"""Xids in the kernel's ring buffer, in every form that drivers print them, and any rubbish between."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import write

from linkgauge.models.facts import Event
from linkgauge.models.said import Evidence, NotChecked, Said
from linkgauge.models.said_lines import decode, encode
from linkgauge.probes.kernel_log import KMSG, STAT, read_kernel_log
from linkgauge.probes.live import Live

BOOT = "cpu  1 2 3\nctxt 5\nbtime 1795230000\nprocesses 7"
OFF_THE_BUS = "pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


def said(root: Path | str, log: str, stat: str = BOOT) -> list[Said]:
    write(Path(root), {KMSG: log, STAT: stat})
    return list(read_kernel_log(Live(str(root))))


def event(code: int, address: str, sequence: int, at: float, text: str) -> Event:
    return Event(
        key=f"xid {code} {address} {sequence}", kind="xid", code=code, subject=address, text=text, at=at,
        cites={"text": Evidence(KMSG, text)},
    )  # fmt: skip


def test_each_xid_is_an_event_at_its_time(tmp_path: Path) -> None:
    xid = f"NVRM: Xid (PCI:0000:53:00): 79, {OFF_THE_BUS}"
    again = "NVRM: Xid (PCI:0000:9b:00): 119, pid=2024380, name=nvidia-smi, Timeout after 6s of waiting"
    log = (
        "6,1,0,-;Linux version 6.8.0\n"
        f"3,1234,5140900,-;{xid}\n SUBSYSTEM=pci\n DEVICE=+pci:0000:53:00.0\n"
        "6,1235,6000000,c;NVRM: GPU at PCI:0000:9b:00: GPU-1\n"
        f"4,1236,7000000000,-,caller=T1;{again}"
    )
    assert said(tmp_path, log) == [
        event(79, "0000:53:00.0", 1234, 1795230005.1409, xid),
        event(119, "0000:9b:00.0", 1236, 1795237000.0, again),
    ]


@pytest.mark.parametrize(
    ("printed", "address"),
    [
        ("PCI:0000:53:00", "0000:53:00.0"),
        ("PCI:53:00", "0000:53:00.0"),
        ("0000:53:00", "0000:53:00.0"),
        ("PCI:0009:01:00", "0009:01:00.0"),
        ("PCI:00010000:01:00", "00010000:01:00.0"),
        ("PCI:0000:53:00.0", "0000:53:00.0"),
        ("PCI:0000:01:00 GPU-I:05", "0000:01:00.0"),
        ("PCI:0000:3b:00 GPU-I:01 GPU-CI:02", "0000:3b:00.0"),
    ],
)
def test_forms_of_the_address(tmp_path: Path, printed: str, address: str) -> None:
    text = f"NVRM: Xid ({printed}): 94, pid=7194, Contained: CE User Channel (0x9)."
    assert said(tmp_path, f"3,7,1000000,-;{text}") == [event(94, address, 7, 1795230001.0, text)]


@pytest.mark.parametrize(
    "line",
    [
        "3,7,1,-;NVRM: Xid (PCI:0000:53:00): abc, pid=1",
        "3,7,1,-;NVRM: Xid (PCI:0000:53:00): 12345, no such code",
        "3,7,1,-;NVRM: Xid (PCI:0000:53): 79, half an address",
        "3,7,1,-;NVRM: Xid (GPU): 79",
        "NVRM: Xid (PCI:0000:53:00): 79, no record",
        "3,7,-1,-;NVRM: Xid (PCI:0000:53:00): 79, before boot",
        f"3,7,{'9' * 5000},-;NVRM: Xid (PCI:0000:53:00): 79, after the end of time",
        "3,٧,1,-;NVRM: Xid (PCI:0000:53:00): 79, digits of others",
        "",
    ],
)
def test_what_is_no_xid(tmp_path: Path, line: str) -> None:
    assert said(tmp_path, line) == []


@pytest.mark.parametrize("stat", ["", "btime", "btime x", "btime -5", "xbtime 17"])
def test_without_the_time_of_boot_events_count_from_it(tmp_path: Path, stat: str) -> None:
    text = f"NVRM: Xid (PCI:0000:53:00): 79, {OFF_THE_BUS}"
    expected = [event(79, "0000:53:00.0", 7, 2.5, text)]
    assert said(tmp_path, f"3,7,2500000,-;{text}", stat) == expected
    (tmp_path / STAT).unlink()
    assert list(read_kernel_log(Live(str(tmp_path)))) == expected
    (tmp_path / STAT).mkdir()
    assert list(read_kernel_log(Live(str(tmp_path)))) == expected


def test_a_log_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / KMSG).mkdir(parents=True)
    assert list(read_kernel_log(Live(str(tmp_path)))) == [
        NotChecked(
            what="Event", subject="node", why="dev/kmsg: Is a directory",
            how="run as root, or set kernel.dmesg_restrict to 0",
        )
    ]  # fmt: skip


def test_a_machine_without_a_log(tmp_path: Path) -> None:
    assert list(read_kernel_log(Live(str(tmp_path)))) == []


pieces = st.text(max_size=20) | st.sampled_from(
    ["3,", "7,", "1000000,", "-;", "NVRM: Xid (", "PCI:", "0000:53:00", "): ", "79", ", pid=1", "\n", "٣", "9" * 30]
)


@given(st.lists(pieces, max_size=20).map("".join), st.text(max_size=20) | st.just(BOOT))
def test_any_text(log: str, stat: str) -> None:
    with TemporaryDirectory() as root:
        for one in said(root, log, stat):
            assert isinstance(one, Event)
            assert decode(encode(one)) == one
