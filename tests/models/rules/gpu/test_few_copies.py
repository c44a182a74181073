"""Copies between two GPUs that reach a small part of their own PCIe links, and copies of an unknown GPU."""

from __future__ import annotations

import pytest

from tests.support.texts import found_in, report_of


def _matrices(names: list[str], peers: float, staged: float | None, able: bool = True) -> str:
    """The output of p2pBandwidthLatencyTest in which all pairs have these rates in GB/s."""
    count, word = len(names), "CAN" if able else "CANNOT"
    lines = ["[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]"]
    lines += [
        f"Device: {at}, {name}, pciBusID: {at + 1:x}, pciDeviceID: 0, pciDomainID:0" for at, name in enumerate(names)
    ]
    lines += [f"Device={a} {word} Access Peer Device={b}" for a in range(count) for b in range(count) if a != b]
    for title, rate in (("P2P=Disabled Bandwidth", staged), ("P2P=Enabled Bandwidth (P2P Writes)", peers)):
        if rate is not None:
            lines += [f"Unidirectional {title} Matrix (GB/s)", "   D\\D " + " ".join(f"{at:6}" for at in range(count))]
            lines += [
                f"{row:6} " + " ".join(f"{850 if row == column else rate:6.2f}" for column in range(count))
                for row in range(count)
            ]
    return "\n".join([*lines, ""])


@pytest.mark.parametrize(
    ("names", "peers", "staged"),
    [
        (["NVIDIA GeForce RTX 4090"] * 2, 5.93, 6.02),
        (["NVIDIA GeForce RTX 4090"] * 2, 3.1, None),
        (["NVIDIA GeForce RTX 3090"] * 3, 5.3, 5.1),
        (["NVIDIA A100-PCIE-40GB"] * 2, 3.0, 3.2),
        (["NVIDIA RTX PRO 6000 Blackwell Workstation Edition"] * 2, 6.9, 6.9),
        (["Tesla T4"] * 2, 2.9, 2.8),
    ],
)
def test_a_quarter_of_the_lanes_and_less(names: list[str], peers: float, staged: float | None) -> None:
    text = _matrices(names, peers, staged)
    assert found_in(text) == [("bandwidth-low", "warning", "gpu0-gpu1")]
    message = report_of(text).findings[0].message
    assert f"{peers:.2f} GB/s" in message
    assert staged is None or f"{staged:.2f} GB/s through host memory" in message


@pytest.mark.parametrize(
    ("names", "peers", "staged"),
    [
        (["NVIDIA GeForce RTX 4090"] * 2, 12.4, 9.0),  # 8 lanes each
        (["NVIDIA GeForce RTX 4090"] * 2, 25.1, 21.0),
        (["NVIDIA RTX PRO 6000 Blackwell Workstation Edition"] * 2, 12.9, 11.0),  # 8 lanes of generation 4
        (["Tesla T4"] * 2, 5.8, 5.6),
        (["NVIDIA RTX A6000"] * 2, 6.5, 5.9),  # 8 lanes of generation 3
        (["NVIDIA RTX A6000"] * 2, 5.8, 5.6),
        (["NVIDIA GeForce RTX 3090"] * 3, 6.4, 5.1),
        (["NVIDIA A40"] * 2, 6.1, 6.2),
        (["NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 3090"], 5.9, 5.9),  # the slots differ with the products
        (["Quadro P400"] * 2, 2.9, 2.8),  # not in the catalog
    ],
)
def test_links_as_boards_have_them(names: list[str], peers: float, staged: float) -> None:
    assert found_in(_matrices(names, peers, staged)) == []


def test_without_peer_access_the_rate_is_that_of_host_memory() -> None:
    assert found_in(_matrices(["NVIDIA GeForce RTX 4090"] * 2, 6.1, 6.2, able=False)) == []


def test_a_rate_below_that_through_host_memory_is_another_fault() -> None:
    assert found_in(_matrices(["NVIDIA GeForce RTX 4090"] * 2, 2.2, 12.0)) == [
        ("pcie-peer-slow", "warning", "gpu0-gpu1")
    ]


def test_small_copies_say_nothing() -> None:
    text = "NVIDIA GeForce RTX 4090, NVIDIA GeForce RTX 4090\ngpu0 -> gpu1 64 KB: 2.10 GB/s\n"
    assert not any(code == "bandwidth-low" for code, _, _ in found_in(text))


def _rocm(name: str, up: float, down: float) -> str:
    return f"""
          RocmBandwidthTest Version: 1.0.0

          Device: 0,  AMD Ryzen 5 2600 Six-Core Processor
          Device: 1,  {name}

          Unidirectional peak bandwidth GB/s

          D/D       0           1

          0         N/A         {up:.6f}

          1         {down:.6f}    31.403911
"""


@pytest.mark.parametrize(
    ("name", "up", "down"), [("Device 67df", 0.391, 0.402), ("Polaris 11", 0.79, 0.8), ("Polaris 11", 0.78, 3.1)]
)
def test_an_unknown_gpu_with_one_lane(name: str, up: float, down: float) -> None:
    assert found_in(_rocm(name, up, down)) == [("bandwidth-low", "warning", "numa0-gpu0")]


@pytest.mark.parametrize(("name", "up", "down"), [("Device 67df", 1.46, 1.5), ("Polaris 11", 12.1, 12.9)])
def test_an_unknown_gpu_with_several_lanes(name: str, up: float, down: float) -> None:
    assert found_in(_rocm(name, up, down)) == []


def _host_copies(first: float, second: float) -> str:
    """rocm_bandwidth_test with two cards, whose copies from and to the processor have these rates in GB/s."""
    rows = (("N/A", first, second), (first, 600.0, 12.1), (second, 12.1, 600.0))
    table = [f"  {number}  " + "  ".join(map(str, row)) for number, row in enumerate(rows)]
    devices = ["  Device: 0,  AMD EPYC 7543 32-Core Processor"]
    devices += [f"  Device: {number},  Instinct,  {number}d:0.0" for number in (1, 2)]
    return "\n".join([*devices, "  Unidirectional copy peak bandwidth GB/s", "  D/D  0  1  2", *table, ""])


@pytest.mark.parametrize(("first", "second", "gap"), [(7.1, 14.2, True), (14.2, 8.0, True), (13.1, 14.2, False)])
def test_half_the_rate_of_another_card_is_a_gap(first: float, second: float, gap: bool) -> None:
    report = report_of(_host_copies(first, second))
    found = [one for one in report.not_checked if one.what == "rate of copies"]
    assert bool(found) == gap
    if gap:
        assert report.verdict == "unknown"
        assert f"{min(first, second):.2f} GB/s" in found[0].detail
        assert f"{max(first, second):.1f} GB/s" in found[0].detail
