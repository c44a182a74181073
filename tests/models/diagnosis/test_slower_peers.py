"""Matrices of p2pBandwidthLatencyTest in which copies with peer access are slower than copies through host memory.

The values are invented; the tool is p2pBandwidthLatencyTest of NVIDIA/cuda-samples.
"""

from __future__ import annotations

import pytest

from linkgauge.models.evaluate import evaluate
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Finding
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.read import read_text


def matrix(title: str, rates: dict[tuple[int, int], float], usual: float, gpus: int = 3) -> str:
    """A matrix; `rates` are those of the pairs that differ from the usual rate."""
    rows = [
        f"{row:>6} " + " ".join(f"{900.0 if row == to else rates.get((row, to), usual):7.2f}" for to in range(gpus))
        for row in range(gpus)
    ]
    return "\n".join((title, "   D\\D " + " ".join(f"{to:>7}" for to in range(gpus)), *rows, ""))


def both(host: float, peers: float, slow: dict[tuple[int, int], float] | None = None, direction: str = "Unid") -> str:
    by = "(P2P Writes) " if direction == "Unid" else ""
    return matrix(f"{direction}irectional P2P=Disabled Bandwidth Matrix (GB/s)", {}, host) + matrix(
        f"{direction}irectional P2P=Enabled Bandwidth {by}Matrix (GB/s)", slow or {}, peers
    )


def warnings(text: str) -> list[Finding]:
    report = evaluate(assemble(list(read_text("p2p.txt", text, 0.0)), Site(), 0.0, origin="dumps"))
    return [one for one in report.findings if one.severity != "info"]


@pytest.mark.parametrize("direction", ["Unid", "Bid"])
def test_all_pairs(direction: str) -> None:
    (finding,) = warnings(both(22.0, 10.0, direction=direction))
    assert (finding.code, finding.severity, finding.subject) == ("pcie-peer-slow", "warning", "node")
    assert "6 of 6 copies" in finding.message


def test_one_pair() -> None:
    """The pair is also slower than equal pairs; one finding has both."""
    (finding,) = warnings(both(21.0, 26.5, {(0, 1): 6.1, (1, 0): 6.2}))
    assert (finding.code, finding.subject) == ("pcie-peer-slow", "gpu0-gpu1")
    assert finding.observed == 6.15e9
    assert finding.expected == 21e9


@pytest.mark.parametrize(
    ("host", "peers"),
    [
        (11.1, 9.2),  # between two processors
        (11.1, 11.0),
        (13.0, 25.0),
        (37.0, 376.0),  # NVLink
    ],
)
def test_healthy_pairs(host: float, peers: float) -> None:
    assert warnings(both(host, peers)) == []
