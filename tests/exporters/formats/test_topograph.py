"""The place of a node as JSON for Topograph: our own reader reads it, and an unknown place is an error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from linkgauge.agent.cli.main import main
from linkgauge.agent.inputs.places import place_of
from linkgauge.probes.host.recorded import dump
from tests.support.nodes.described import node


def topograph(folder: Path, labels: str) -> Result:
    (capture := folder / "node").write_text(dump(node("hgx-h100")))
    (site := folder / "site.toml").write_text(f"[labels]\n{labels}\n")
    form = ["--format", "topograph-json"]
    return CliRunner().invoke(main, ["topology", *form, "--from", str(capture), "--site", str(site)])


def test_a_whole_place(tmp_path: Path) -> None:
    done = topograph(tmp_path, 'leaf = "l1"\nspine = "s1"\nnvlink_domain = "d1"\nrack = "r7"')
    assert done.exit_code == 0
    domain = {"accelerator.topograph.run/domain": "d1"}
    assert json.loads(done.output) == {"instances": [{"id": "hgx", "network_layers": ["l1", "s1"], "labels": domain}]}
    place = place_of(done.output, frozenset({"hgx"}))
    assert place
    assert place.labels == {"leaf": "l1", "spine": "s1", "nvlink_domain": "d1"}


def test_no_switch_takes_the_tier_of_an_unknown_one(tmp_path: Path) -> None:
    done = topograph(tmp_path, 'leaf = "l1"\ncore = "c1"')
    assert json.loads(done.output) == {"instances": [{"id": "hgx", "network_layers": ["l1"], "labels": {}}]}


@pytest.mark.parametrize("labels", ["", 'spine = "s1"\nrack = "r7"'])
def test_an_unknown_place(tmp_path: Path, labels: str) -> None:
    done = topograph(tmp_path, labels)
    assert (done.exit_code, done.stdout) == (64, "")
    assert "--format topograph-json: neither leaf nor nvlink_domain is known: set places or [labels]" in done.stderr
