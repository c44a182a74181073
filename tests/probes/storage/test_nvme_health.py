"""The health log of NVMe drives."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.jsonl import encode
from linkgauge.models.facts.machine import Node, Nvme
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import NotChecked
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.site.schema import Site
from linkgauge.probes.storage.nvme import CONTROLLERS
from linkgauge.probes.storage.nvme_health import _COMMAND, health, health_of, read_nvme_health
from tests.support.nodes.trees import tree

DRIVE = Nvme(
    key="nvme0",
    address="0000:41:00.0",
    model="PM9A3",
    state="live",
    critical_warning=0,
    spare=100,
    spare_threshold=10,
    used=3,
    media_errors=0,
)


def page(warning: int = 0, spare: int = 100, used: int = 3, errors: int = 0, kelvin: int = 310) -> bytes:
    head = bytes([warning, *kelvin.to_bytes(2, "little"), spare, 10, used])
    return head.ljust(160, b"\0") + errors.to_bytes(16, "little") + bytes(336)


def test_the_command_has_the_size_that_the_number_of_the_ioctl_names() -> None:
    assert _COMMAND.size == 0xC0484E41 >> 16 & 0x3FFF == 72


def test_the_log_page() -> None:
    seen = health_of("nvme0", page(warning=4, spare=90, used=101, errors=1 << 70))
    assert isinstance(seen, Nvme)
    assert replace(seen, cites={}) == Nvme(
        key="nvme0", critical_warning=4, spare=90, spare_threshold=10, used=101, media_errors=1 << 70
    )


@pytest.mark.parametrize("content", [bytes(512), b"", page()[:100]])
def test_an_empty_page_is_no_health(content: bytes) -> None:
    (seen,) = [health_of("nvme0", content)]
    assert isinstance(seen, NotChecked)
    assert (seen.what, seen.reason) == ("Nvme.critical_warning", Reason.UNREADABLE)


def test_a_drive_that_is_not_there() -> None:
    (seen,) = health("nvme-none")
    assert isinstance(seen, NotChecked)
    assert (seen.subject, seen.reason, seen.how) == ("nvme-none", Reason.NOT_INSTALLED, None)


def test_only_live_drives_of_this_machine_are_asked() -> None:
    files: dict[str, str] = {}
    for name, transport, state in (("nvme0", "pcie", "live"), ("nvme1", "tcp", "live"), ("nvme2", "pcie", "dead")):
        files |= {f"{CONTROLLERS}/{name}/transport": transport, f"{CONTROLLERS}/{name}/state": state}
    assert list(read_nvme_health(tree(files, {("nvme_health", "nvme0"): (encode(DRIVE),)}))) == [DRIVE]
    assert list(read_nvme_health(tree({}))) == []


@pytest.mark.parametrize(
    ("change", "severity", "text"),
    [
        ({"critical_warning": 0b1000}, "critical", "is read-only"),
        ({"critical_warning": 0b0101}, "critical", "is unreliable"),
        ({"critical_warning": 0b0010}, "warning", "temperature"),
        ({"spare": 9}, "warning", "9 % of its spare blocks left, its threshold is 10 %"),
        ({"media_errors": 7}, "info", "7 errors"),
        ({"used": 100}, "info", "100 % of its rated endurance"),
    ],
)
def test_a_drive_that_reports_a_failure(change: dict[str, Any], severity: str, text: str) -> None:
    drive = replace(DRIVE, **change)
    (finding,) = evaluate(assemble([Node(key="node"), drive], Site(), 1000.0)).findings
    assert (finding.code, finding.severity, finding.subject) == ("storage-degraded", severity, "nvme0")
    assert text in finding.message


def test_a_healthy_drive_and_one_that_was_not_read() -> None:
    unread = replace(DRIVE, critical_warning=None, spare=None, spare_threshold=None, used=None, media_errors=None)
    lost = NotChecked(what="Nvme.critical_warning", subject="nvme0", reason=Reason.PERMISSION, detail="denied")
    for records, evaluated in (([DRIVE], True), ([unread, lost], False)):
        report = evaluate(assemble([Node(key="node"), *records], Site(), 1000.0))
        assert report.findings == ()
        assert report.checks["storage-degraded"] is evaluated
