"""Results of fio as JSON and as text, whole, cut, and of rubbish."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.records import Evidence, Flow, NotChecked, Observation, Record
from linkgauge.probes.dumps import recognise
from linkgauge.probes.dumps.benchmarks import fio
from linkgauge.probes.dumps.core.part import Part

SHARED = Path(__file__).parents[3].parent / "shared/data/outputs"
AT = 1795230000.0
TEXT = """\
seq: (g=0): rw=read, bs=(R) 1024KiB-1024KiB, (W) 1024KiB-1024KiB, (T) 1024KiB-1024KiB, ioengine=libaio, iodepth=64
mix: (g=1): rw=randrw, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=libaio, iodepth=1
fio-3.28
Starting 2 processes

Run status group 0 (all jobs):
   READ: bw=6485MiB/s (6800MB/s), 6485MiB/s-6485MiB/s (6800MB/s-6800MB/s), io=190GiB (204GB), run=30001-30001msec

Run status group 1 (all jobs):
   READ: bw=333MiB/s (349MB/s), 333MiB/s-333MiB/s (349MB/s-349MB/s), io=9.7GiB (10.5GB), run=30001-30001msec
  WRITE: bw=332MiB/s (348MB/s), 332MiB/s-332MiB/s (348MB/s-348MB/s), io=9.7GiB (10.4GB), run=30001-30001msec

Disk stats (read/write):
  nvme0n1: ios=3004914/3003760, merge=0/0, ticks=4269143/4598453, in_queue=11104, util=99.84%
"""
OUT, BACK = ("nvme0n1", "host"), ("host", "nvme0n1")


def said(text: str) -> list[Record]:
    assert recognise(text)
    return list(fio.read(Part("log", 1, text, AT)))


def rate(flow: Flow, value: float, evidence: Evidence) -> Observation:
    return Observation(
        about=flow, quantity="rate", unit="bytes_per_second", value=value, at=AT, busy=True, evidence=evidence
    )


def line(number: int) -> Evidence:
    return Evidence(f"log:{number}", TEXT.splitlines()[number - 1].strip())


WHOLE = [
    rate(Flow("read", OUT, 1 << 20), 6800e6, line(7)),
    rate(Flow("read", OUT, 4096, beside=(BACK,)), 349e6, line(10)),
    rate(Flow("write", BACK, 4096, beside=(OUT,)), 348e6, line(11)),
]


def test_text() -> None:
    assert said(TEXT) == WHOLE


def test_text_that_was_cut() -> None:
    """Without the device at its end nobody knows what was read."""
    lines = TEXT.splitlines(keepends=True)
    for end in range(len(lines)):
        assert list(fio.read(Part("log", 1, "".join(lines[:end]), AT))) == []


def job(group: int, read: int, write: int = 0, **options: str) -> dict[str, Any]:
    return {"groupid": group, "job options": options, "read": {"bw_bytes": read}, "write": {"bw_bytes": write}}


def document(*jobs: dict[str, Any], filename: str = "/dev/nvme0n1", disks: tuple[str, ...] = ("nvme0n1",)) -> str:
    common = {"filename": filename, "bs": "1m"}
    run = {
        "fio version": "fio-3.36",
        "global options": common,
        "jobs": jobs,
        "disk_util": [{"name": one} for one in disks],
    }
    return json.dumps(run, indent=2, separators=(",", " : "))


SAMPLES = (TEXT, document(job(0, 3000), job(1, 40, 60, bs="4k")))


def cite(text: str) -> Evidence:
    return Evidence("log:1", text)


def test_json() -> None:
    """Jobs of one group add up, those of another do not."""
    text = document(job(0, 3000), job(0, 3800), job(1, 40, 60, bs="4k"))
    assert said(text) == [
        rate(Flow("read", OUT, 1 << 20), 6800.0, cite("group 0, nvme0n1, read: 6800 bytes/s")),
        rate(Flow("read", OUT, 4096, beside=(BACK,)), 40.0, cite("group 1, nvme0n1, read: 40 bytes/s")),
        rate(Flow("write", BACK, 4096, beside=(OUT,)), 60.0, cite("group 1, nvme0n1, write: 60 bytes/s")),
    ]


@pytest.mark.parametrize(
    ("filename", "disks", "device"),
    [
        ("/dev/md0", ("nvme0n1", "nvme1n1"), "md0"),
        ("/data/file", ("nvme1n1",), "nvme1n1"),
        ("/data/file", ("nvme0n1", "nvme1n1"), None),
        ("/dev/nvme0n1:/dev/nvme1n1", (), None),
    ],
)
def test_which_device(filename: str, disks: tuple[str, ...], device: str | None) -> None:
    told = said(document(job(0, 10), filename=filename, disks=disks))
    ends = [one.about.ends for one in told if isinstance(one, Observation) and isinstance(one.about, Flow)]
    assert ends == ([(device, "host")] if device else [])


def test_rates_of_fio_2_are_in_kib() -> None:
    (one,) = said(document({"groupid": 0, "read": {"bw": 1000}}))
    assert isinstance(one, Observation)
    assert one.value == 1024000.0


def test_text_of_fio_2() -> None:
    """It writes KB for KiB."""
    text = (
        "seq: (g=0): rw=read, bs=1M-1M/1M-1M/1M-1M, ioengine=libaio, iodepth=32\nfio-2.2.10\n\n"
        "Run status group 0 (all jobs):\n   READ: io=1024.0MB, aggrb=400000KB/s, minb=400000KB/s, mint=2621msec\n\n"
        "Disk stats (read/write):\n  sda: ios=250000/0, merge=0/0, util=96.00%\n"
    )
    (one,) = said(text)
    assert isinstance(one, Observation)
    assert (one.about, one.value) == (Flow("read", ("sda", "host"), 1 << 20), 409.6e6)


def test_messages_before_the_json() -> None:
    notes = "fio: this platform does not support process shared mutexes\nnote: both iodepth >= 1 and synchronous I/O\n"
    told = said(notes + document({"groupid": 0, "read": {"bw_bytes": 5e9}}))
    assert [one.value for one in told if isinstance(one, Observation)] == [5e9]


def test_json_that_was_cut_is_not_checked() -> None:
    text = document(job(0, 10))
    lines = text.splitlines(keepends=True)
    for end in range(2, len(lines)):
        (one,) = said("".join(lines[:end]))
        assert isinstance(one, NotChecked)


@pytest.mark.parametrize("value", [None, [], {}, "x", 0, -1, 1e300, [None]])
def test_json_of_rubbish(value: Any) -> None:
    for text in (
        document({"groupid": 0, "read": {"bw_bytes": value}}),
        document({"groupid": value, "read": value, "job options": value}),
        json.dumps({"fio version": "3", "jobs": value, "global options": value, "disk_util": value}),
    ):
        assert list(fio.read(Part("log", 1, text))) == []


@pytest.mark.parametrize("text", ["", "fio", "fio-3.28", "READ: bw=1MiB/s (1MB/s)", '{"jobs": []}', "a: (g=0): x"])
def test_what_is_no_output(text: str) -> None:
    assert not re.search(fio.BEGIN, text, re.MULTILINE)


words = st.sampled_from(
    [*TEXT.splitlines(keepends=True), document(job(0, 1)), '{"fio version" :', "{", "}", "\n", "1.5"]
)


def test_of_an_array_the_members_stand_beside_it() -> None:
    job = {"groupid": 0, "job options": {"bs": "1M"}, "read": {"bw_bytes": 5_000_000_000}}
    used = [{"name": "md0", "aggr_read_ios": 7}, {"name": "nvme0n1"}, {"name": "nvme1n1"}]
    text = json.dumps({"fio version": "fio-3.33", "jobs": [job], "disk_util": used})
    assert [one.about for one in said(text) if isinstance(one, Observation)] == [Flow("read", ("md0", "host"), 1 << 20)]


@given(st.lists(words | st.text(max_size=10), max_size=30).map("".join) | st.text())
def test_any_text(text: str) -> None:
    for one in fio.read(Part("log", 1, text)):
        assert decode(encode(one)) == one


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded outputs of ../shared are not here")
def test_recorded_outputs() -> None:
    told = said((SHARED / "superbench-tests/disk_performance.log").read_text())
    assert [(one.about, one.value) for one in told if isinstance(one, Observation)] == [
        (Flow("read", OUT, 4096, beside=(BACK,)), 348743777.0),
        (Flow("write", BACK, 4096, beside=(OUT,)), 348450387.0),
    ]
    for path in sorted(SHARED.rglob("*")):
        if path.is_file() and path.stat().st_size < 1 << 20 and not path.name.startswith("disk_"):
            assert not re.search(fio.BEGIN, path.read_text(errors="replace"), re.MULTILINE), path.name
