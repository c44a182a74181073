"""`linkgauge compare` on files: its inputs, exit codes and errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from linkgauge.agent.cli.main import main
from linkgauge.exporters.formats.json import as_json
from linkgauge.probes.host.recorded import dump
from tests.support.nodes.described import node, report_of

NARROW = "[device.gpu1]\nwidth = 8\n"


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["compare", *words], prog_name="linkgauge")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "good.capture").write_text(dump(node("hgx-h100")))
    (tmp_path / "bad.capture").write_text(dump(node("hgx-h100", NARROW)))
    (tmp_path / "good.json").write_text(as_json(report_of(node("hgx-h100"))))
    (tmp_path / "later.json").write_text('{"schema": "linkgauge.report/2"}')
    (tmp_path / "broken.json").write_text('{"schema": "linkgauge.report/1", "findings": 7}')
    return tmp_path


def test_exit_codes_are_those_of_diff(files: Path) -> None:
    good, bad = str(files / "good.capture"), str(files / "bad.capture")
    assert (run(good, good).exit_code, run(good, bad).exit_code) == (0, 1)


def test_json_has_the_values(files: Path) -> None:
    found = json.loads(run(str(files / "good.capture"), str(files / "bad.capture"), "--format", "json").output)
    assert found["schema"] == "linkgauge.comparison/1"
    assert found["differences"][1] == {
        "group": "links",
        "devices": ["0000:1a:03.0", "gpu1"],
        "what": "PCIe width",
        "a": 16,
        "b": 8,
        "unit": "lanes",
    }


def test_a_report_and_a_capture_can_be_compared(files: Path) -> None:
    found = run(str(files / "good.json"), str(files / "bad.capture"))
    assert found.exit_code == 1
    assert "only in B: pcie-link-narrow gpu1" in found.output


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent.json", "absent.json: No such file or directory"),
        ("later.json", "the report has the format linkgauge.report/2; this version reads linkgauge.report/1"),
        ("broken.json", "not a valid report: Expected `array`, got `int` - at `$.findings`"),
    ],
)
def test_bad_input_is_an_error_of_one_line(files: Path, name: str, message: str) -> None:
    found = run(str(files / name), str(files / "good.capture"))
    assert found.exit_code == 64
    assert found.output.rstrip().endswith(message)
    assert "--from" not in found.output
    assert found.output.count("\n") == 1


@pytest.mark.slow
def test_without_b_the_command_reads_this_machine(files: Path) -> None:
    found = run(str(files / "good.capture"))
    assert found.exit_code == 1
    assert "  B  this machine" in found.output
