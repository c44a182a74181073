"""GPUs that dumps name by address or by number."""

from __future__ import annotations

from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.gpu_identity import with_gpu_numbers
from linkgauge.models.facts.records import Evidence, Observation, Record

A, B = "0000:1b:00.0", "0000:43:00.0"


def count(about: str, quantity: str) -> Observation:
    return Observation(about=about, quantity=quantity, unit="count", value=1.0, at=0.0, evidence=Evidence("f:1", "x"))


def test_one_gpu_has_one_key() -> None:
    records: list[Record] = [
        Gpu(key=A, address=A, vbios="1"),
        Gpu(key=B, address=B),
        Gpu(key="gpu1", address=A),
        count(A, "ecc_corrected"),
        count(A, "aer_fatal"),
        count(B, "ecc_corrected"),
    ]
    assert with_gpu_numbers(records) == (
        Gpu(key="gpu1", address=A, vbios="1"),
        records[1],
        records[2],
        count("gpu1", "ecc_corrected"),
        records[4],
        records[5],
    )


def test_where_numbers_disagree_nothing_is_sure() -> None:
    """CUDA and the driver may number the GPUs in different orders."""
    records = (Gpu(key=A, address=A), Gpu(key="gpu1", address=A), Gpu(key="gpu0", address=A))
    assert with_gpu_numbers(records) == records
