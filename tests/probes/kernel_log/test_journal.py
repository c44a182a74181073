"""The journal: what journalctl prints, through a stand-in on the PATH that prints the same; and the real one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import Event
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, NotChecked, Record
from linkgauge.probes.calls.child import Children
from linkgauge.probes.kernel_log import journal
from linkgauge.probes.kernel_log.journal import SOURCE, read

XID = "NVRM: Xid (PCI:0000:53:00): 79, GPU has fallen off the bus."
Answer = Callable[..., list[Record]]


def entry(message: object, second: int, **fields: object) -> str:
    """As `journalctl --output=json` prints it: `second` since boot, which was at 1795230000."""
    stamps = {
        "__CURSOR": "s=1;i=2",
        "__REALTIME_TIMESTAMP": f"{1795230000 + second}000000",
        "_SOURCE_MONOTONIC_TIMESTAMP": f"{second}000000",
    }
    return json.dumps({**stamps, "MESSAGE": message, **fields})


def event(second: int, count: int = 1, first: int | None = None) -> Event:
    return Event(
        key="xid 79 0000:53:00.0",
        kind="xid",
        code=79,
        subject="0000:53:00.0",
        text=XID,
        at=1795230000.0 + second,
        count=count,
        first=1795230000.0 + (first or second),
        recent=count,
        bursts=1,
        cites={"text": Evidence(SOURCE, XID)},
    )


@pytest.fixture
def answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Answer:
    """What is said where journalctl prints `lines` (newest first), then `script` runs."""

    def ask(*lines: str, script: str = "", before: str = "") -> list[Record]:
        (tmp_path / "lines").write_text("".join(f"{line}\n" for line in lines))
        program = tmp_path / "journalctl"
        arguments = "-k -b --reverse --no-pager --output=json"
        snapshot = f'case "$*" in "{arguments} "*) cat {tmp_path}/lines;; *) echo "$*" >&2; exit 9;; esac'
        program.write_text(f"#!/bin/sh\n{snapshot}\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        return list(read(before))

    return ask


def lost(why: str, reason: Reason = Reason.OTHER) -> NotChecked:
    return NotChecked(what="Event", subject="node", reason=reason, detail=why)


def test_what_the_journal_says(answer: Answer) -> None:
    assert answer(entry("usb 1-1: new device", 9), entry(XID, 7), entry(XID, 5), entry("Linux version", 0)) == [
        event(7, count=2, first=5)
    ]


def test_only_what_was_before(answer: Answer) -> None:
    plain = json.dumps({"MESSAGE": XID, "__REALTIME_TIMESTAMP": "1795230003000000", "__MONOTONIC_TIMESTAMP": "3000000"})
    assert answer(entry(XID, 7), entry(XID, 5), plain, before="7000000") == [event(5, count=2, first=3)]


def test_a_text_that_is_no_text(answer: Answer) -> None:
    several = entry(f"{XID}\nand more", 4, _SOURCE_MONOTONIC_TIMESTAMP=None)
    (told,) = answer(entry(list(f"{XID}\xff".encode("latin-1")), 5), entry(None, 4), several)
    assert isinstance(told, Event)
    assert (told.text, told.count) == (f"{XID}\N{REPLACEMENT CHARACTER}", 2)


def test_one_who_may_not_see_it(answer: Answer) -> None:
    hint = "Hint: You are currently not seeing messages from other users and the system."
    files = "No journal files were opened due to insufficient permissions."
    assert answer(script=f"echo '{hint}' >&2; echo '{files}' >&2; exit 1") == [lost(files)]
    assert answer(script=f"echo '{hint}' >&2") == [lost("it shows this user no kernel lines", Reason.PERMISSION)]
    assert answer(script="exit 3") == [lost("journalctl ended with 3")]


def test_one_that_breaks_off(answer: Answer) -> None:
    assert answer(entry(XID, 5), "{", "[]", "7", entry(XID, 4)[:30], script="exit 1") == [event(5)]


def test_a_machine_without_a_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert list(read()) == [lost("journalctl is not installed", Reason.NOT_INSTALLED)]


def test_one_that_has_no_end(answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The deadline also ends an endless output."""
    monkeypatch.setattr(journal, "_LONGEST", 1.0)  # on a busy machine, the first line needs a part of a second
    monkeypatch.setattr(journal, "_MOST", 1 << 40)
    cut, found = answer(entry(XID, 5), script=f"while :; do echo '{entry('usb 1-1: new device', 4)}'; done")
    assert isinstance(cut, NotChecked)
    assert cut.why.startswith("only the last ")
    assert found == event(5)


def test_through_a_child(answer: Answer) -> None:
    answer(entry(XID, 5))  # puts it on the PATH
    assert list(Children().call("journal", [], 30)) == [event(5)]
    assert list(Children().call("journal", ["5000000"], 30)) == []


@pytest.mark.skipif(shutil.which("journalctl") is None, reason="this machine has no journalctl")
def test_the_journal_of_this_machine() -> None:
    said = list(Children().call("journal", [], 30))
    assert all(isinstance(one, Event) or one.what == "Event" for one in said if isinstance(one, Event | NotChecked))
    assert all(isinstance(one, Event | NotChecked) for one in said)


scalars = (
    st.none() | st.booleans() | st.integers(-1, 300) | st.text(max_size=20) | st.sampled_from([XID, "9" * 30, "٣"])
)
names = st.sampled_from(["MESSAGE", "__REALTIME_TIMESTAMP", "_SOURCE_MONOTONIC_TIMESTAMP", "__MONOTONIC_TIMESTAMP"])
entries = st.dictionaries(names, scalars | st.lists(scalars, max_size=4), max_size=4).map(json.dumps)


@given(lines=st.lists(entries | st.text(max_size=20), min_size=1, max_size=40))
def test_any_entries(lines: list[str]) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        (Path(folder) / "lines").write_text("\n".join(lines))
        (Path(folder) / "journalctl").write_text(f"#!/bin/sh\ncat {folder}/lines\n")
        (Path(folder) / "journalctl").chmod(0o755)
        patch.setenv("PATH", f"{folder}:/usr/bin:/bin")
        for one in read("5000000"):
            assert decode(encode(one)) == one
