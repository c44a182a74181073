"""Tables of rates between the adapters of two machines."""

from __future__ import annotations

import pytest

from tests.support.texts import found_in, report_of

_LOW = [("bandwidth-low", "info", "node")]


def _table(
    cells: list[list[str]], title: str = "", names: tuple[str, ...] = ("mlx5_0", "mlx5_1"), bar: str = " | "
) -> str:
    heading = bar.join(["from/to", *names])
    rule = "|".join([" --- "] * (len(names) + 1)) + "\n" if "|" in bar else ""
    rows = "\n".join(bar.join([name, *row]) for name, row in zip(names, cells, strict=True))
    return f"{title}\n{heading}\n{rule}{rows}\n"


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        (_table([["6100.2", "6320.0"], ["6290.8", "23980.1"]], "1MiB MB/s"), ("6.10 GB/s", "24.0 GB/s")),
        (_table([["196.2", "196.0"], ["timeout", "195.8"]], "ib_write_bw, Gb/s"), ("24.5 GB/s",)),
        (_table([["timed out", "92.1"], ["41.0", "92.3"]], "Gbits/sec", ("mlx5_2", "mlx5_3")), ("5.12 GB/s",)),
        (
            _table([["12.1 GB/s", "11.9 GB/s"], ["3.0 GB/s", "12.0 GB/s"]], "all", ("bnxt_re0", "bnxt_re1")),
            ("3.00 GB/s",),
        ),
        (
            _table([["12.1", "11.9"], ["3.0", "12.0"]], "Rates in GB/s", ("ibp12s0", "ibp75s0"), "   "),
            ("3.00 GB/s", "12.1 GB/s"),
        ),
        (
            _table([["7.0", "7.1"], ["7.1", "12.0"]], "1 MiB, GB/s")
            + "\n"
            + _table([["6.0", "7.0"], ["7.0", "15.0"]], "GB/s"),
            ("6.00 GB/s", "15.0 GB/s"),
        ),
    ],
)
def test_a_slow_combination_is_information(text: str, numbers: tuple[str, ...]) -> None:
    assert found_in(text) == _LOW
    report = report_of(text)
    assert all(number in report.findings[0].message for number in numbers)
    assert report.verdict == "unknown"


@pytest.mark.parametrize(
    "text",
    [
        _table([["196.2", "196.0"], ["195.9", "195.8"]], "Gb/s"),
        _table([["12.1", "10.9"], ["10.8", "12.0"]], "GB/s"),
        _table([["12.1", "10.9"], ["3.8", "12.0"]], "without a unit"),
        _table([["1.21", "1.09"], ["3.8", "1.20"]], "latency in us"),
        _table([["PIX", "SYS"], ["SYS", "PIX"]], "paths, 200 Gb/s each"),
    ],
)
def test_equal_combinations_and_other_tables(text: str) -> None:
    assert found_in(text) == []
