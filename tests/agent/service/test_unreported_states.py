"""A driver that answers "not supported" for a state that it reported before: the finding is stale, not over."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from linkgauge.agent.pipeline.diagnose import Memory
from linkgauge.agent.service import checkpoint
from linkgauge.models.report import Report
from linkgauge.probes.host.recorded import Recorded
from linkgauge.probes.system.node import BOOT_ID
from tests.support.nodes.daemon_nodes import Node
from tests.support.nodes.described import node, with_entry

GPU = "0000:3b:00.0"  # gpu2


def with_fields(recorded: Recorded, **fields: str | None) -> Recorded:
    """The driver reports these values of gpu2. It does not report those that are None."""

    def changed(line: str) -> str:
        for name, value in fields.items():
            line = re.sub(rf',"{name}":[^,}}\]]+', f',"{name}":{value}' if value is not None else "", line)
        return line

    nvml = tuple(changed(line) if line.startswith('["Gpu",{"key":"gpu2"') else line for line in recorded.calls["nvml",])
    return Recorded(recorded.taken, recorded.entries, {**recorded.calls, ("nvml",): nvml})


def found(report: Report) -> list[tuple[str, str, bool]]:
    findings = (one for one in report.findings if one.severity != "info")
    return [(one.code, one.subject, one.stale is not None) for one in findings]


@pytest.mark.parametrize(
    ("name", "fault", "code"),
    [
        ("remap_failed", "true", "gpu-row-remap"),
        ("sram_threshold", "true", "gpu-ecc"),
        ("fabric_state", '"in progress"', "nvlink-fabric-incomplete"),
        ("ecc", "false", "gpu-mode"),
    ],
)
def test_a_state_that_the_driver_reports_no_more(
    service: Callable[..., Node], tmp_path: Path, name: str, fault: str, code: str
) -> None:
    one = service(tmp_path)
    healthy = one.host.recorded
    one.host.recorded = with_fields(healthy, **{name: fault})
    before = found(one.cycle(3))
    assert code in {known[0] for known in before}
    one.host.recorded = with_fields(healthy, **{name: None})
    report = one.cycle(4)
    assert {(known[0], known[2]) for known in found(report)} == {(code, True)}
    assert report.verdict == "unknown"
    one.host.recorded = healthy
    assert found(one.cycle(3)) == []


def test_a_state_that_a_gpu_never_had(service: Callable[..., Node], tmp_path: Path) -> None:
    """GPUs before Ampere have no remapping failures: a boot ends a retirement of pages that waits for it."""
    one = service(tmp_path)
    old = with_entry(with_fields(node("hgx-h100"), remap_failed=None), BOOT_ID, "one")
    one.host.recorded = with_fields(old, remap_pending="true")
    assert found(one.cycle(3)) == [("gpu-row-remap", GPU, False)]
    one.daemon.save()
    after = service(tmp_path)
    after.host.recorded = with_entry(old, BOOT_ID, "two")
    after.daemon.memory = checkpoint.load(str(tmp_path), Memory(boot_id="two"), after.host.now())
    assert found(after.cycle(3)) == []
