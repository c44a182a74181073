"""`linkgauge gate`: open or closed, from the status file of the service and the table [gate] of a site file."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from linkgauge.agent.cli.main import main
from linkgauge.agent.gate import decision
from linkgauge.agent.gate.decision import decide
from linkgauge.agent.slurm.health_check import CheckRecord, keep
from linkgauge.agent.state import acceptance, status_file
from linkgauge.agent.state.status_file import StatusUnknown
from linkgauge.models.facts.units import as_utc
from linkgauge.models.report import Finding
from linkgauge.models.site.gate import Gate as Table
from linkgauge.models.site.gate import causes, why_open
from linkgauge.models.site.schema import read_site
from tests.support.nodes.daemon_nodes import Node
from tests.support.nodes.described import node, report_of

NINE = '[[machine]]\nname = "ours"\nsource = "a mistake"\ngpu = "*"\nproduct = "*"\ngpus = 9\n'
ENFORCED = '[gate]\nenforce = true\ncodes = ["gpu-missing"]\n'
SENTENCE = "gpu-missing node: 8 of the 9 GPUs of ours are there (verdict: failed)"
OTHER = "failed for gpu-missing node, which is not on the list"
NOBODY = "does not exist: linkgauge serve does not run here, or uses another --state-dir"


class Gate:
    """A node with a site file and a folder of state."""

    def __init__(self, folder: Path, site: str) -> None:
        self.folder, self.site = str(folder), folder / "site.toml"
        self.disabled = folder / "disabled"
        self.site.write_text(f'{site}disable_file = "{self.disabled}"\n')

    def finds(self, site: str = NINE, at: float | None = None, every: float = 15.0) -> None:
        report = report_of(node("hgx-h100"), read_site(site))
        status_file.write(self.folder, report, time.time() if at is None else at, every, {})

    def ask(self, *options: str) -> tuple[int, str]:
        done = CliRunner().invoke(main, ["gate", "--site", str(self.site), "--state-dir", self.folder, *options])
        return done.exit_code, done.output.strip()


@pytest.mark.parametrize(
    ("site", "options", "expected"),
    [
        ("[gate]\n", (), (0, f"open; with enforce = true it would close for {SENTENCE}")),
        ("[gate]\n", ("--counted",), (0, f"open; with enforce = true it would close for {SENTENCE}")),
        ("[gate]\n", ("--strict",), (2, f"closed for {SENTENCE}")),
        (ENFORCED, (), (2, f"closed for {SENTENCE}")),
        (ENFORCED, ("--strict",), (2, f"closed for {SENTENCE}")),
        (
            ENFORCED,
            ("--counted",),
            (0, f"open until the health check has counted drained nodes; it is closed for {SENTENCE}"),
        ),
        ('[gate]\nenforce = true\ncodes = ["nic-missing"]\n', (), (0, f"open: {OTHER}")),
        ('[ignore]\n"gpu-missing" = "ordered"\n[gate]\n', ("--strict",), (2, f"closed for {SENTENCE}")),
    ],
)
def test_what_closes_it(tmp_path: Path, site: str, options: tuple[str, ...], expected: tuple[int, str]) -> None:
    """A finding counts as silenced if it was silenced when the service evaluated it."""
    gate = Gate(tmp_path, site)
    gate.finds()
    assert gate.ask(*options) == expected
    gate.disabled.touch()
    opened = f"open, because {gate.disabled} exists; else it would close for {SENTENCE}"
    assert gate.ask(*options) == (0, expected[1] if expected[1].startswith("open: ") else opened)


def test_the_service_tells_what_would_drain_and_keeps_its_word_for_the_gate(
    service: Callable[..., Node], tmp_path: Path
) -> None:
    one = service(tmp_path)
    one.daemon.site = read_site(NINE)
    one.cycle(2)
    page = one.pages.read("metrics").decode()
    assert 'linkgauge_gate_would_drain{code="gpu-missing",subject="node"} 1.0' in page
    found = status_file.read(str(tmp_path), now=one.host.now(), booted=0.0)
    assert [str(one) for one in causes(found.findings, Table())] == ["gpu-missing node"]
    one.go(3600)  # the service has stopped, so the state is not known
    page = one.pages.read("metrics").decode()
    assert 'linkgauge_gate_would_drain{code="gpu-missing",subject="node"} 1.0' in page
    assert 'linkgauge_finding_stale{code="gpu-missing",subject="node"} 1.0' in page
    assert 'linkgauge_verdict{verdict="unknown"} 1.0' in page


def test_a_prolog_closes_what_the_health_check_has_drained(tmp_path: Path) -> None:
    gate = Gate(tmp_path, ENFORCED)
    gate.finds()
    keep(gate.folder, CheckRecord(drained="linkgauge: gpu-missing node"))
    assert gate.ask("--counted") == (2, f"closed for {SENTENCE}")
    gate.finds("")
    assert gate.ask("--counted") == (0, "open: ok")


def test_a_node_without_a_status_file(tmp_path: Path) -> None:
    gate = Gate(tmp_path, "[gate]\n")
    why = f"{tmp_path}/last.json {NOBODY}"
    assert gate.ask("--strict") == (0, f"open, although the status of the node is unknown: {why}")
    gate = Gate(tmp_path, f'{ENFORCED}unknown = "block"\n')
    assert gate.ask() == (2, f"closed for unknown node: {why} (verdict: unknown)")
    assert gate.ask("--counted")[0] == 0
    gate.disabled.touch()
    assert gate.ask()[0] == 0


def test_a_verdict_that_is_unknown_is_none(tmp_path: Path) -> None:
    gate = Gate(tmp_path, f'{ENFORCED}unknown = "block"\n')
    report = replace(report_of(node("hgx-h100")), verdict="unknown")
    status_file.write(gate.folder, report, time.time(), 15.0, {})
    why = "some vital checks could not be evaluated: 'linkgauge diagnose' lists them"
    assert gate.ask() == (2, f"closed for unknown node: {why} (verdict: unknown)")


@pytest.mark.parametrize(
    ("at", "every", "why"),
    [
        (1000.0, 15.0, None),
        (701.0, 15.0, None),
        (699.0, 15.0, "the service has not completed a cycle since 1970-01-01T00:11:39Z"),
        (601.0, 100.0, None),
        (599.0, 100.0, "the service has not completed a cycle since 1970-01-01T00:09:59Z"),
        (1014.0, 15.0, None),
        (
            1016.0,
            15.0,
            "the last cycle of the service is in the future (1970-01-01T00:16:56Z): the clock was set back",
        ),
        (
            499.0,
            600.0,
            "the service has not completed a cycle since this machine booted (the last one: 1970-01-01T00:08:19Z)",
        ),
    ],
)
def test_what_is_too_old(tmp_path: Path, at: float, every: float, why: str | None) -> None:
    gate = Gate(tmp_path, "[gate]\n")
    gate.finds("", at, every)
    if why is None:
        assert status_file.read(gate.folder, now=1000.0, booted=500.0).at == at
        return
    with pytest.raises(StatusUnknown) as unknown:
        status_file.read(gate.folder, now=1000.0, booted=500.0)
    assert str(unknown.value) == why


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b"\xff\0", b"[" * 100_000, b'{"version": 2, "at": 1, "every": 1}']
)
def test_a_damaged_file_is_unknown(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "last.json").write_bytes(content)
    with pytest.raises(StatusUnknown, match="damaged, or of another version"):
        status_file.read(str(tmp_path))


def test_what_is_no_file_is_unknown_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "last.json")
    with pytest.raises(StatusUnknown, match="not a plain file"):
        status_file.read(str(tmp_path))


def test_a_link_in_the_folder_of_another_user_leads_nowhere(tmp_path: Path) -> None:
    """Root writes there, and who owns the folder may have put a link into it."""
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "gate.json").symlink_to(tmp_path / "precious")
    keep(str(tmp_path), CheckRecord())
    assert (tmp_path / "precious").read_text() == "precious"
    assert not (tmp_path / "gate.json").is_symlink()


@pytest.mark.parametrize(
    ("site", "why"),
    [
        ("[gate]\nenforce = true\n", "gate: enforce = true without codes: name those for which a node may be drained"),
        ("[gate]\nenfroce = true\n", "gate: enfroce: unknown key; did you mean enforce?"),
        ("[gate]\nmax_drained = 2\n", "gate: max_drained: expected float <= 1.0"),
        (
            "[gate]\ncodes = ['gpu-mising']\n",
            "[gate]: no finding has the code 'gpu-mising'; did you mean 'gpu-missing'?",
        ),
    ],
)
@pytest.mark.parametrize("option", [(), ("--strict",), ("--counted",), ("--slurm",)])
def test_a_site_file_that_is_wrong_opens_it(tmp_path: Path, site: str, why: str, option: tuple[str, ...]) -> None:
    """The same file is on all nodes, so a mistake in it must not stop all jobs."""
    gate = Gate(tmp_path, site)
    gate.finds()
    code, told = gate.ask(*option)
    error, decision = told.splitlines()
    assert (code, decision) == (0, "open, because the site file has an error")
    assert error.startswith(f"Error: --site {gate.site}: ")
    assert error.endswith(why)


def test_options_that_exclude_each_other(tmp_path: Path) -> None:
    assert Gate(tmp_path, "[gate]\n").ask("--strict", "--slurm")[0] == 64


def test_a_file_system_that_hangs_opens_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answered = Event()
    gate = Gate(tmp_path, ENFORCED)
    gate.finds()
    monkeypatch.setattr(os.path, "exists", lambda path: answered.wait())
    monkeypatch.setattr(decision, "_SECONDS", 0.01)
    seen = decide(str(gate.site), gate.folder)
    answered.set()
    assert not seen.closed
    assert seen.disabled == f"the file system of {gate.disabled} did not answer within 0.01 s"


def finding(code: str = "pcie-link-narrow", **fields: Any) -> Finding:
    return Finding(**{"code": code, "severity": "critical", "subject": "gpu0", "message": "m", **fields})


@pytest.mark.parametrize(
    ("found", "codes", "why"),
    [
        (finding(), None, None),
        (finding("fabric-manager-down"), None, None),
        (finding("gpu-xid", kind="event"), None, "is an event, not a state"),
        (finding("bandwidth-low", kind="measurement"), None, "is a measurement, not a state"),
        (finding(confidence="likely"), None, "is likely, not certain"),
        (finding(severity="warning"), None, "is not critical"),
        (finding(severity="info"), None, "is no fault"),
        (finding(silenced="ordered"), None, "is silenced"),
        (finding(stale="no answer"), None, None),
        (finding("gpu-xid", kind="event"), ("gpu-xid",), None),
        (finding(severity="warning"), ("pcie-link-narrow",), None),
        (finding(), ("gpu-xid",), "is not on the list"),
    ],
)
def test_without_a_list_critical_states_that_are_certain_close_it(
    found: Finding, codes: tuple[str, ...] | None, why: str | None
) -> None:
    table = Table(codes=codes)
    assert why_open(found, table) == why
    assert [(one.code, one.subject) for one in causes([found], table)] == ([] if why else [(found.code, "gpu0")])


def test_a_finding_that_another_finding_explains_closes_it() -> None:
    cause = finding("fabric-manager-down", subject="node", explains=("nvlink-fabric-incomplete:gpu0",))
    listed = Table(codes=("nvlink-fabric-incomplete",))
    assert [str(one) for one in causes([cause], listed)] == ["nvlink-fabric-incomplete gpu0"]
    assert list(causes([replace(cause, confidence="likely")], listed)) == []
    assert list(causes([replace(cause, silenced="ordered")], listed)) == []


def test_the_last_findings_of_a_service_that_stopped_close_it_until_the_node_is_accepted(
    tmp_path: Path, booted_long_ago: None
) -> None:
    gate = Gate(tmp_path, ENFORCED)
    at = time.time() - 1000
    gate.finds(at=at)
    since = as_utc(at)
    text = SENTENCE.replace(" (verdict: failed)", f"; not evaluated since {since} (verdict: unknown)")
    assert gate.ask() == (2, f"closed for {text}")
    acceptance.write(gate.folder, acceptance.Acceptance(at=at + 1))
    why = f"the service has not completed a cycle since {since}"
    assert gate.ask() == (0, f"open, although the status of the node is unknown: {why}")


def test_a_stale_finding_closes_it(tmp_path: Path) -> None:
    """Its verdict is unknown, and the gate names the finding."""
    report = report_of(node("hgx-h100"))
    stale = finding(stale="no answer within 80 s")
    gate = Gate(tmp_path, "[gate]\n")
    status_file.write(gate.folder, replace(report, verdict="unknown", findings=(stale,)), time.time(), 15.0, {})
    assert gate.ask("--strict") == (2, "closed for pcie-link-narrow gpu0: m (verdict: unknown)")
    gate = Gate(tmp_path, ENFORCED)
    why = "pcie-link-narrow gpu0 could not be evaluated again: no answer within 80 s"
    because = "unknown for pcie-link-narrow gpu0, which is not on the list"
    assert gate.ask() == (0, f"open, although the status of the node is unknown: {why}; {because}")


def test_the_example_of_the_documentation_is_a_site_file() -> None:
    text = (Path(__file__).parents[3] / "docs" / "operate" / "site-file.md").read_text()
    example = text.partition("```toml\n")[2].partition("```")[0]
    assert read_site(example).gate.codes == ("gpu-missing", "nvlink-inactive", "pcie-link-narrow")
