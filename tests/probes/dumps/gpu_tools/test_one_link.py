"""nvidia-smi nvlink -s with a single link: whole for cards that have one, else cut."""

from __future__ import annotations

import pytest

from tests.support.texts import report_of


@pytest.mark.parametrize("name", ["H", "H100", "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", "Some GPU"])
def test_a_list_that_is_cut(name: str) -> None:
    report = report_of(f"GPU 0: {name}\n\t Link 0: 25 GB/s\n")
    assert (report.verdict, report.findings) == ("unknown", ())


def test_a_card_with_one_link() -> None:
    report = report_of("GPU 0: NVIDIA GeForce RTX 2080 SUPER\n\t Link 0: 25.781 GB/s\n")
    assert (report.verdict, report.findings) == ("ok", ())
