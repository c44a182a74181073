"""TCP over a wire whose rate is known: two network namespaces joined by veth, with a cap that tc sets."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.accuracy.networks.namespaces import PEER, Unavailable, cap, inside, joined
from linkgauge.models.facts.units import as_gigabytes

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SITE = """
[[rates]]
op = "tcp"
ends = ["host", "veth-*"]
low = 100e6
typical = 120e6
high = 10e9
source = "ordered"
"""
SCRIPT = """
import sys
from linkgauge.agent.pipeline.diagnose import diagnose
from linkgauge.agent.pipeline.source import Source
from linkgauge.agent.pipeline.registry import named
from linkgauge.exporters.formats.json import as_json
from linkgauge.models.site.schema import read_site
from linkgauge.probes.host.live import Live
from linkgauge.probes.measure.network.port_loopback import plan
from linkgauge.probes.measure.probe import Scope

wanted = Scope(effort="full", ends=frozenset(), peers=(sys.argv[1],))
once = lambda report, undecided: [] if report.levels else [Source(probe.name, probe) for probe in plan(report, wanted)]
print(as_json(diagnose(Live(), named("net"), once, read_site(sys.argv[2])).report))
"""


@pytest.fixture
def wire() -> Iterator[None]:
    """Both ends, and a server at the far one."""
    try:
        with joined():
            yield
    except Unavailable as why:
        pytest.skip(str(why))


def report(tmp_path: Path) -> Any:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = inside(sys.executable, str(script), PEER, SITE)
    for _ in range(100):  # until the server listens
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        if "Connection refused" not in output:
            break
        time.sleep(0.1)
    return json.loads(output)


@pytest.mark.parametrize(("rate", "bytes_per_second"), [("200mbit", 25e6), ("400mbit", 50e6)])
def test_a_cap_is_measured_and_reported(wire: None, tmp_path: Path, rate: str, bytes_per_second: float) -> None:
    cap(rate)
    for _ in range(3):
        result = report(tmp_path)
        assert result["levels"], result["not_checked"]
        (level,) = result["levels"]
        if level["observed"] > 0.95 * bytes_per_second:
            break
    assert (level["op"], level["ends"]) == ("tcp", ["host", "veth-a"])
    # Nothing carries more than the cap. Tests that take the processors from sender and receiver lower the rate:
    # bench/accuracy/tool_agreement.py measures the accuracy on a quiet machine.
    assert 0.75 * bytes_per_second < level["observed"] < 1.05 * bytes_per_second
    (found,) = result["findings"]
    assert (found["code"], found["subject"], found["basis"]) == ("bandwidth-low", "host-veth-a", "site")
    assert (found["observed"], found["expected"]) == (level["observed"], 120e6)
    assert found["message"] == (
        f"tcp host-veth-a reaches {as_gigabytes(found['observed'])}, expected 0.12 GB/s and at least 0.10 GB/s"
    )


def test_without_a_cap_there_is_nothing_to_tell(wire: None, tmp_path: Path) -> None:
    result = report(tmp_path)
    assert result["levels"], result["not_checked"]
    (level,) = result["levels"]
    assert level["observed"] > 120e6
    assert result["findings"] == []
