"""One error of the kernel has one reason, from the file to the label of the metric."""

from __future__ import annotations

import errno
import os

import pytest
from msgspec.structs import replace

from linkgauge.exporters.metrics.prometheus import page
from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import Net
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import NotChecked
from linkgauge.probes.calls.timeouts import hung
from linkgauge.probes.host.entries import Folder, UnreadableFile
from linkgauge.probes.host.recorded import Recorded, dump, parse
from linkgauge.probes.sysfs.fact_reader import FactReader
from tests.support.nodes.described import node, report_of

FOLDER = "sys/class/net/eth0"
LINE = (
    '["NotChecked",{"what":"Pci.width","subject":"0000:17:00.0","why":"sys/x: Permission denied","how":"run as root"}]'
)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (errno.EIO, Reason.UNREADABLE),
        (errno.EACCES, Reason.PERMISSION),
        (errno.ENOENT, Reason.NOT_INSTALLED),
        (errno.ETIMEDOUT, Reason.DRIVER),
        (errno.ENOMEM, Reason.OTHER),
    ],
)
def test_one_error_is_one_label(code: int, reason: Reason) -> None:
    why = os.strerror(code)
    host = parse(dump(Recorded(0, {FOLDER: Folder(), f"{FOLDER}/mtu": UnreadableFile(code, why)})))
    reading = FactReader(host, Net, "eth0", FOLDER)
    reading.take("mtu", "mtu", int, required=True)
    missed = next(iter(reading.records()))
    assert isinstance(missed, NotChecked)
    assert (missed.reason, missed.path, missed.detail) == (reason, f"{FOLDER}/mtu", why)
    assert missed.why == f"{FOLDER}/mtu: {why}"
    assert hung(missed) == (reason is Reason.NO_ANSWER)
    again = decode(encode(missed))
    assert again == missed
    text = page(replace(report_of(node("desktop")), not_checked=(again,)), None).decode()
    assert f'linkgauge_not_checked{{check="Net.mtu",reason="{reason.value}"}} 1' in text


def test_a_line_of_an_earlier_version_has_no_reason() -> None:
    assert decode(LINE) == NotChecked(
        what="Pci.width",
        subject="0000:17:00.0",
        reason=Reason.OTHER,
        detail="sys/x: Permission denied",
        how="run as root",
    )


@pytest.mark.parametrize(
    "why",
    ["no answer within 80 s", "sys/x: no answer within 10 s", "process 17, asked before, still hangs in the kernel"],
)
def test_a_timeout_of_an_earlier_version_is_a_hang(why: str) -> None:
    """Otherwise the capture of a driver that hangs loses its finding."""
    assert hung(decode(f'["NotChecked",{{"what":"Gpu","subject":"node","why":"{why}"}}]'))
    assert hung(decode(f'["Driver",{{"key":"nvidia","failure":"{why}"}}]'))
    assert hung(decode(f'["Gpu",{{"key":"gpu3","failure":"{why}"}}]'))


def test_other_failures_of_an_earlier_version_are_no_hang() -> None:
    assert not hung(decode('["Gpu",{"key":"gpu3","failure":"GPU is lost"}]'))
    assert not hung(decode(LINE))


def test_a_reason_of_a_later_version_is_another() -> None:
    said = decode('["NotChecked",{"what":"Pci","subject":"node","why":"sys/x: gone","reason":"eaten","path":"sys/x"}]')
    assert said == NotChecked(what="Pci", subject="node", reason=Reason.OTHER, path="sys/x", detail="gone")


def test_an_earlier_version_reads_the_whole_sentence() -> None:
    said = NotChecked(what="Pci", subject="node", reason=Reason.UNREADABLE, path="sys/x", detail="Input/output error")
    assert encode(said) == (
        '["NotChecked",{"what":"Pci","subject":"node","why":"sys/x: Input/output error",'
        '"reason":"unreadable","path":"sys/x"}]'
    )


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_survives_a_capture(reason: Reason) -> None:
    said = NotChecked(what="Pci", subject="node", reason=reason, path="sys/x", detail="gone", how="look")
    assert decode(encode(said)) == said
