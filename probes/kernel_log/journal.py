"""The call `journal`: kernel log lines since boot, from systemd's journal (journalctl(1), journal-fields(7))."""

from __future__ import annotations

import os
import selectors
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked, Record
from ..calls.timeouts import no_answer
from .patterns import events_in, group

SOURCE = "journalctl -k -b"
_ARGUMENTS = ("-k", "-b", "--reverse", "--no-pager", "--output=json")
_FIELDS = "--output-fields=MESSAGE,_SOURCE_MONOTONIC_TIMESTAMP"  # systemd 236 and later
_LONGEST = 7.0  # seconds; shorter than the deadline of the call, so that the lines read so far are still returned
_MOST = 200_000  # lines


def read(before: str = "") -> Iterator[Record]:
    """Yield an `Event` for each group of equal lines since boot; with `before`, only lines before that time.

    `before` is in microseconds since boot. Lines are read newest first, so that a long journal loses its beginning.
    """
    program = shutil.which("journalctl")
    if program is None:
        yield _lost(Reason.NOT_INSTALLED, "journalctl is not installed")
        return
    lost: list[NotChecked] = []
    found = list(events_in(_lines(_entries((program, *_ARGUMENTS, _FIELDS)), before, lost)))
    yield from lost
    yield from group(reversed(found), SOURCE)


def _lines(
    entries: Iterable[Mapping[str, Any] | NotChecked], before: str, lost: list[NotChecked]
) -> Iterator[tuple[float, str]]:
    """Yield time and text of each entry before that time. `lost` receives why entries are missing."""
    entries_read = 0
    for entry in entries:
        if isinstance(entry, NotChecked):
            lost.append(entry)
            continue
        entries_read += 1
        text, at, monotonic = _message(entry), entry.get("__REALTIME_TIMESTAMP"), _microseconds(entry)
        if before and (monotonic is None or monotonic >= int(before)):
            continue
        if text and isinstance(at, str) and at.isdecimal():
            yield int(at[:17]) / 1e6, text
    if not lost and not entries_read:  # each boot logs lines, so no line means no permission
        lost.append(_lost(Reason.PERMISSION, "it shows this user no kernel lines"))


def _entries(command: tuple[str, ...]) -> Iterator[Mapping[str, Any] | NotChecked]:
    """Yield the journal's entries, then a NotChecked if reading stopped early or failed."""
    end = time.monotonic() + _LONGEST
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as journalctl:
        assert journalctl.stdout
        assert journalctl.stderr
        pending, number = b"", 0
        with selectors.DefaultSelector() as ready:
            ready.register(journalctl.stdout, selectors.EVENT_READ)
            while (left := end - time.monotonic()) > 0 and number < _MOST and ready.select(left):
                part = os.read(journalctl.stdout.fileno(), 1 << 20)
                if not part:
                    break
                *complete, pending = (pending + part).split(b"\n")
                number += len(complete)
                yield from (entry for line in complete if (entry := _entry(line)) is not None)
            else:
                journalctl.kill()
                if number:
                    yield _lost(Reason.OTHER, f"only the last {number} lines were read")
                else:
                    yield _lost(Reason.NO_ANSWER, no_answer(_LONGEST))
                return
        errors = journalctl.stderr.read().decode("utf-8", "replace").strip()
        if journalctl.wait() and not number:
            yield _lost(Reason.OTHER, errors.rpartition("\n")[2] or f"journalctl ended with {journalctl.returncode}")


def _entry(line: bytes) -> Mapping[str, Any] | None:
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except msgspec.DecodeError:
        return None


def _message(entry: Mapping[str, Any]) -> str:
    """Return the text of an entry. journalctl writes text that is not UTF-8 as a list of bytes."""
    message = entry.get("MESSAGE")
    if isinstance(message, list) and all(isinstance(byte, int) and 0 <= byte < 256 for byte in message):
        message = bytes(message).decode("utf-8", "replace")
    return message.replace("\n", " ") if isinstance(message, str) else ""


def _microseconds(entry: Mapping[str, Any]) -> int | None:
    """Return when the kernel logged the entry, in microseconds since boot."""
    for field in ("_SOURCE_MONOTONIC_TIMESTAMP", "__MONOTONIC_TIMESTAMP"):
        time = entry.get(field)
        if isinstance(time, str) and time.isdecimal() and len(time) <= 20:
            return int(time)
    return None


def _lost(reason: Reason, detail: str) -> NotChecked:
    return NotChecked(what="Event", subject="node", reason=reason, detail=detail)
