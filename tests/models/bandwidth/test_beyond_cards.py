"""Copies between host and card that are faster than the link of the card."""

from __future__ import annotations

import pytest

from tests.support.texts import report_of

TEXT = """[CUDA Bandwidth Test] - Starting...
Running on...

 Device 0: {name}
 Quick Mode

 {way} Bandwidth, 1 Device(s)
 PINNED Memory Transfers
   Transfer Size (Bytes)\tBandwidth(GB/s)
   32000000\t\t\t{rate}
"""
WAYS = ("Host to Device", "Device to Host")


def codes(name: str, way: str, rate: float) -> set[str]:
    return {one.code for one in report_of(TEXT.format(name=name, way=way, rate=rate)).findings}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("name", "rate"),
    [("NVIDIA A100-SXM4-80GB", 40.0), ("NVIDIA GeForce RTX 4090", 52.0), ("NVIDIA GeForce RTX 5080", 457.0)],
)
def test_more_than_the_link_carries(name: str, way: str, rate: float) -> None:
    assert codes(name, way, rate) == {"measurement-invalid"}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("name", "rate"),
    [
        ("NVIDIA A100-SXM4-80GB", 26.3),
        ("NVIDIA GeForce RTX 5080", 57.0),
        ("NVIDIA GH200 480GB", 400.0),  # over NVLink-C2C
        ("Tesla V100-SXM2-32GB", 68.3),  # over NVLink to a POWER9
        ("Some new accelerator", 457.0),
    ],
)
def test_what_a_link_may_carry(name: str, way: str, rate: float) -> None:
    assert codes(name, way, rate) == set()
