"""A part of bench/accuracy/fault_injection.py: it finds faults where they are, and nothing on odd healthy nodes."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from bench.accuracy.fault_injection import KINDS, draw, evaluated, failures, missed, shown, trials
from bench.accuracy.healthy_nodes import CLOUDS, NODES, HealthyNode, node_of
from bench.accuracy.unusual_healthy_nodes import ODDITIES
from linkgauge.agent.cli.main import main
from linkgauge.exporters.text.report import as_text
from linkgauge.probes.host.recorded import dump
from linkgauge.probes.synthetic.build import build

NAMES = ("a100-pcie", "hgx-h100", "p4d", "perlmutter", "rtx-pro-6000", "server-raid")
# By number of faults and seed: the node, its faults, and all findings of severity warning or critical.
DRAWN = {
    (1, 16): ("perlmutter", {"NVLinks are inactive": ("nvlink-inactive", "0000:82:00.0")}),
    (1, 24): ("rtx-pro-6000", {"a device's link is slow": ("pcie-link-slow", "0000:24:00.0")}),
    (1, 28): ("server-raid", {"a device's link is narrow": ("storage-link-slow", "0000:b2:00.0")}),
    (1, 54): ("perlmutter", {"all NVLinks of a GPU are slow": ("bandwidth-low", "0000:41:00.0")}),
    (2, 1): (
        "rtx-pro-6000",
        {
            "one direction of a PCIe link": ("bandwidth-low", "0000:04:00.0"),
            "the power limit is low": ("gpu-clocks-limited", "0000:a4:00.0"),
        },
    ),
    (2, 7): (
        "hgx-h100",
        {
            "a GPU is gone": ("gpu-missing", "node"),
            "a switch's uplink is narrow": ("pcie-link-narrow", "0000:19:00.0"),
        },
    ),
    (2, 23): (
        "a100-pcie",
        {"an Xid": ("gpu-xid", "0000:a2:00.0"), "NVLinks are inactive": ("nvlink-inactive", "0000:21:00.0")},
    ),
    (2, 33): (
        "server-raid",
        {
            "a device's link is slow": ("storage-link-slow", "0000:b1:00.0"),
            "an array lost a member": ("storage-degraded", "md0"),
        },
    ),
}


@pytest.fixture(scope="module")
def nodes() -> list[HealthyNode]:
    return [node_of(name) for name in NAMES]


@pytest.mark.parametrize(("faults", "seed"), DRAWN, ids=str)
def test_what_is_broken_is_found_and_nothing_else(faults: int, seed: int, nodes: list[HealthyNode]) -> None:
    node, expected = DRAWN[faults, seed]
    trial = draw(nodes, {name: KINDS[name] for name in expected}, faults, seed)
    found = [(one.code, one.subject) for one in evaluated(trial)[0].findings if one.severity != "info"]
    assert (trial.node.name, {name for name, _ in trial.faults}) == (node, set(expected))
    assert sorted(found) == sorted(expected.values())


@pytest.mark.parametrize("faults", [1, 2])
@pytest.mark.slow
def test_most_faults_are_found(faults: int, nodes: list[HealthyNode]) -> None:
    outcomes = trials([nodes], faults, 30, 100 * faults)
    assert list(failures([], outcomes, [])) == []
    assert len(list(shown(outcomes))) > 12


@pytest.mark.slow
def test_healthy_nodes_that_look_odd_have_no_warning() -> None:
    nodes = [node_of(name) for name in (*CLOUDS, "gb200-tray", "hgx-h100", "server-raid", "t4")]
    assert list(missed(trials([nodes], 0, 30, 0))) == []


def test_every_oddity_has_a_node() -> None:
    nodes = [node_of(name) for name in ("vm-p5", "xe9680", "hgx-h100", "gb200-tray")]
    assert [name for name, odd in ODDITIES.items() if not any(odd(node, Random(0)) for node in nodes)] == []


@pytest.mark.parametrize("seed", range(10))
def test_three_faults_fit_on_one_screen(seed: int, nodes: list[HealthyNode]) -> None:
    report, _ = evaluated(draw(nodes, KINDS, 3, seed))
    lines = as_text(report, colour=False).splitlines()
    details = lines[lines.index("") :]
    blocks = [line.split()[0] for line in details if line.startswith(("CRITICAL", "WARNING", "INFO"))]
    assert len(lines) <= (40 if len(blocks) <= 3 else 60)
    assert max(map(len, lines)) < 100
    assert blocks == sorted(blocks, key=("CRITICAL", "WARNING", "INFO").index)


@pytest.mark.parametrize("name", CLOUDS)
def test_machines_of_clouds_are_ok(name: str, tmp_path: Path) -> None:
    (tmp_path / "capture").write_text(dump(build((NODES / f"{name}.toml").read_text())))
    done = CliRunner().invoke(main, ["diagnose", "--from", str(tmp_path / "capture")])
    assert done.exit_code == 0
    assert re.match(r"OK(, \d+ checks? not evaluated)?  ", done.output)
