"""`linkgauge accept` of a node without a device that was there before."""

from __future__ import annotations

from pathlib import Path

from linkgauge.agent.cli.accept import accept
from linkgauge.agent.measuring.session import NOTHING
from linkgauge.probes.host.recorded import dump
from linkgauge.probes.synthetic.build import build
from tests.support.nodes.described import FOLDER


def test_a_gpu_that_the_machine_type_has_is_missing_after_accept_too(tmp_path: Path) -> None:
    """7 of 8 GPUs: the removal is accepted, the count of the board is not."""
    state, text = str(tmp_path / "state"), (FOLDER / "hgx-h100.toml").read_text()
    whole, gone = tmp_path / "whole.capture", tmp_path / "gone.capture"
    whole.write_text(dump(build(text)))
    gone.write_text(dump(build(text + "[device.gpu5]\ngone = true\n")))
    assert accept("/", [str(whole)], None, NOTHING, False, state)[1] == "ok"
    for anyway, verdict in ((False, "failed"), (True, "ok"), (False, "failed")):
        text, result = accept("/", [str(gone)], None, NOTHING, anyway, state)
        assert result == verdict
        assert "gpu-missing" in text
