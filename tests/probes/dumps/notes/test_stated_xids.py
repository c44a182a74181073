"""Xids that people and programs name without the line of the driver: each number on its own GPU."""

from __future__ import annotations

import pytest

from linkgauge.models.evaluate import evaluate
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Finding
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.read import read_text

AT = 1795230000.0
FIRST, SECOND = "0000:65:00.0", "0000:66:00.0"


def findings(text: str) -> tuple[Finding, ...]:
    return evaluate(assemble(list(read_text("t.txt", f"{text}\n", AT)), Site(), AT, origin="dumps")).findings


def xids(text: str) -> set[tuple[str, str, str]]:
    """Subject, severity and number of each finding."""
    return {
        (one.subject, one.severity, one.message.split("Xid ")[1].split()[0].strip(",:"))
        for one in findings(text)
        if one.code == "gpu-xid"
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("65:00.0: Xid 48, DBE\n66:00.0: Xid 79, off the bus", {(FIRST, "critical", "48"), (SECOND, "critical", "79")}),
        ("Xid 79: 0000:65:00.0\nXid 119: 0000:66:00.0", {(FIRST, "critical", "79"), (SECOND, "critical", "119")}),
        ("0000:65:00.0 Xid 79\n0000:66:00.0 Xid 48", {(FIRST, "critical", "79"), (SECOND, "critical", "48")}),
        ("GPU 3 Xid 119\nGPU 4 Xid 79", {("gpu3", "critical", "119"), ("gpu4", "critical", "79")}),
        ("GPU 3: Xid 119, GPU 4: Xid 79", {("gpu3", "critical", "119"), ("gpu4", "critical", "79")}),
        ("Xid 79 on GPU 3", {("gpu3", "critical", "79")}),
        ("Xid 79 was seen on the GPU 3", {("gpu3", "critical", "79")}),
        ("Xid 79 (it fell off the bus) seen on node17 GPU 5", {("gpu5", "critical", "79")}),
        ("nvidia-xid 79 0000:65:00.0", {(FIRST, "critical", "79")}),
        ("Xid 48\nXid 13", {("gpu", "critical", "48")}),
        ("XID 79 detected on GPU-0000:65:00", {(FIRST, "critical", "79")}),
        ("Detected XID 79 for GPU 3", {("gpu3", "critical", "79")}),
        ("GPU-0 XID=79", {("gpu0", "critical", "79")}),
        ("xid: 48, gpu: 0000:65:00.0", {(FIRST, "critical", "48")}),
        ("xid=79 gpu=3", {("gpu3", "critical", "79")}),
        ("GPU 00000000:65:00.0 reports Xid 79", {(FIRST, "critical", "79")}),
        ("kernel: Xid 119, pid=1234 timeout of the GSP\nkernel: Xid 31, pid=1235 fault", {("gpu", "critical", "119")}),
        ("Observed Xids on this node: 31, 48, 94", {("gpu", "critical", "48")}),
        ("XID error-codes found: 79, 94. FaultCode: NHC2001", {("gpu", "critical", "79")}),
        ("  count  xid\n     12  31\n      1  79", {("gpu", "critical", "79")}),
        ("GPU,XID,count\n0000:65:00.0,79,1", {(FIRST, "critical", "79")}),
    ],
)
def test_each_number_is_on_its_own_gpu(text: str, expected: set[tuple[str, str, str]]) -> None:
    assert xids(text) == expected


def test_a_list_names_all_its_numbers() -> None:
    (found,) = findings("XID error-codes found: 79, 94. FaultCode: NHC2001")
    assert "also Xid 94" in found.message


@pytest.mark.parametrize(
    "text",
    [
        "no Xid 79 on GPU 3",
        "GPU 3: no Xid 79",
        "Xid 79 on GPU 3: no",
        "Xid 79 on GPU 3: none",
        "Xid 79 on GPU 3 was not seen",
        "Xid 79 on GPU 3 is resolved",
        "GPU 3: Xid 79 (fixed)",
        "Xids: 0",
        "65:00.0: Xid none",
        "2026-11-27 10:31:22.5 Xid messages of GPU 3 are read",
    ],
)
def test_an_xid_that_did_not_happen_is_none(text: str) -> None:
    assert not [one for one in findings(text) if one.severity != "info"]


def test_a_time_is_no_address() -> None:
    assert not [one for one in findings("10:31.5 Xid 79") if one.subject.startswith("0000:10")]


def test_mentions_of_different_numbers_are_counted_apart() -> None:
    (found,) = findings("We see Xid 79 now and then.\nAfter the update it was Xid 31 and not as before.\nXid 79 again.")
    assert "Xid 79 is mentioned" in found.message
    assert "Xid 31 is mentioned" in found.message
