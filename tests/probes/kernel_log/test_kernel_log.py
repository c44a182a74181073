"""The kernel's ring buffer: every form of line that is read, equal ones as one, and any rubbish between."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import Event
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, NotChecked, Record
from linkgauge.probes.host.entries import Entry, UnreadableFile
from linkgauge.probes.host.live import Live
from linkgauge.probes.host.recorded import Recorded
from linkgauge.probes.kernel_log.patterns import event_of
from linkgauge.probes.kernel_log.ring_buffer import KMSG, STAT, read_kernel_log, relevant
from tests.support.nodes.trees import tree, write

BOOT = "cpu  1 2 3\nctxt 5\nbtime 1795230000\nprocesses 7"
OFF_THE_BUS = "pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


def said(root: Path | str, log: str, stat: str = BOOT) -> list[Record]:
    write(Path(root), {KMSG: log, STAT: stat})
    return list(read_kernel_log(Live(str(root))))


def event(code: int, address: str, at: float, text: str) -> Event:
    return Event(
        key=f"xid {code} {address}",
        kind="xid",
        code=code,
        subject=address,
        text=text,
        at=at,
        count=1,
        first=at,
        recent=1,
        bursts=1,
        cites={"text": Evidence(KMSG, text)},
    )


def test_each_xid_is_an_event_at_its_time(tmp_path: Path) -> None:
    xid = f"NVRM: Xid (PCI:0000:53:00): 79, {OFF_THE_BUS}"
    again = "NVRM: Xid (PCI:0000:9b:00): 119, pid=2024380, name=some-program-1, Timeout after 6s of waiting"
    log = (
        "6,1,0,-;Linux version 6.8.0\n"
        f"3,1234,5140900,-;{xid}\n SUBSYSTEM=pci\n DEVICE=+pci:0000:53:00.0\n"
        "6,1235,6000000,c;NVRM: GPU at PCI:0000:9b:00: GPU-1\n"
        f"4,1236,7000000000,-,caller=T1;{again}"
    )
    assert said(tmp_path, log) == [
        event(79, "0000:53:00.0", 1795230005.1409, xid),
        event(119, "0000:9b:00.0", 1795237000.0, again),
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
    assert said(tmp_path, f"3,7,1000000,-;{text}") == [event(94, address, 1795230001.0, text)]


@pytest.mark.parametrize(
    "line",
    [
        "3,7,1,-;NVRM: Xid (PCI:0000:53:00): abc, pid=1",
        "3,7,1,-;NVRM: Xid (PCI:0000:53:00): 12345, no such code",
        "3,7,1,-;NVRM: Xid (PCI:0000:53:00): 7O, pid=77, a damaged number",
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
    expected = [event(79, "0000:53:00.0", 2.5, text)]
    assert said(tmp_path, f"3,7,2500000,-;{text}", stat) == expected
    (tmp_path / STAT).unlink()
    assert list(read_kernel_log(Live(str(tmp_path)))) == expected
    (tmp_path / STAT).mkdir()
    assert list(read_kernel_log(Live(str(tmp_path)))) == expected


LINES: list[tuple[str, dict[str, object]]] = [
    (
        "NVRM: Xid (PCI:0019:01:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x02a001c6 0x00000000 0x0)",
        {
            "key": "xid 149 0019:01:00.0 link8 fatal",
            "kind": "xid",
            "code": 149,
            "subject": "0019:01:00.0",
            "fatal": True,
            "link": 8,
        },
    ),
    (
        "NVRM: Xid (PCI:0009:01:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x021425c6 0x00000000 0x0)",
        {
            "key": "xid 149 0009:01:00.0 link1 fatal",
            "kind": "xid",
            "code": 149,
            "subject": "0009:01:00.0",
            "link": 1,
            "fatal": True,
        },
    ),
    (
        "NVRM: Xid (PCI:0019:01:00): 145, pid=4, name=<unknown>, RLW_REMAP       Nonfatal XC1 i0 Link 12 (0x1 0x8)",
        {
            "key": "xid 145 0019:01:00.0 link12 mild",
            "kind": "xid",
            "code": 145,
            "subject": "0019:01:00.0",
            "link": 12,
            "fatal": False,
        },
    ),
    (
        "NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link -1 (0x0409a0c2 0x00000008 0x1)",
        {"key": "xid 145 0018:01:00.0 mild", "kind": "xid", "code": 145, "subject": "0018:01:00.0", "fatal": False},
    ),
    (
        "NVRM: Xid (PCI:0000:8a:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 6(0x1)",
        {"key": "xid 74 0000:8a:00.0 link6", "kind": "xid", "code": 74, "subject": "0000:8a:00.0", "link": 6},
    ),
    (
        "NVRM: Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
        {"key": "recovery 2 0000:01:00.0", "kind": "recovery", "code": 2, "subject": "0000:01:00.0"},
    ),
    (
        "NVRM: Xid (PCI:0000:01:00): 154, pid=7, name=some-program-1, "
        "GPU recovery action changed from 0x1 (PF FLR) to 0x0 (None)",
        {"key": "recovery 0 0000:01:00.0", "kind": "recovery", "code": 0, "subject": "0000:01:00.0"},
    ),
    (
        "nvidia-nvswitch2: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 33 egress non-posted PRIV error (First)",
        {
            "key": "sxid 12028 0000:c1:00.0 link33 mild",
            "kind": "sxid",
            "code": 12028,
            "subject": "0000:c1:00.0",
            "fatal": False,
            "link": 33,
        },
    ),
    (
        "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
        {
            "key": "sxid 20034 0000:c1:00.0 link30 fatal",
            "kind": "sxid",
            "code": 20034,
            "subject": "0000:c1:00.0",
            "fatal": True,
            "link": 30,
        },
    ),
    (
        "nvidia-nvswitch1: SXid (PCI:0000:c1:00.0): 10004, NVSWITCH Temperature 91C | TSENSE WARN Threshold 90C",
        {"key": "sxid 10004 0000:c1:00.0", "kind": "sxid", "code": 10004, "subject": "0000:c1:00.0"},
    ),
    (
        "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (some-word-1)",
        {"key": "driver loaded nvidia", "kind": "driver loaded", "subject": "nvidia"},
    ),
    (
        "vfio-pci 0000:3b:00.0: reset done",
        {"key": "reset 0000:3b:00.0", "kind": "reset", "subject": "0000:3b:00.0"},
    ),
    (
        "NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x26:0x56:1463)",
        {"key": "gpu init failed 0000:3b:00.0", "kind": "gpu init failed", "subject": "0000:3b:00.0"},
    ),
    (
        "nvidia 0000:3b:00.0: probe with driver nvidia failed with error -1",
        {"key": "gpu init failed 0000:3b:00.0", "kind": "gpu init failed", "subject": "0000:3b:00.0"},
    ),
    (
        "pcieport 0000:00:02.0: AER: Corrected error received: 0000:02:00.0",
        {"key": "aer received 0000:02:00.0", "kind": "aer received", "subject": "0000:02:00.0"},
    ),
    (
        "pcieport 0000:3f:01.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Transmitter ID)",
        {"key": "aer corrected 0000:3f:01.0", "kind": "aer corrected", "subject": "0000:3f:01.0"},
    ),
    (
        "nvme 0000:41:00.0: AER: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer, id=00e0",
        {"key": "aer 0000:41:00.0 mild", "kind": "aer", "subject": "0000:41:00.0", "fatal": False},
    ),
    (
        "pcieport 0000:3f:01.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction Layer, (Receiver ID)",
        {"key": "aer 0000:3f:01.0 fatal", "kind": "aer", "subject": "0000:3f:01.0", "fatal": True},
    ),
    (
        "pcieport 0000:3f:01.0:    [ 5] SDES                   (First)",
        {"key": "surprise down 0000:3f:01.0 fatal", "kind": "surprise down", "subject": "0000:3f:01.0", "fatal": True},
    ),
    (
        "pcieport 0000:3f:01.0: DPC: containment event, status:0x1f01 source:0x0000",
        {"key": "surprise down 0000:3f:01.0 fatal", "kind": "surprise down", "subject": "0000:3f:01.0", "fatal": True},
    ),
    (
        "pcieport 0000:3f:01.0: pciehp: Slot(12): Link Down",
        {"key": "surprise down 0000:3f:01.0", "kind": "surprise down", "subject": "0000:3f:01.0"},
    ),
    (
        "pciehp 0000:02:05.0:pcie24: slot(6): Link Down event",
        {"key": "surprise down 0000:02:05.0", "kind": "surprise down", "subject": "0000:02:05.0"},
    ),
    (
        "pci 0000:41:00.0: 126.016 Gb/s available PCIe bandwidth, limited by 16.0 GT/s PCIe x8 link at 0000:3f:01.0 "
        "(capable of 504.112 Gb/s with 32.0 GT/s PCIe x16 link)",
        {
            "key": "pcie limited 0000:41:00.0 0000:3f:01.0 15752000000",
            "kind": "pcie limited",
            "subject": "0000:41:00.0",
            "port": "0000:3f:01.0",
            "rate": 15.752e9,
            "able": 63.014e9,
        },
    ),
    (
        "mlx5_core 0000:17:00.0: print_health_info:420:(pid 0): Health issue observed, firmware internal error",
        {"key": "nic 0000:17:00.0", "kind": "nic", "subject": "0000:17:00.0"},
    ),
    (
        "mlx5_core 0000:17:00.0: poll_health:821:(pid 0): device's health compromised - reached miss count",
        {"key": "nic 0000:17:00.0", "kind": "nic", "subject": "0000:17:00.0"},
    ),
    (
        "mlx5_core 0000:17:00.0: Port module event[error]: module 1, Cable error, High Temperature",
        {"key": "module 0000:17:00.0 link1", "kind": "module", "subject": "0000:17:00.0", "link": 1},
    ),
    (
        "mlx5_core 0000:17:00.0 mlx5_0: Port: 1 Link DOWN",
        {
            "key": "link down 0000:17:00.0 mlx5_0 link1",
            "kind": "link down",
            "subject": "0000:17:00.0",
            "name": "mlx5_0",
            "link": 1,
        },
    ),
    (
        "igb 0000:14:00.0 eth0: igb: eth0 NIC Link is Down",
        {"key": "link down 0000:14:00.0 eth0", "kind": "link down", "subject": "0000:14:00.0", "name": "eth0"},
    ),
    (
        "nvme nvme3: I/O tag 258 (5a1c) opcode 0x2 (I/O Cmd) QID 4 timeout, aborting req_op:READ(0) size:131072",
        {"key": "nvme nvme3", "kind": "nvme", "subject": "nvme3"},
    ),
    (
        "nvme nvme3: Removing after probe failure status: -19",
        {"key": "nvme gone nvme3", "kind": "nvme gone", "subject": "nvme3"},
    ),
    (
        "sfc 0000:14:00.0 eth0: link down",
        {"key": "link down 0000:14:00.0 eth0", "kind": "link down", "subject": "0000:14:00.0", "name": "eth0"},
    ),
    (
        "mlx4_en: eth3: Link Down",
        {"key": "link down node eth3", "kind": "link down", "subject": "node", "name": "eth3"},
    ),
    (
        "[qede_link_update:2180(eth4)]Link is down",
        {"key": "link down node eth4", "kind": "link down", "subject": "node", "name": "eth4"},
    ),
    (
        "EXT4-fs (nvme0n1p2): Remounting filesystem read-only",
        {"key": "file system stopped nvme0n1p2", "kind": "file system stopped", "subject": "nvme0n1p2"},
    ),
    (
        "EDAC MC2: 3 CE read error on DIMM_A1 (channel:0 slot:0 page:0x1)",
        {"key": "edac mc2 DIMM_A1 mild", "kind": "edac", "subject": "mc2", "name": "DIMM_A1", "fatal": False}
        | {"count": 3, "recent": 3},
    ),
    (
        "Memory failure: 0x18d2e: recovery action for dirty LRU page: Recovered",
        {"key": "edac node fatal", "kind": "edac", "subject": "node", "fatal": True},
    ),
    (
        "mce: CPU3: Package temperature above threshold, cpu clock throttled (total events = 1)",
        {"key": "throttle cpu3", "kind": "throttle", "subject": "cpu3"},
    ),
]


@pytest.mark.parametrize(("text", "fields"), LINES)
def test_forms_of_lines(tmp_path: Path, text: str, fields: dict[str, object]) -> None:
    at = 1795230012.5
    rest: dict[str, object] = {"count": 1, "recent": 1, "bursts": 1, "first": at, "at": at, "text": text}
    expected = Event(cites={"text": Evidence(KMSG, text)}, **{**rest, **fields})  # type: ignore[arg-type]
    assert said(tmp_path, f"4,0,12500000,-;{text}") == [expected]
    assert relevant(f"6,0,1,-;Linux version 6.8.0\n4,1,12500000,-;{text}\n SUBSYSTEM=pci") == f"4,1,12500000,-;{text}"


@pytest.mark.parametrize(
    "text",
    [
        "nvidia-nvswitch3: SXid (PCI:0000:04:00.0): 22013, Data {0x0000002b, 0x0000002b, 0x00000000}",
        "nvidia-nvswitch3: SXid (PCI:0000:04:00.0): 22013, Severity 0 Engine instance 44 Sub-engine instance 00",
        "mlx5_core 0000:63:00.0: 504.112 Gb/s available PCIe bandwidth (32.0 GT/s PCIe x16 link)",
        "mlx5_core 0000:13:00.0: mlx5_pcie_event:297:(pid 11): PCIe slot power capability was not advertised.",
        "mlx5_core 0000:17:00.0: Port module event: module 0, Cable plugged",
        "mlx5_core 0000:17:00.0 mlx5_0: Port: 1 Link ACTIVE",
        "pcieport 0000:3f:01.0: pciehp: Slot(12): Link Up",
        "nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing",
        "nvme nvme0: 8/0/0 default/read/poll queues",
        "CPU3: Package temperature/speed normal",
    ],
)
def test_lines_that_say_nothing_of_their_own(tmp_path: Path, text: str) -> None:
    assert said(tmp_path, f"4,0,12500000,-;{text}") == []
    assert relevant(f"4,0,12500000,-;{text}") == ""


def test_a_record_of_several_lines(tmp_path: Path) -> None:
    (one,) = said(
        tmp_path, "3,0,1,-;NVRM: The NVIDIA GPU 0000:01:00.0\\x0aNVRM: (PCI ID: 10de:2330)\\x0aNVRM: installed"
    )
    assert isinstance(one, Event)
    assert (one.kind, one.subject) == ("gpu init failed", "0000:01:00.0")
    assert one.text == "NVRM: The NVIDIA GPU 0000:01:00.0 NVRM: (PCI ID: 10de:2330) NVRM: installed"


def test_a_storm_is_one_event(tmp_path: Path) -> None:
    """One every half second; two hours before, two others, of which one is of another link."""
    text = "pcieport 0000:3f:01.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID), no {}"
    storm = (f"4,{2 + n},{7200_000000 + n * 500_000},-;{text.format(n)}" for n in range(20000))
    log = "\n".join((f"4,0,1000000,-;{text}", f"4,1,1000000,-;{text.replace('3f', '4f')}", *storm))
    last, other = text.format(19999), text.replace("3f", "4f")
    assert said(tmp_path, log) == [
        Event(
            key="aer corrected 0000:3f:01.0",
            kind="aer corrected",
            subject="0000:3f:01.0",
            text=last,
            count=20001,
            first=1795230001.0,
            at=1795230000 + 7200 + 9999.5,
            recent=7201,
            bursts=2,
            cites={"text": Evidence(KMSG, last)},
        ),
        Event(
            key="aer corrected 0000:4f:01.0",
            kind="aer corrected",
            subject="0000:4f:01.0",
            text=other,
            count=1,
            first=1795230001.0,
            at=1795230001.0,
            recent=1,
            bursts=1,
            cites={"text": Evidence(KMSG, other)},
        ),
    ]


HOW = "run as root, add the user to the group systemd-journal or adm, or set kernel.dmesg_restrict to 0"


def test_a_log_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / KMSG).mkdir(parents=True)
    assert list(read_kernel_log(Live(str(tmp_path)))) == [
        NotChecked(
            what="Event",
            subject="node",
            how=HOW,
            reason=Reason.UNREADABLE,
            path="dev/kmsg",
            detail="Is a directory; journal: only files are read under --root",
        )
    ]


REFUSED: dict[str, Entry] = {KMSG: UnreadableFile(1, "Operation not permitted"), STAT: BOOT}


def test_the_journal_instead() -> None:
    told = event(79, "0000:53:00.0", 1795230001.0, "of the journal")
    assert list(read_kernel_log(tree(REFUSED, {("journal",): (encode(told),)}))) == [told]
    lost = NotChecked(
        what="Event", subject="node", reason=Reason.PERMISSION, detail="it shows this user no kernel lines"
    )
    assert list(read_kernel_log(tree(REFUSED, {("journal",): (encode(lost),)}))) == [
        replace(lost, path="dev/kmsg", detail=f"Operation not permitted; journal: {lost.why}", how=HOW)
    ]


WRAPPED = f"""\
6,5000,{3600_000000},-;eth0: link is up
3,5001,{3601_000000},-;NVRM: Xid (PCI:0000:53:00): 48, pid=1, an uncorrectable double bit error
3,5002,{3602_000000},-;NVRM: Xid (PCI:0000:53:00): 63, pid=1, Row Remapper: New row marked for remapping"""


def wrapped(journal: Iterable[Record] | None, taken: int = 1795235000) -> list[Record]:
    calls: dict[tuple[str, ...], tuple[str, ...]] = {}
    if journal is not None:
        calls["journal", "3600000000"] = tuple(map(encode, journal))
    host = tree({KMSG: WRAPPED, STAT: BOOT}, calls)
    both = [list(read_kernel_log(Recorded(taken, entries, calls))) for entries in (host.entries, cut(host))]
    assert both[0] == both[1]  # what a capture keeps of the buffer says the same
    return both[0]


def cut(host: Recorded) -> Mapping[str, Entry]:
    kept = relevant(WRAPPED)
    assert kept.splitlines()[0] == "6,5000,3600000000,-;"
    assert relevant(kept) == kept
    return {**host.entries, KMSG: kept}


def test_a_buffer_that_lost_its_beginning_is_completed() -> None:
    before = event(48, "0000:53:00.0", 1795230600.0, "NVRM: Xid ... 48")
    twice = [replace(before, count=2, at=1795230700.0, recent=2)]
    ecc, row = (line.partition(";")[2] for line in WRAPPED.splitlines()[1:])
    at = 1795233601.0
    late, remapped = event(48, "0000:53:00.0", at, ecc), event(63, "0000:53:00.0", at + 1, row)
    assert wrapped(twice) == [replace(late, count=3, first=1795230600.0, recent=3, bursts=2), remapped]
    long_ago = replace(before, first=1795220000.0, count=2)
    assert wrapped([long_ago]) == [replace(late, count=3, first=1795220000.0, bursts=2), remapped]
    assert wrapped([]) == [late, remapped]
    lost = NotChecked(what="Event", subject="node", reason=Reason.NOT_INSTALLED, detail="journalctl is not installed")
    why = "the kernel's buffer begins 1.0 hours after boot; the journal before: journalctl is not installed"
    assert wrapped([lost]) == [replace(lost, detail=why, how=HOW), late, remapped]
    assert wrapped(None, taken=1795230000 + 100_000) == [late, remapped]  # a day later that is history


def test_a_machine_without_a_log(tmp_path: Path) -> None:
    assert list(read_kernel_log(Live(str(tmp_path)))) == []


parts = [part for text, _ in LINES for part in re.split(r"(?<=[ :,(])", text)]
pieces = st.text(max_size=20) | st.sampled_from(["3,", "7,", "1000000,", "-;", "\n", "٣", "9" * 30, *parts])


@given(st.lists(pieces, max_size=20).map("".join), st.text(max_size=20) | st.just(BOOT))
def test_any_text(log: str, stat: str) -> None:
    with TemporaryDirectory() as root:
        for one in said(root, log, stat):
            assert isinstance(one, Event | NotChecked)
            assert decode(encode(one)) == one
    assert relevant(relevant(log)) == relevant(log)


@given(st.sampled_from(LINES), st.lists(st.sampled_from(parts) | st.text(max_size=10), max_size=8).map("".join))
def test_any_line_after_a_known_beginning(line: tuple[str, dict[str, object]], tail: str) -> None:
    for end in range(0, len(line[0]), 7):
        found = event_of(line[0][:end] + tail)
        assert found is None or found.subject
