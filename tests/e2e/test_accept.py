"""`linkgauge accept` as users run it: what it clears, what it refuses, and the diagnosis afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from linkgauge.models.facts.jsonl import encode
from linkgauge.models.facts.records import Evidence, Flow, Observation
from linkgauge.models.facts.units import as_utc
from linkgauge.probes.host.recorded import Recorded, dump, parse
from linkgauge.probes.measure.memory.host_memory import SIZE
from tests.support.nodes.described import FOLDER
from tests.support.nodes.small_nodes import copy, gpus_under_switches, report_of
from tests.support.programs.command_line import linkgauge

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

NODE = (FOLDER / "hgx-h100.toml").read_text()
FATAL = "[[log]]\ntext = 'nvidia-nvswitch0: SXid (PCI:0000:d9:00.0): 20034, Fatal, Link 30 LTSSM Fault Up'\n"
NARROW = "[device.gpu1]\nwidth = 8\n"
THEN = "2026-11-21T03:00:00Z"


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("captures")
    for name, further in {"well": "", "logged": FATAL, "narrow": NARROW + FATAL}.items():
        (folder / f"{name}.toml").write_text(f"{NODE}\n{further}")
        made = linkgauge("capture", "--synthetic", f"{name}.toml", name, cwd=folder)
        assert made.returncode == 0
    return folder


def verdict(captures: Path, name: str, *options: str) -> tuple[int, list[tuple[str, str]]]:
    done = linkgauge("diagnose", "--format", "json", "--from", name, *options, cwd=captures)
    return done.returncode, [(one["code"], one["severity"]) for one in json.loads(done.stdout)["findings"]]


@pytest.mark.slow
def test_it_clears_what_was_logged_before(captures: Path, tmp_path: Path) -> None:
    state = ("--state-dir", str(tmp_path / "state"))
    assert verdict(captures, "logged", *state) == (2, [("nvswitch-error", "critical")])
    done = linkgauge("accept", "--from", "logged", *state, cwd=captures)
    assert (done.returncode, done.stderr) == (0, "")
    head, *rest = done.stdout.splitlines()
    assert head == f"ACCEPTED  hgx  {THEN}"
    assert rest[0].startswith("  cleared      nvswitch-error 0000:d9:00.0: SXid 20034")
    assert verdict(captures, "logged", *state) == (0, [("nvswitch-error", "info")])
    assert verdict(captures, "logged")[0] == 2  # nothing is kept of a recording without --state-dir
    text = " ".join(linkgauge("diagnose", "-v", "--from", "logged", *state, cwd=captures).stdout.split())
    assert f"(the node was accepted {THEN}, after it)" in text
    again = linkgauge("accept", "--from", "logged", *state, cwd=captures)
    assert "cleared" not in again.stdout


def test_what_is_wrong_now_is_refused(captures: Path, tmp_path: Path) -> None:
    state = ("--state-dir", str(tmp_path / "state"))
    done = linkgauge("accept", "--from", "narrow", *state, cwd=captures)
    assert (done.returncode, done.stderr) == (2, "")
    assert done.stdout.startswith("NOT ACCEPTED  hgx  failed\n  critical pcie-link-narrow 0000:1e:00.0: ")
    assert "nvswitch-error" not in done.stdout
    assert not (tmp_path / "state").exists()
    done = linkgauge("accept", "--from", "narrow", "--anyway", *state, cwd=captures)
    assert done.returncode == 0
    assert "  still there  critical pcie-link-narrow" in done.stdout
    assert verdict(captures, "narrow", *state) == (2, [("pcie-link-narrow", "critical"), ("nvswitch-error", "info")])


def test_a_node_of_which_nothing_is_known_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sys").mkdir()
    done = linkgauge("accept", "--root", str(tmp_path))
    assert done.returncode == 3
    assert done.stdout.startswith("NOT ACCEPTED  unnamed node  unknown\n")
    assert not (tmp_path / "var").exists()
    assert linkgauge("accept", "--root", str(tmp_path), "--anyway").returncode == 0
    assert (tmp_path / "var/lib/linkgauge/accepted.json").is_file()  # that machine's own


@pytest.mark.slow
def test_a_damaged_state_is_a_warning_and_no_end(captures: Path, tmp_path: Path) -> None:
    (tmp_path / "accepted.json").write_text("{")
    plain = linkgauge("diagnose", "--from", "logged", "--format", "json", cwd=captures)
    for command, code in (("diagnose", plain.returncode), ("accept", 0)):
        done = linkgauge(command, "--from", "logged", "--state-dir", str(tmp_path), cwd=captures)
        assert done.returncode == code
        assert done.stderr.startswith(f"Warning: {tmp_path}/accepted.json: damaged (")
        assert len(done.stderr.splitlines()) == 1
    assert linkgauge("diagnose", "--from", "logged", "--state-dir", str(tmp_path), cwd=captures).stderr == ""


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--from well", "--from is a recording, not this machine: name a state folder for it with --state-dir"),
        ("--from well --state-dir well.toml", "--state-dir well.toml: "),
        ("--from well --state-dir /proc/none", "--state-dir /proc/none: No such file or directory"),
        ("--from none --state-dir x", "--from none: No such file or directory"),
    ],
)
def test_mistakes(captures: Path, options: str, sentence: str) -> None:
    done = linkgauge("accept", *options.split(), cwd=captures)
    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr.startswith(f"Error: {sentence}")
    assert len(done.stderr.splitlines()) == 1


def test_this_machine(tmp_path: Path) -> None:
    """The machine may be busy or faulty. --anyway accepts it, and diagnose reads the acceptance without a warning."""
    state = ("--passive", "--state-dir", str(tmp_path))
    done = linkgauge("accept", "--anyway", *state)
    assert done.returncode == 0
    assert done.stdout.startswith("ACCEPTED  ")
    kept = json.loads((tmp_path / "accepted.json").read_text())
    assert all(one["at"] == kept["at"] for one in kept["baseline"])
    assert linkgauge("diagnose", *state).stderr == ""


def test_rates_are_compared_with_those_of_the_acceptance() -> None:
    then = replace(copy(("gpu0", "pci0000:00"), 56.0), at=1.8e9)
    report = report_of([*gpus_under_switches(2), copy(("gpu0", "pci0000:00"), 54.0)], baseline=(then,))
    (finding,) = report.findings
    assert (finding.basis, finding.severity) == ("baseline", "warning")
    assert finding.expected_source == f"this node when it was accepted, {as_utc(1.8e9)}"


@pytest.mark.parametrize(("now", "slow"), [(10.0, False), (8.6, False), (8.4, True)])
def test_a_memory_varies_more_than_a_link(now: float, slow: bool) -> None:
    report = report_of([copy(("numa0",), now)], baseline=(copy(("numa0",), 10.0),))
    assert [one.basis for one in report.findings] == (["baseline"] if slow else [])


def measured(captures: Path, name: str, *rates: float) -> None:
    """The capture of the healthy node, with copies in its two NUMA nodes as they would have been measured then."""
    machine = parse((captures / "well").read_text())
    calls: dict[tuple[str, ...], tuple[str, ...]] = {
        ("host_memory", f"numa{place}"): (
            encode(
                Observation(
                    about=Flow("copy", (f"numa{place}",), SIZE),
                    quantity="rate",
                    unit="bytes_per_second",
                    value=rate,
                    at=machine.taken,
                    busy=True,
                    evidence=Evidence("numpy.copyto", "4 threads"),
                )
            ),
        )
        for place, rate in enumerate(rates)
    }
    (captures / name).write_text(dump(Recorded(machine.taken, machine.entries, {**machine.calls, **calls})))


@pytest.mark.slow
def test_rates_are_compared_with_those_of_that_day(captures: Path, tmp_path: Path) -> None:
    state = ("--state-dir", str(tmp_path / "state"))
    measured(captures, "fast", 60e9, 61e9)
    measured(captures, "slower", 40e9, 60e9)
    done = linkgauge("accept", "--from", "fast", *state, cwd=captures)
    assert done.returncode == 0
    assert "  baseline     2 rates measured" in done.stdout
    assert verdict(captures, "fast", *state) == (0, [])
    assert verdict(captures, "slower", *state) == (1, [("bandwidth-low", "warning")])
    assert verdict(captures, "slower", "--level", "passive", *state) == (0, [])
    assert verdict(captures, "slower", "--skip", "host_memory", *state) == (0, [])
    (finding,) = json.loads(linkgauge("diagnose", "--format", "json", "--from", "slower", *state, cwd=captures).stdout)[
        "findings"
    ]
    assert (finding["subject"], finding["basis"], finding["expected"], finding["observed"]) == (
        "numa0",
        "baseline",
        60e9,
        40e9,
    )
