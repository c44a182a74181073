"""Rates in prose and in lists of one line (rate_rows.py)."""

from __future__ import annotations

import pytest

from linkgauge.models.evaluate import evaluate
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.read import read_text
from tests.support.dump_samples import AT


def found(text: str) -> list[tuple[str, str]]:
    report = evaluate(assemble(read_text("text", text, AT), Site(), AT, origin="dumps"))
    return [(one.code, one.subject) for one in report.findings]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("node3: 180 Gb/s, others 370", [("node-slow", "node3")]),
        ("We ran ib_write_bw on all. node3: 180 Gb/s, others 370 Gb/s.", [("node-slow", "node3")]),
        ("All nodes get about 370 Gb/s, only node3 gets 180 Gb/s.", [("node-slow", "node3")]),
        ("c-07 reaches only 12.1 GB/s in all_reduce_perf, all other nodes reach 46 GB/s", [("node-slow", "c-07")]),
        (
            "iperf3: 10.0.3.7 only gets 3.1 Gbits/sec while all other hosts reach 94 Gbits/sec",
            [("node-slow", "10.0.3.7")],
        ),
        ("mlx5_3: 196 Gb/s, all others 392 Gb/s", [("bandwidth-low", "mlx5_3")]),
        ("node3: 368 Gb/s, others 370", []),
        ("node3: 46 GB/s, others 12 GB/s on the old fabric", []),
        ("node3: 180 gb/s, others 370", []),  # bits or bytes
        ("ConnectX-6: 200 Gb/s, other adapters 400 Gb/s", []),
        ("A RTX4090 reaches 20 GB/s, others 50 GB/s", []),
        ("step3 22 GB/s, others 50 GB/s", []),
    ],
)
def test_one_node_and_the_others(text: str, expected: list[tuple[str, str]]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mlx5_0 392 Gb/s, mlx5_1 391 Gb/s, mlx5_2 392 Gb/s, mlx5_3 196 Gb/s", [("bandwidth-low", "mlx5_3")]),
        ("cn1: 370 Gb/s; cn2: 371 Gb/s; cn3: 369 Gb/s; cn4: 180 Gb/s", [("node-slow", "cn4")]),
        (
            "cn1 -> cn2: 370 Gb/s, cn1 -> cn3: 180 Gb/s, cn2 -> cn3: 181 Gb/s, cn2 -> cn4: 371 Gb/s",
            [("node-slow", "cn3")],
        ),
        ("cn1: 370 Gb/s; cn2: 371 Gb/s; cn3: 369 Gb/s; cn4: 368 Gb/s", []),
    ],
)
def test_lists_in_one_line(text: str, expected: list[tuple[str, str]]) -> None:
    assert found(text) == expected
