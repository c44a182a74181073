"""The traffic of jobs over NVLink: repeated readings of the counters of a stub of the driver (nvml_stub.py)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from linkgauge.models.facts.records import Evidence, Observation
from linkgauge.probes.gpu.nvml_traffic import new_sampler, peaks

TRAFFIC = """
gpus = 3
[gpu.0.fields]
"138.4294967295" = {sent}
"139.4294967295" = {got}
[gpu.2.returns]
nvmlDeviceGetFieldValues = 15
"""
GIB = 1 << 20  # in KiB, which the driver counts


def test_the_second_in_which_a_gpu_sent_most(driver: Callable[[str], Path]) -> None:
    """Only for a GPU with counters. A GPU without NVLinks and a lost GPU are left out."""
    file = driver(TRAFFIC.format(sent=0, got=0))
    seconds: list[float] = []
    sampler = new_sampler(lambda: seconds[-1])
    assert sampler is not None
    for now, sent, got in ((0, 0, 0), (1, 100, 90), (2, 150, 390), (3, 151, 395)):
        seconds.append(now)
        file.write_text(TRAFFIC.format(sent=sent * GIB, got=got * GIB))
        sampler.sample()
    (seen,) = sampler.taken()
    text = "322.12 GB/s in one second of a job's traffic"
    assert replace(seen, at=0) == Observation(
        about="gpu0",
        quantity="nvlink_traffic",
        unit="bytes_per_second",
        value=300 * 1024**3,
        at=0,
        busy=True,
        evidence=Evidence("NVML field 139", text),
    )
    assert list(sampler.taken()) == []


@pytest.mark.parametrize("text", ["gpus = 0", "[returns]\nnvmlInitWithFlags = 9"])
def test_no_gpus_no_traffic(driver: Callable[[str], Path], text: str) -> None:
    driver(text)
    assert list(peaks("0")) == list(peaks("0")) == []
