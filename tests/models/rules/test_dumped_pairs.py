"""Pairs of GPUs of which only a matrix is known (`nvidia-smi topo -m`)."""

from __future__ import annotations

import pytest

from tests.support.texts import found_in, report_of


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


def access(first: str, *refused: int) -> str:
    """A matrix of `nvidia-smi topo -p2p r` without its command. Pairs of GPU 0 are refused."""
    rows = ["\t".join(["", "GPU0", "GPU1", "GPU2", "GPU3"])]
    for row in range(4):
        cells = ("X" if at == row else first if 0 in (at, row) and at + row in refused else "OK" for at in range(4))
        rows.append("\t".join([f" GPU{row}", *cells]))
    return "\n".join(rows)


@pytest.mark.parametrize(
    ("text", "verdict", "expected"),
    [
        (access("CNS"), "unknown", []),  # it can be the matrix of NVLinks
        (access("CNS", 2), "degraded", [("p2p-disabled", "warning", "gpu0-gpu2")]),
        (access("TNS", 1, 2, 3), "unknown", [("p2p-disabled", "info", "node")]),
        (access("NS", 1, 2), "unknown", []),  # without NVLinks
    ],
)
def test_refused_peer_access_of_unnamed_gpus(text: str, verdict: str, expected: list[tuple[str, str, str]]) -> None:
    assert (report_of(text).verdict, found_in(text)) == (verdict, expected)


LINE = "> Peer access from {name} (GPU{one}) -> {name} (GPU{two}) : {able}\n"


def test_peer_access_as_device_query_prints_it() -> None:
    def lines(name: str, able: str) -> str:
        return "".join(LINE.format(name=name, one=one, two=two, able=able) for one, two in ((0, 1), (1, 0)))

    assert report_of(lines("NVIDIA A100-SXM4-80GB", "Yes")).verdict == "ok"
    assert found_in(lines("NVIDIA GeForce RTX 4090", "No")) == []  # by design
    assert found_in(lines("NVIDIA Unheard Of 9", "No")) == [("p2p-disabled", "info", "gpu0-gpu1")]


def queried(name: str, gpus: int, *refused: tuple[int, int]) -> str:
    """The lines of deviceQuery. The pairs in `refused` have no peer access."""
    pairs = ((one, two) for one in range(gpus) for two in range(gpus) if one != two)
    return "".join(
        LINE.format(name=name, one=one, two=two, able="No" if tuple(sorted((one, two))) in refused else "Yes")
        for one, two in pairs
    )


@pytest.mark.parametrize(
    ("text", "verdict", "expected"),
    [
        (queried("NVIDIA H100 80GB HBM3", 2, (0, 1)), "failed", [("p2p-disabled", "critical", "gpu0-gpu1")]),
        (queried("NVIDIA H100 80GB HBM3", 8, (2, 5)), "failed", [("p2p-disabled", "critical", "gpu2-gpu5")]),
        (queried("NVIDIA A100-SXM4-80GB", 4, (0, 3), (1, 3)), "failed", [("p2p-disabled", "critical", "node")]),
        (queried("NVIDIA L40S", 2, (0, 1)), "unknown", [("p2p-disabled", "info", "gpu0-gpu1")]),
        (queried("NVIDIA L40S", 4, (0, 1)), "degraded", [("p2p-disabled", "warning", "gpu0-gpu1")]),
        (queried("NVIDIA GeForce RTX 4090", 4, (0, 1)), "ok", []),
        (queried("NVIDIA H100 80GB HBM3", 8), "ok", []),
    ],
)
def test_refused_peer_access_of_named_gpus(text: str, verdict: str, expected: list[tuple[str, str, str]]) -> None:
    assert (report_of(text).verdict, found_in(text)) == (verdict, expected)
