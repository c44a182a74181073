"""The gate with a report of `linkgauge fabric`: it closes for the nodes in the report, until they are accepted."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from linkgauge.agent.cli.main import main
from linkgauge.agent.slurm.health_check import record_of
from linkgauge.agent.state import acceptance, status_file
from linkgauge.exporters.commands.fabric import as_json
from linkgauge.models.fabric.fabric_localization import Cause
from linkgauge.models.fabric.report import FabricReport
from linkgauge.models.fabric.wiring import Pair, Port
from linkgauge.models.facts.units import as_utc
from tests.support.nodes.described import node, report_of
from tests.support.programs.slurm_stub import Cluster

CAUSE = Cause(
    kind="port",
    names=("gpu-7",),
    direction="send",
    pairs=(Pair(Port("gpu-7"), Port("gpu-8")),),
    rate=20e9,
    carried=20e9,
    usual=48e9,
    alone=20e9,
)
SENTENCE = "gpu-7 sends 20.0 GB/s in 1 flow; other nodes reach 48.0 GB/s; a flow alone reaches 20.0 GB/s"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A healthy node, and a report of the fabric that names gpu-7."""
    status_file.write(str(tmp_path), report_of(node("hgx-h100")), time.time(), 15.0, {})
    site = f'[gate]\nenforce = true\ncodes = ["node-slow"]\ndisable_file = "{tmp_path}/disabled"\n'
    (tmp_path / "site.toml").write_text(site)
    report = FabricReport(
        taken_at=as_utc(time.time() - 60),
        seconds=9.0,
        planned_seconds=9.0,
        planned_bytes=1e9,
        rounds=2,
        rounds_of_all_pairs=2,
        members=(),
        causes=(CAUSE,),
    )
    (tmp_path / "fabric.json").write_text(as_json(report))
    return tmp_path


def gate(folder: Path, name: str, *options: str) -> Result:
    words = ["--site", f"{folder}/site.toml", "--state-dir", str(folder), "--fabric", f"{folder}/fabric.json"]
    return CliRunner().invoke(main, ["gate", *words, "--node", name, *options])


def test_the_gate_of_a_named_node_closes_until_it_is_accepted(folder: Path) -> None:
    closed = gate(folder, "gpu-7")
    assert (closed.exit_code, closed.output) == (2, f"closed for node-slow gpu-7: {SENTENCE} (verdict: ok)\n")
    assert (gate(folder, "gpu-8").exit_code, gate(folder, "gpu-8").output) == (0, "open: ok\n")
    acceptance.write(str(folder), acceptance.Acceptance(at=time.time()))
    assert gate(folder, "gpu-7").exit_code == 0


def test_a_wrong_report_is_one_line(folder: Path) -> None:
    (folder / "fabric.json").write_text('{"schema": "linkgauge.report/1"}')
    assert gate(folder, "gpu-7").exit_code == 64
    assert "not a linkgauge.fabric/1 report" in gate(folder, "gpu-7").output


@pytest.mark.slow
@pytest.mark.parametrize("refused", [0, 2])
def test_the_health_check_drains_a_named_node(folder: Path, refused: int) -> None:
    """Also if a busy controller refuses the first calls."""
    cluster = Cluster(folder / "cluster", [f"gpu-{number}" for number in range(100)])
    busy = folder / "busy"
    busy.write_text("x" * refused)
    program = folder / "scontrol"
    program.write_text(
        f'#!/bin/sh\n[ ! -s {busy} ] || {{ truncate -s -1 {busy}; exit 1; }}\nexec {cluster.program} "$@"\n'
    )
    program.chmod(0o755)
    for name in ("gpu-8", "gpu-7"):
        gate(folder, name, "--slurm", "--scontrol", str(program))
    assert cluster.drained == ["gpu-7"]
    assert cluster.get("gpu-7", "Reason").startswith("linkgauge: node-slow gpu-7 [")
    assert record_of(str(folder)).drained == "linkgauge: node-slow gpu-7"
