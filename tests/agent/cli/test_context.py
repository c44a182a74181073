"""Limits of a process: `diagnose --context` on one capture, for the host and for a job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from linkgauge.agent.cli.main import main
from linkgauge.models.rules.host.job_limits import NOT_A_JOB
from linkgauge.probes.host.recorded import dump
from tests.support.nodes.described import node, with_entry

LIMITS = "Max locked memory         8388608              8388608              bytes"


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A node with GPUs and InfiniBand, recorded where the limit on locked memory was the usual one."""
    path = tmp_path_factory.mktemp("context") / "record"
    path.write_text(dump(with_entry(node("hgx-h100"), "proc/self/limits", LIMITS)))
    return path


def diagnosed(record: Path, *options: str) -> dict[str, Any]:
    done = CliRunner().invoke(main, ["diagnose", "--from", str(record), "--format", "json", *options])
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def gaps(report: dict[str, Any]) -> list[str]:
    return [gap["subject"] for gap in report["not_checked"] if gap["what"] == NOT_A_JOB.what]


@pytest.mark.parametrize("options", [(), ("--context", "host")])
def test_limits_of_jobs_are_not_checked_on_hosts(record: Path, options: tuple[str, ...]) -> None:
    report = diagnosed(record, *options)
    assert report["context"] == "host"
    assert gaps(report) == ["node"]
    assert report["checks"]["memlock-low"] is False
    assert "memlock-low" not in {finding["code"] for finding in report["findings"]}


def test_limits_of_a_job(record: Path) -> None:
    report = diagnosed(record, "--context", "job")
    assert report["context"] == "job"
    assert gaps(report) == []
    found = [finding for finding in report["findings"] if finding["code"] == "memlock-low"]
    assert [(finding["subject"], finding["observed"]) for finding in found] == [("node", 8388608)]
    assert report["verdict"] == "failed"


def test_variables_of_a_job(tmp_path: Path) -> None:
    """Only in a job; a capture has no other variable."""
    path = tmp_path / "record"
    path.write_text(dump(with_entry(node("hgx-h100"), "proc/self/environ", "TOKEN=secret\0NCCL_P2P_DISABLE=1\0")))
    assert "nccl-env" not in {finding["code"] for finding in diagnosed(path)["findings"]}
    report = diagnosed(path, "--context", "job")
    found = [finding for finding in report["findings"] if finding["code"] == "nccl-env"]
    assert [(finding["observed"], finding["severity"]) for finding in found] == [("1", "critical")]
    assert "secret" not in json.dumps(report)


def test_there_is_no_other_context(record: Path) -> None:
    done = CliRunner().invoke(main, ["diagnose", "--from", str(record), "--context", "dumps"])
    assert done.exit_code == 64
    assert "'dumps' is not one of 'host', 'job'" in done.output
