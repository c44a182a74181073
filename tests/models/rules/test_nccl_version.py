"""Versions of NCCL with known defects, and the machines that they affect."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.catalog.nccl import Fault, faults, numbers
from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.machine import Nccl, Setting
from linkgauge.models.facts.records import Evidence, Record
from tests.support.nodes.gpu_facts import H100, findings

LINE = Evidence("job.log:3", "NCCL version 2.28.9+cuda13.0")


def job(version: str, name: str | None, gpus: int = 4, ranks: int | None = 8, network: str = "IB") -> list[Record]:
    cards = [Gpu(key=f"gpu{number}", name=name) for number in range(gpus)]
    return [*cards, Nccl(key="nccl", version=version, ranks=ranks, network=network, cites={"version": LINE})]


def known(records: list[Record]) -> list[str]:
    found = [one for one in findings(records, origin="dumps") if one.code == "nccl-version"]
    return [one.message for one in found]


def test_a_hang_on_arm() -> None:
    (found,) = findings(job("2.28.9", "NVIDIA GB200"), origin="dumps")
    assert found.message == (
        "NCCL 2.28.9 is known for a fault on this hardware: on ARM processors collectives hang without an error, if it "
        "was built with a GCC older than 10; NCCL 2.29.3 does not have it"
    )
    assert (found.severity, found.confidence, found.expected, found.observed) == (
        "warning",
        "likely",
        "2.29.3",
        "2.28.9",
    )
    assert found.steps == ("Install NCCL 2.29.3 or a later version.",)
    assert found.evidence == (LINE,)


@pytest.mark.parametrize(
    ("records", "count"),
    [
        (job("2.18.1", H100, 8, 16), 1),
        (job("2.18.1", H100, 8, 8), 0),  # one node
        (job("2.18.1", H100, 8, None), 0),
        ([*job("2.18.1", H100, 8, 16), Setting(key="NCCL_PROTO", value="^LL128")], 0),
        ([*job("2.18.1", H100, 8, 16), Setting(key="NCCL_PROTO", value="Simple")], 1),
        (job("2.18.1", "NVIDIA A100-SXM4-80GB", 8, 16), 0),
        (job("2.18.3", H100, 8, 16), 0),
        (job("2.17.1", H100, 8, 8), 1),
        (job("2.29.3", "NVIDIA GB200"), 0),
        (job("2.28.9", "NVIDIA B200"), 0),
        (job("2.30.4", H100), 1),
        (job("2.30.4", None), 1),
        (job("2.30.4", H100, network="AWS Libfabric"), 0),
        (job("2.30.4", H100, network="Socket"), 0),
        (job("2.30.7", H100), 0),
        (job("2.25.1", "NVIDIA GeForce RTX 5090", 2, 2), 1),
        (job("2.26.2", "NVIDIA GeForce RTX 5090", 2, 2), 0),
        (job("2.25.1", "NVIDIA GeForce RTX 4090", 2, 2), 0),
        (job("2.26.2", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 2, 2), 1),
        (job("2.21.5", H100, 8, 16), 0),
        (job("rubbish", H100, 8, 16), 0),
    ],
)
def test_where_it_shows(records: list[Record], count: int) -> None:
    assert len(known(records)) == count


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: f"{fault.since} {fault.gpus[0]}")
def test_a_row_says_where_it_comes_from(fault: Fault) -> None:
    assert fault.source
    assert not fault.source.endswith(".")
    assert fault.has(fault.since) or fault.since == "0.0"
    assert not fault.has(fault.before)
    assert fault.fixed is None or not fault.has(fault.fixed)


@given(st.text() | st.from_regex(r"\A[0-9]{1,3}(\.[0-9]{1,3}){0,3}\Z"))
def test_any_version(text: str) -> None:
    assert numbers(text) == () or all(number >= 0 for number in numbers(text))
    known(job(text, H100))
