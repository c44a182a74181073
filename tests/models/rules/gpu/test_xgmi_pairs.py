"""xGMI between AMD GPUs in matrices of pairs: a pair, a GPU or a rate that differs from the others."""

from __future__ import annotations

import pytest

from tests.support.texts import found_in

GPUS = 8


def kinds(usual: str, other: str, *ends: int) -> str:
    """`rocm-smi --showtopotype`: the pairs of these GPUs differ. One GPU: all its pairs differ."""

    def cell(row: int, column: int) -> str:
        odd = {row, column} == {*ends} if len(ends) > 1 else {*ends} < {row, column}
        return "0" if row == column else other if odd else usual

    rows = (f"GPU{row}   " + "         ".join(cell(row, column) for column in range(GPUS)) for row in range(GPUS))
    title = f"{'=' * 30} Link Type between two GPUs {'=' * 30}"
    return "\n".join([title, "       " + "         ".join(f"GPU{column}" for column in range(GPUS)), *rows, ""])


def metrics(*rates: tuple[int, int]) -> str:
    """`amd-smi xgmi`: rate of a lane and of a link, per GPU."""
    addresses = [f"0000:{number:02x}:00.0" for number in range(12, 12 + GPUS)]
    lines = ["LINK METRIC TABLE:", "       bdf          bit_rate max_bandwidth link_type " + " ".join(addresses)]
    for number, (lane, link) in enumerate(rates):
        cells = " ".join("N/A" if number == peer else "1.5 GB" for peer in range(GPUS))
        lines += [f"GPU{number}   {addresses[number]} {lane} Gb/s  {link} Gb/s      XGMI"]
        lines += [f" {direction}   {cells}" for direction in ("Read", "Write")]
    return "\n".join(lines)


def bandwidths(usual: str, other: str, *pair: int, names: bool = False) -> str:
    """`amd-smi topology -b`: the table of bandwidths alone. The cells of this pair differ."""
    addresses = [f"0000:{number:02x}:00.0" for number in range(12, 12 + GPUS)]
    lines = ["NUMA BW TABLE:", "              " + " ".join(addresses)]
    for row, address in enumerate(addresses):
        cells = ("N/A" if row == peer else other if {row, peer} == {*pair} else usual for peer in range(GPUS))
        lines.append((f"GPU{row}   " if names else "") + f"{address}  " + "  ".join(f"{cell:<12}" for cell in cells))
    return "\n".join([*lines, ""])


@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize("usual", ["50000-50000", "50000-100000", "64000-64000"])
def test_bandwidths_without_the_types_of_links(usual: str, names: bool) -> None:
    assert not found_in(bandwidths(usual, usual, 2, 5, names=names))
    assert not found_in(bandwidths("N/A", "N/A", 2, 5, names=names))  # PCIe, by design
    fewer = [("nvlink-inactive", "critical", f"gpu{gpu}") for gpu in (2, 5)]
    assert found_in(bandwidths(usual, "N/A", 2, 5, names=names)) == fewer
    assert found_in(bandwidths(usual, "0-0", 2, 5, names=names)) == fewer
    if usual == "50000-100000":
        assert found_in(bandwidths(usual, "50000-50000", 2, 5, names=names)) == fewer


FULL = (32, 512)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (kinds("XGMI", "XGMI", 2, 5), []),
        (kinds("PCIE", "PCIE", 2, 5), []),  # by design
        (kinds("XGMI", "PCIE", 2, 5), [("nvlink-inactive", "critical", f"gpu{gpu}") for gpu in (2, 5)]),
        (kinds("XGMI", "PCIE", 5), [("nvlink-inactive", "critical", "gpu5")]),
        (metrics(*[FULL] * GPUS), []),
        (metrics(*[FULL] * 7, (16, 512)), [("nvlink-inactive", "warning", "gpu7")]),
        (metrics(*[FULL] * 7, (16, 256)), [("nvlink-inactive", "warning", "gpu7")]),
        (metrics(*[(16, 256)] * GPUS), []),
    ],
)
def test_xgmi_of_pairs(text: str, expected: list[tuple[str, str, str]]) -> None:
    assert found_in(text) == expected
