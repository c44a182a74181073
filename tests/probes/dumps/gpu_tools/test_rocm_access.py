"""The access table of rocm_bandwidth_test: GPUs that cannot reach each other, and tables that show no fault."""

from __future__ import annotations

import pytest

from tests.support.texts import found_in, report_of

_CPU = "Intel(R) Core(TM) i9-10900X CPU @ 3.70GHz"


def _output(names: list[str], lacking: set[tuple[int, int]], title: str = "Inter-Device Access", rate: str = "") -> str:
    """The output of the test on a machine with one processor and these GPUs. `lacking`: device numbers."""
    count = len(names) + 1
    devices = [f"          Device: {at},  {name},  {at + 2:x}:0.0" for at, name in enumerate(names, 1)]
    heading = "".join(f"{at:<10}" for at in range(count))
    rows = [
        f"          {row:<10}" + "".join(f"{int((row, column) not in lacking):<10}" for column in range(count))
        for row in range(count)
    ]
    text = ["          RocmBandwidthTest Version: 2.6.0", "", f"          Device: 0,  {_CPU}", *devices, ""]
    text += [f"          {title}", "", f"          D/D       {heading}", ""]
    return "\n".join([*text, *(line for row in rows for line in (row, "")), rate])


@pytest.mark.parametrize("title", ["Inter-Device Access", "Device Access"])
@pytest.mark.parametrize(
    ("names", "lacking", "subject"),
    [
        (["AMD Instinct MI60"] * 2, {(1, 2), (2, 1)}, "gpu0-gpu1"),
        (["Radeon RX Vega"] * 2, {(0, 1), (0, 2), (1, 2), (2, 1)}, "gpu0-gpu1"),
        (["Radeon RX Vega"] * 2, {(2, 1)}, "gpu0-gpu1"),
        (["AMD Instinct MI210"] * 3, {(1, 3), (3, 1), (2, 3), (3, 2)}, "gpu2"),
    ],
)
def test_equal_gpus_without_access(names: list[str], lacking: set[tuple[int, int]], subject: str, title: str) -> None:
    text = _output(names, lacking, title)
    assert found_in(text) == [("p2p-disabled", "warning", subject)]
    (finding,) = report_of(text).findings
    assert names[0] in finding.message
    assert (finding.remedy or "").startswith("Enable large BAR")


@pytest.mark.parametrize(
    ("names", "lacking"),
    [
        (["AMD Instinct MI210"] * 2, set()),
        (["AMD Instinct MI50"] * 2, {(0, 1), (0, 2)}),  # the processor and small BARs
        (["Radeon RX 7900 XTX", "AMD Radeon 780M"], {(1, 2), (2, 1)}),  # the second one is a part of the processor
        (["Radeon RX Vega"], {(0, 1), (1, 0)}),
    ],
)
def test_tables_without_a_fault(names: list[str], lacking: set[tuple[int, int]]) -> None:
    assert found_in(_output(names, lacking)) == []


def test_a_table_of_another_kind_is_not_read() -> None:
    assert found_in(_output(["Radeon RX Vega"] * 2, {(1, 2), (2, 1)}, "Inter-Device Numa Distance")) == []
