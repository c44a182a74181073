"""The catalog of log messages: each row reads its own example in any frame, and no healthy text."""

from __future__ import annotations

import html
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from re import _parser  # type: ignore[attr-defined]

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.catalog import codes
from linkgauge.models.catalog.log_messages import KERNEL, PROGRAMS, SAID, Message, entries, expanded, message, pattern
from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.machine import Event
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.rules.host.disk_events import ANSWERS
from linkgauge.models.rules.host.log_messages import DESIGNED
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.core.clean import clean
from linkgauge.probes.dumps.host.log_events import is_output
from linkgauge.probes.dumps.read import read_text
from linkgauge.probes.kernel_log.forms import FORMS
from linkgauge.probes.kernel_log.messages import Found, catalog, find_messages
from linkgauge.probes.kernel_log.said import find_said
from tests.support.dump_samples import SAMPLES
from tests.support.expressions import variants
from tests.support.paths import TESTS

KNOWN = catalog(*KERNEL, *PROGRAMS)
ROWS = [message(entry.name) for entry in entries(*KERNEL, *PROGRAMS)]
AT = 1795230000.0
SHARED = TESTS.parent.parent / "shared"
FRAMES: dict[str, Callable[[str], str]] = {
    "bare": lambda line: line,
    "dmesg": lambda line: f"[ 1234.567890] {line}",
    "dmesg -T": lambda line: f"[Mon Nov  2 10:00:00 2026] {line}",
    "syslog": lambda line: f"Nov  2 10:00:00 node7 kernel: [ 1234.567890] {line}",
    "journal": lambda line: f"Nov 02 10:00:00 node7 app[4711]: {line}",
    "iso": lambda line: f"2026-11-02T10:00:00.123456+00:00 node7 {line}",
    "container": lambda line: f"2026-11-02T10:00:00.123456789Z stdout F {line}",
    "rank": lambda line: f"[1,3]<stderr>:{line}",
    "quoted": lambda line: f"> {line}",
    "Markdown list": lambda line: f"- **{line}**",
    "in a sentence": lambda line: f'The log has "{line}" again and again.',
    "JSON": lambda line: json.dumps({"level": "warn", "message": line, "node": "n7"}),
    "JSON on its own line": lambda line: f'    "message": {json.dumps(line)},',
    "comment": lambda line: f"# {line}",
    "code": lambda line: f"`{line}`",
    "italics": lambda line: f"_{line}_",
    "escaped Markdown": lambda line: re.sub(r"([_*\[\]])", r"\\\1", line),
    "HTML": html.escape,
    "typographic quotation marks": lambda line: line.translate(str.maketrans("'\"", "\u2019\u201d")),
    "grep": lambda line: f"/var/log/syslog:4711:{line}",
    "dmesg -x": lambda line: f"kern  :err   : [ 1234.567890] {line}",
    "dmesg -H": lambda line: f"[  +0.000123] {line}",
    "pdsh": lambda line: f"node7: [ 1234.567890] {line}",
    "other language": lambda line: f"11\u6708 02 10:00:00 node7 kernel: {line}",
    "remark": lambda line: f"{line}   # <-- here",
}


_FILES = 50  # about ten rows in each


def messages_in(text: str) -> list[Found]:
    """The messages of programs, and the sentences in lines that people write."""
    return [*find_messages(text, KNOWN), *(one for one in find_said(text) if not is_output(text, one, of_tool=False))]


def found_in(text: str) -> set[tuple[str, str]]:
    events = [one for one in read_text("log.txt", text, AT) if isinstance(one, Event) and one.kind == "message"]
    return {(str(one.name), str(one.subject)) for one in events}


def subject(row: Message) -> str:
    (found,) = {one.subject for one in find_messages(row.example, KNOWN) if one.name == row.name}
    return found


def test_there_are_many() -> None:
    assert len(ROWS) >= 400
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_each_row_is_complete() -> None:
    """A row without a code ends others or is needed by others; a row with a code has a severity and a next step."""
    said = [message(entry.name) for entry in entries(*SAID)]
    used = {name for other in (*ROWS, *said) for name in (*other.needs, *other.unless)} | {*ANSWERS, *DESIGNED}
    names = {other.name for other in ROWS}
    for row in ROWS:
        assert {*row.clears, *row.needs} <= names, row.name
        if row.code is None:
            assert (row.severity, row.action) == (None, None), row.name
            assert row.clears or row.name in used, row.name
        else:
            assert row.code in codes(), row.name
            assert row.severity is not None, row.name
            assert row.action is not None, row.name
            assert row.action.endswith("."), row.name
        assert (row.many is None) == (row.severity_of_many is None), row.name
        assert not row.meaning.endswith("."), row.name


def test_each_match_contains_the_needle() -> None:
    for row in ROWS:
        forms = variants(_parser.parse(expanded(row.prefix + row.pattern), re.MULTILINE))
        assert [form for form in forms if row.needle not in form] == [], row.name


def test_repetitions_are_bounded() -> None:
    for row in ROWS:
        text = re.sub(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", "x", expanded(row.prefix + row.pattern))
        assert "*" not in text, row.name
        assert not re.search(r"x\+|\)\+|\.\+", text), row.name


def test_an_example_belongs_to_its_row_alone() -> None:
    for row in ROWS:
        assert {one.name for one in find_messages(row.example, KNOWN)} == {row.name}
        assert [form.kind for form in FORMS if form.pattern.search(row.example)] == [], row.name


@pytest.mark.parametrize("frame", FRAMES)
def test_examples_in_a_frame(frame: str) -> None:
    """The examples in files of ten, each in a frame and with a line of another program behind it. A file is a stream of
    JSON or none, so an example in JSON is a file of its own.
    """
    missing = []
    in_json = [row for row in ROWS if row.example.startswith("{")]
    others = [row for row in ROWS if row not in in_json]
    for rows in [*([row] for row in in_json), *(others[first::_FILES] for first in range(_FILES))]:
        lines = [line for row in rows for line in (row.example, "what came after it")]
        found = found_in("".join(f"{FRAMES[frame](line)}\n" for line in lines))
        missing += [row.name for row in rows if (row.name, subject(row)) not in found]
    assert missing == []


# Lines of tools that have a reader: it names the subject, and the message has none.
SUBJECTS = {
    "sensors-alarm": "Package id 0",
    "zpool-list-state": "tank",
    "smart-overall-failed": "disk",
    "smart-scsi-failed": "disk",
}


@pytest.mark.parametrize("row", [row for row in ROWS if row.code], ids=lambda row: row.name)
def test_an_example_gives_the_code_of_its_row(row: Message) -> None:
    needed = "".join(f"{message(name).example}\n" for name in row.needs[:1])
    records = list(read_text("log.txt", f"{needed}{row.example}\n", AT))
    report = evaluate(assemble(records, Site(), AT, origin="dumps"))
    instead = "not-enough-evidence" if row.elsewhere else codes()[row.code or ""].of_outputs
    named = [one for one in report.findings if one.code == (instead or row.code)]
    assert [one.subject for one in named] == [SUBJECTS.get(row.name, subject(row))]
    assert named[0].severity == ("info" if instead == "not-enough-evidence" else row.severity)
    assert "{" not in named[0].message
    assert report.verdict != "ok"


@pytest.mark.parametrize("row", [row for row in ROWS if row.clears], ids=lambda row: row.name)
def test_a_later_row_ends_others(row: Message) -> None:
    """And an earlier one does not. Subjects are equal in both lines."""
    ended = message(row.clears[0])
    same = ended.example.replace(subject(ended), subject(row)) if subject(ended) != "node" else ended.example
    if subject(row) != "node" and subject(row) not in same:
        same = re.sub(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", subject(row), ended.example)
    for lines, over in (((same, row.example), True), ((row.example, same), False)):
        records = list(read_text("log.txt", "\n".join(lines), AT))
        code = "not-enough-evidence" if ended.elsewhere and not over else ended.code
        found = [one for one in evaluate(assemble(records, Site(), AT, origin="dumps")).findings if one.code == code]
        informed = [over or ended.elsewhere or ended.severity == "info"]
        assert [one.severity == "info" for one in found] == ([] if row.name in ended.unless else informed), lines


def healthy_texts() -> Iterator[Path]:
    for case in sorted((SHARED / "cases").glob("*/about.json")):
        if json.loads(case.read_text())["healthy"]:
            yield from (path for path in sorted((case.parent / "dumps").rglob("*")) if path.is_file())


HEALTHY = [*healthy_texts(), *(path for path in sorted((SHARED / "data").rglob("*")) if path.is_file())]


@pytest.mark.skipif(not HEALTHY, reason="no ../shared beside the project: the outputs are not here")
def test_healthy_texts_have_no_fault() -> None:
    """Known exceptions: lines that are information."""
    faults = {}
    for path in HEALTHY:
        text = clean(path.read_bytes().decode("utf-8", "replace"))
        names = {one.name for one in messages_in(text)}
        bad = {name for name in names if message(name).severity not in (None, "info") and not message(name).needs}
        if bad:
            faults[path.name] = bad
    assert faults == {}


def test_samples_of_healthy_outputs_have_no_fault() -> None:
    faults = {}
    for path in sorted(SAMPLES.rglob("*")):
        if path.is_file() and ("healthy" in path.name or path.parent.name in ("lspci", "smi_query", "sysfs_text")):
            names = {one.name for one in find_messages(path.read_bytes().decode("utf-8", "replace"), KNOWN)}
            if names:
                faults[path.name] = names
    assert faults == {}


@given(st.data())
def test_no_text_takes_long(data: st.DataObject) -> None:
    """Parts of examples, repeated and mixed: the time stays proportional to the length."""
    rows = data.draw(st.lists(st.sampled_from(ROWS), min_size=1, max_size=4))
    parts = [row.example[: data.draw(st.integers(4, len(row.example)))] for row in rows]
    glue = data.draw(st.sampled_from(["", " ", ": ", "0", "a", "x" * 50, "\n"]))
    text = glue.join(parts * data.draw(st.integers(1, 40)))
    begun = time.thread_time()  # of this thread alone: the machine may be busy
    messages_in(text)
    for row in rows:
        pattern(row.name).search(text[:900])
    assert time.thread_time() - begun < 1.0


def test_lines_that_were_searched_before_hide_no_message() -> None:
    """Other digits, other lines beside it, and the same line again."""
    healthy = "".join(f"line {number} of a healthy machine\n" for number in range(3))
    for row in ROWS[::50]:
        for text in (healthy, f"{healthy}{row.example}\n{healthy}", row.example, f"{row.example}\n{row.example}"):
            names = {one.name for one in find_messages(text, KNOWN)}
            assert names == ({row.name} if row.example in text else set())


def test_only_rows_that_occur_are_parsed() -> None:
    message.cache_clear()
    assert messages_in("a line of a healthy machine\n" * 1000) == []
    assert message.cache_info().currsize == 0
