"""`linkgauge status`, and the confirmations of hold, release and window."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result
from msgspec.structs import replace

from linkgauge.agent.cli.main import main
from linkgauge.agent.cli.output import reports
from linkgauge.agent.pipeline.cycle import Memory
from linkgauge.agent.service import checkpoint
from linkgauge.agent.service.config import Config, Probing
from linkgauge.agent.state import status_file
from linkgauge.models.facts.units import as_utc
from linkgauge.models.site.schema import Site
from tests.support.nodes.daemon_nodes import Node
from tests.support.nodes.described import BROKEN, node, with_entry

DAY = 86400.0


@pytest.fixture
def hgx(service: Callable[..., Node], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """A service whose clock is that of this machine."""
    (tmp_path / "locks").mkdir()
    monkeypatch.setenv("LINKGAUGE_LOCK_DIR", str(tmp_path / "locks"))
    one = service(tmp_path, config=Config(probes=Probing(every="6h", jitter="1m")))
    one.host.wall = time.time() - one.host.recorded.taken - 60
    return one


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def status(one: Node, *options: str) -> Result:
    return run("status", "--state-dir", one.daemon.folder, *options)


def test_a_node_with_a_fault_a_source_that_hangs_and_a_release(hgx: Node) -> None:
    hgx.host.recorded = node("hgx-h100", BROKEN)
    hgx.daemon._probe_at = hgx.monotonic + 7300
    hgx.cycle()
    first = hgx.host.wall - 15 + hgx.host.recorded.taken
    hgx.host.hangs = {"nvml"}
    hgx.cycle(2)
    last = hgx.host.wall - 15 + hgx.host.recorded.taken
    released = run("release", "--for", "10m").output
    assert re.fullmatch(
        r"This machine is released by \S+, process \d+, for another (600|599) s: linkgauge has closed the GPU driver, "
        r"and no measurement runs or starts\. To end it: linkgauge release --end\n",
        released,
    )
    done = status(hgx)
    lines = re.sub(r"by \S+, process \d+|\d+ s(?= ago)|another \d+ s|(?<=in )\d+ s", "*", done.output).splitlines()
    start = lines.index("WARNING nvme3 (40:00.0) runs on x2 of x4: reseat the drive")
    assert lines[:2] == ["FAILED  hgx  linkgauge serve", "  last cycle       * ago; the interval is 15 s"]
    assert lines[start + 1] == f"    storage-link-slow: first seen {as_utc(first)}, last {as_utc(last)}"
    assert [line for line in lines[start:] if line.startswith("  ") and not line.startswith("   ")] == [
        "  stuck source     gpus: no answer to 1 read; next read in *",
        "  no measurement   released *, for *",
        "  next measurement in 2 h",
    ]
    assert done.exit_code == 2
    assert run("release", "--end").output.startswith("The release ended; before, this machine was released by ")
    assert run("release", "--end").output == "There was no release.\n"


def test_colours_and_a_narrow_terminal(hgx: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    hgx.host.recorded = node("hgx-h100", BROKEN)
    hgx.cycle()
    plain = status(hgx).output
    monkeypatch.setattr(reports, "in_colour", lambda output: True)
    monkeypatch.setattr(reports, "terminal_columns", lambda output: 60)
    coloured = status(hgx).output
    bare = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert coloured.startswith("\x1b[1;31mFAILED\x1b[0m  hgx  linkgauge serve\n")
    assert "\n\x1b[1;33mWARNING\x1b[0m nvme3 (40:00.0) runs on x2 of x4: reseat the drive\n" in coloured
    assert max(map(len, bare.splitlines())) <= 60 < max(map(len, plain.splitlines()))
    assert [word for word in bare.split() if not word.isdigit()] == [
        word for word in plain.split() if not word.isdigit()
    ]


def test_json_has_the_same(hgx: Node) -> None:
    hgx.host.recorded = node("hgx-h100", BROKEN)
    hgx.cycle()
    done = status(hgx, "--format", "json")
    found = json.loads(done.output)
    narrow = next(one for one in found.pop("findings") if one["code"] == "pcie-link-narrow")
    assert (narrow["device"], narrow["fact"], narrow["first_step"], narrow["first_seen"]) == (
        "gpu1 (module 2, 1e:00.0)",
        "runs on x8 of x16",
        "power-cycle, then reseat",
        narrow["last_seen"],
    )
    assert (found["schema"], found["node"], found["verdict"], done.exit_code) == (
        "linkgauge.status/1",
        "hgx",
        "failed",
        2,
    )
    assert found.keys() == {
        "schema", "node", "verdict", "unknown_because", "last_cycle", "age_seconds", "interval_seconds", "stuck",
        "requests", "next_measurement", "unused_ignore_codes",
    }  # fmt: skip


def test_a_healthy_node_an_unknown_one_and_a_service_that_stopped(hgx: Node, booted_long_ago: None) -> None:
    hgx.daemon.config = Config()
    hgx.cycle(2)
    done = status(hgx)
    assert (done.exit_code, done.output.splitlines()[2:]) == (
        0,
        ["  findings         none", "  next measurement none: the configuration has no [probes] every"],
    )
    read = status_file.read(hgx.daemon.folder)
    report = hgx.daemon.report
    assert report
    unknown = replace(report, verdict="unknown", checks={**report.checks, "gpu-missing": False})
    state = replace_state(read.service, "This node is not known to be healthy: gpu-missing could not be checked.")
    status_file.write(hgx.daemon.folder, unknown, time.time(), 15.0, {}, state)
    done = status(hgx)
    assert done.exit_code == 3
    assert "unknown because  This node is not known to be healthy: gpu-missing could not be checked." in done.output
    status_file.write(hgx.daemon.folder, report, time.time() - 3600, 15.0, {}, read.service)
    done = status(hgx)
    assert done.exit_code == 3
    text = " ".join(done.output.split())
    assert text.startswith("UNKNOWN hgx linkgauge serve unknown because the service has not completed a cycle since ")
    assert "Start the service with 'systemctl start linkgauge'" in text


def replace_state(state: status_file.ServiceState, why: str) -> status_file.ServiceState:
    return status_file.ServiceState(node=state.node, unknown=why)


def test_no_service(tmp_path: Path) -> None:
    done = run("status", "--state-dir", str(tmp_path))
    assert (done.exit_code, done.stdout) == (3, "")
    assert done.stderr == (
        f"Error: {tmp_path}/last.json does not exist: linkgauge serve does not run here, or uses another --state-dir. "
        "Start the service with 'systemctl start linkgauge', name its folder with --state-dir, or examine the node "
        "without it: 'linkgauge diagnose'.\n"
    )


def test_an_entry_that_matches_nothing_for_30_days(
    service: Callable[..., Node], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The checkpoint keeps the times over restarts. The status file, which all users can read, has the codes alone."""
    hgx = service(tmp_path, name="desktop")
    (width,) = (path for path in hgx.host.recorded.entries if path.endswith("0000:02:00.0/current_link_width"))
    hgx.host.recorded = with_entry(hgx.host.recorded, width, "2")
    used, unused = "storage-link-slow:02:00.0", "nic-errors:SN4711"
    hgx.daemon.site = Site(ignore={used: "riser ordered", unused: "x"})
    hgx.host.wall = time.time() - hgx.host.recorded.taken - 31 * DAY - 60
    hgx.cycle()
    hgx.daemon.save()
    stored = checkpoint.load(hgx.daemon.folder, Memory(), hgx.host.now()).ignored
    hgx.go(29 * DAY)
    hgx.cycle()
    assert "matched no finding" not in caplog.text
    assert stored.keys() == {used, unused}
    hgx.go(2 * DAY)
    hgx.cycle(2)
    messages = [one.message for one in caplog.records if "matched no finding" in one.message]
    assert messages == [f"[ignore] {unused}: matched no finding for 30 days: delete the entry"]
    lines = [" ".join(line.split()) for line in status(hgx).output.splitlines()]
    assert "[ignore] entries matched no finding for 30 days: nic-errors; the log names the entries" in lines
    assert "SN4711" not in Path(hgx.daemon.folder, "last.json").read_text()


def test_hold_and_window_confirm(hgx: Node, tmp_path: Path) -> None:
    assert run("hold", "--for", "1m").output.endswith(
        " s: no measurement runs or starts. To end it: linkgauge hold --end\n"
    )
    assert run("hold", "--end").output.startswith("The hold ended; before, this machine was held by ")
    root = tmp_path / "root"
    (root / "proc").mkdir(parents=True)
    done = run("window", "open", "4711", "--state-dir", str(tmp_path), "--root", str(root))
    assert done.output == (
        "The window of job 4711 is open. 'linkgauge window close 4711' shows what changed, and deletes it.\n"
    )


def test_completion_knows_the_command() -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_LINKGAUGE_COMPLETE" in run("completion", shell).output
    completed = ShellComplete(main, {}, "linkgauge", "_LINKGAUGE_COMPLETE").get_completions
    assert [one.value for one in completed([], "st")] == ["status"]
    assert [one.value for one in completed(["status", "--format"], "")] == ["text", "json"]
