"""Pairs of GPUs of which only a matrix is known (`nvidia-smi topo -m`)."""

from __future__ import annotations

import pytest

from tests.support.texts import found_in


def matrix(usual: str, other: str, gpus: int = 4) -> str:
    """All pairs are joined in the usual way, GPU 1 and GPU 2 in another."""

    def cell(row: int, column: int) -> str:
        return " X " if row == column else other if {row, column} == {1, 2} else usual

    rows = ("\t".join([f"GPU{row}", *(cell(row, column) for column in range(gpus)), "0-31"]) for row in range(gpus))
    return "\t" + "\t".join([*(f"GPU{column}" for column in range(gpus)), "CPU Affinity"]) + "\n" + "\n".join(rows)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (matrix("NV12", "NV12"), []),
        (matrix("NV12", "NV10"), [("nvlink-inactive", "warning", "gpu1-gpu2")]),
        (matrix("NV18", "NV17", gpus=8), [("nvlink-inactive", "warning", "gpu1-gpu2")]),
        (matrix("NV4", "NV4"), []),
        (matrix("NV1", "NV2"), []),  # a mesh without switches: pairs differ
    ],
)
def test_a_pair_with_fewer_links_than_both_of_its_gpus(text: str, expected: list[tuple[str, str, str]]) -> None:
    assert found_in(text) == expected
