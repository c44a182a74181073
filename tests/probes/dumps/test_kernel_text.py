"""Logs of the kernel: every time format, and findings from past events."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from linkgauge.models.evaluate import evaluate
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.host.log_times import head
from tests.support.samples import read

MOMENT = datetime(2026, 11, 2, 3, 4, 5, tzinfo=timezone.utc).timestamp()
IN_2000 = datetime(2000, 11, 2, 3, 4, 5, tzinfo=timezone.utc) - datetime(2000, 1, 1, tzinfo=timezone.utc)
XID = "NVRM: Xid (PCI:0000:53:00): 79, pid=77, name=python3, GPU has fallen off the bus."


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
    """The time of an event is known if its clock counts from boot or has a time zone. Otherwise it begins at 0."""
    text = f"{before}{XID}"
    assert head(text)[::2] == (clock, XID) or before == "kernel: "
    assert head(text)[1] == (at if at is None else pytest.approx(at, abs=1e-6))
    shown = None if at is None else at if clock in ("boot", "zoned") else 0.0
    (event,) = read("kernel_text", text)
    assert getattr(event, "at", "") == (shown if shown is None else pytest.approx(shown, abs=1e-6))


@pytest.mark.parametrize(
    ("last", "severity"),
    [("Nov  2 23:04:05", "critical"), ("Nov  3 03:04:04", "critical"), ("Nov  3 03:04:06", "info")],
)
def test_a_day_before_the_log_ends_is_history(last: str, severity: str) -> None:
    """The time of reading does not matter."""
    text = f"Nov  2 03:04:05 node7 kernel: {XID.replace('79', '119')}\n{last} node7 kernel: usb"
    for now in (0.0, 1e9, 2e9):
        report = evaluate(assemble(read("kernel_text", text), Site(), now, origin="dumps"))
        assert [(one.code, one.severity) for one in report.findings] == [("gpu-xid", severity)]
