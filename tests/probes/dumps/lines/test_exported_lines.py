"""Outputs in what viewers of logs, terminals and programs export."""

from __future__ import annotations

import csv
import io
import json
import quopri

import pytest

from linkgauge.models.facts.machine import Setting
from linkgauge.probes.dumps.lines.exported_lines import exported
from linkgauge.probes.dumps.read import read_text
from tests.support.texts import found_in, report_of

LINES = ("GPU 0: NVIDIA H200", *(f"\t Link {link}: 26.562 GB/s" for link in range(17)), "\t Link 17: <inactive>")
JOURNAL = {"__REALTIME_TIMESTAMP": "1795230000000000", "_HOSTNAME": "n1", "SYSLOG_IDENTIFIER": "a", "_PID": "7"}
TEXT = "\n".join(LINES) + "\n"


def table(*rows: tuple[str, ...]) -> str:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return text.getvalue()


def fault(text: str) -> bool:
    return [(code, severity) for code, severity, _ in found_in(text)] == [("nvlink-inactive", "critical")]


@pytest.mark.parametrize(
    "text",
    [
        table(("Time", "Message"), *(("2026-11-21 03:04:05", line) for line in LINES)),
        table(("@timestamp", "host", "message"), ("2026-11-21", "n1", TEXT)),
        "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,19 @@\n" + "".join(f"+{line}\n" for line in LINES),
        "".join(json.dumps(JOURNAL | {"MESSAGE": line}) + "\n" for line in LINES),
        "".join(json.dumps({"@timestamp": "2026-11-21T03:04:05Z", "message": line}) + "\n" for line in LINES),
        "".join(f"node1\t{line}\n" for line in LINES),
        "".join(f'2026-11-21T03:04:05Z {{app="a", node="n1"}} {line}\n' for line in LINES),
        "".join(f"2026-11-21T03:04:05.123+00:00 job/main/4f5a {line}\n" for line in LINES),
        f"+{'-' * 40}+\n" + "".join(f"| {line.expandtabs():38} |\n" for line in LINES) + f"+{'-' * 40}+\n",
        f"{TEXT.encode()!r}\n",
        TEXT.replace("\n", "\r"),
        TEXT.replace("\n", "\r\r\n"),
        TEXT.replace("\n", "\u200b\n"),
        TEXT.replace("<", "&lt;").replace(">", "&gt;").replace("\t", "&nbsp;&nbsp;"),
    ],
)
def test_the_fault_is_seen_in_each_export(text: str) -> None:
    assert fault(TEXT)
    assert fault(text)


@pytest.mark.parametrize(
    "text",
    [
        "a, b\n1, 2\n",
        "Time,Message\nno columns here\n",
        'Time,Message\n"1","open\n',
        "@@ -1 +1 @@\n",
        "name,line\nx,1\n",
        "",
    ],
)
def test_the_lines_stay_in_their_places(text: str) -> None:
    assert exported(text).count("\n") == text.count("\n")
    assert list(read_text("text", text, 1.0))


def test_removed_lines_of_a_diff_are_no_present_state() -> None:
    removed = (
        "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n GPU 0: NVIDIA H200\n-\t Link 0: <inactive>\n+\t Link 0: 26.562 GB/s\n"
    )
    assert exported(removed).split("\n")[3:6] == [
        "GPU 0: NVIDIA H200",
        "-\t Link 0: <inactive>",
        "\t Link 0: 26.562 GB/s",
    ]


@pytest.mark.parametrize("before", ["", "A degree sign: 38 \u00b0C\n", "NCCL_NET = Socket\n"])
def test_a_mail_in_quoted_printable(before: str) -> None:
    """A line of 76 characters ends in "=" and continues on the next line."""
    row = f"{' ' * 8}{'Laser output power low alarm':<42}: On  {' ' * 40}and it goes on"
    mail = quopri.encodestring(f"{before}{TEXT}{row}\n".encode()).decode()
    assert "=\n" in mail
    assert fault(mail)
    assert report_of(mail).verdict == "failed"


@pytest.mark.parametrize("text", ["NCCL_NET=Socket\n", f"{'=' * 76}\nNCCL_NET=Socket\n"])
def test_other_equals_signs_are_kept(text: str) -> None:
    values = [one.value for one in read_text("text", text, 0.0) if isinstance(one, Setting)]
    assert values == [text.rstrip().rpartition("=")[2]]
