"""Rates in prose and in lists of one line (claims.py), and rates that a sentence calls low (complaints.py)."""

from __future__ import annotations

import pytest

from tests.support.texts import report_of


def found(text: str) -> list[tuple[str, str]]:
    report = report_of(text)
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


@pytest.mark.parametrize(
    ("text", "low"),
    [
        ("We measure 12.8 Gb/s with ib_write_bw where 92 Gb/s was measured on sound machines.", True),
        ("I only get 6.1 GB/s instead of 12 GB/s from host to device.", True),
        ("Expected 200 Gbps but only got 98 Gbps.", True),
        ("The bandwidth should be around 900 GB/s, but I measured 450 GB/s.", True),
        ("Each port does just 3.31 Gbits/sec on a 40Gb network card.", True),
        ("ib_write_bw shows 198 Gb/s over the 400GbE link.", True),
        ("I get 94.2 Gbits/sec on a 100Gb link.", False),
        ("We use 2 x 200 Gb/s of a 400 Gb/s port each.", False),
        ("I see about 22000MB/s for host memory but only 10400MB/s for GPU memory.", True),
        ("I get 11.8 GB/s instead of 12 GB/s.", False),
        ("We had 195 Gb/s before but 392 Gb/s with the new cable.", False),
        ("The model needs 12 GB instead of 24 GB.", False),
        ("checkpoint at 12 GB/s, expected batch size 64", False),
    ],
)
def test_what_the_writer_expects_is_information(text: str, low: bool) -> None:
    report = report_of(text)
    assert [(one.code, one.subject, one.severity) for one in report.findings] == low * [
        ("bandwidth-low", "node", "info")
    ]
    assert report.verdict == "unknown"


def test_a_range_of_gpus_is_several_rows() -> None:
    assert found("GPU0-6: 55 GB/s H2D\nGPU7: 27 GB/s H2D\n") == [("bandwidth-low", "host-gpu7")]
    assert found("GPUs 0 to 6: 55 GB/s host to device\nGPU 7: 54.8 GB/s host to device\n") == []


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("nvme0n1: 6.8 GB/s\nnvme1n1: 6.7 GB/s\nnvme2n1: 3.3 GB/s\nnvme3n1: 6.8 GB/s\n", "nvme2n1-host"),
        ("mlx5_0: 392 Gb/s\nmlx5_1: 391 Gb/s\nmlx5_2: 196 Gb/s\n", "mlx5_2-mlx5_2/1"),
        ("nvme0n1: 6.8 GB/s\nnvme1n1: 6.7 GB/s\nnvme2n1: 6.3 GB/s\n", None),
        ("nvme0n1: 6.8 GB/s\nnvme1n1: 3.3 GB/s\n", None),
        ("nvme0n1: 6.8 GB/s\nnvme1n1: 5.1 GB/s\nnvme2n1: 2.3 GB/s\n", None),
    ],
)
def test_one_of_a_few_devices_is_far_slower(text: str, subject: str | None) -> None:
    """It may be another product: information and a gap."""
    report = report_of(text)
    assert [(one.subject, one.severity) for one in report.findings] == ([(subject, "info")] if subject else [])
    assert report.verdict == "unknown" or not subject


_WHERE = ("", "between two nodes ", "with ib_write_bw ", "on this 8x H100 node ")
_LOW = (
    "We only get {rate} {where}in our tests.",
    "The bandwidth {where}is stuck at {rate}.",
    "All-reduce {where}is very slow ({rate}).",
    "It reaches {rate} {where}which is far below the link.",
    "NCCL performance {where}is really poor: {rate}",
    "Slow transfers {where}at about {rate}",
    "The throughput {where}dropped to {rate}",
    "The rate {where}dropped from 180 GB/s to {rate}.",
    "{rate} {where}instead of 180 GB/s",
)
_FINE = (
    "We get {rate} {where}in our tests.",
    "The bandwidth {where}is not low: {rate}",
    "It reaches {rate} {where}which is fine.",
    "We never saw only {rate} {where}again.",
)


@pytest.mark.parametrize("rate", ["9.84 GB/s", "80 Gb/s", "12GB/s", "9,500 MB/s"])
@pytest.mark.parametrize("where", _WHERE)
@pytest.mark.parametrize("form", _LOW)
def test_a_low_rate_is_told(form: str, where: str, rate: str) -> None:
    report = report_of(form.format(where=where, rate=rate) + "\n")
    assert report.verdict == "unknown"
    assert [(one.code, one.severity) for one in report.findings] == [("bandwidth-low", "info")]


@pytest.mark.parametrize("rate", ["9.84 GB/s", "80 Gb/s"])
@pytest.mark.parametrize("where", _WHERE)
@pytest.mark.parametrize("form", _FINE)
def test_a_good_rate_is_no_finding(form: str, where: str, rate: str) -> None:
    assert report_of(form.format(where=where, rate=rate) + "\n").findings == ()


@pytest.mark.parametrize("name", ["mlx5_0", "node7", "ib0"])
@pytest.mark.parametrize("rate", ["3 Gb/s", "196 Gb/s", "24.5 GB/s"])
def test_one_rate_alone_shows_nothing(name: str, rate: str) -> None:
    assert report_of(f"{name}: {rate}\n").verdict == "unknown"
    assert report_of(f"| {name} | {rate} |\n").verdict == "unknown"
