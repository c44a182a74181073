"""The table of measured rates below the findings."""

from __future__ import annotations

from linkgauge.exporters.text.measured import measured
from linkgauge.exporters.text.terminal import painter
from linkgauge.models.graph.topology import Device, Topology
from linkgauge.models.report import Expectation, Level, Report

NODE = Topology(
    (
        Device("numa0", "numa"),
        *(Device(f"0000:1{number}:00.0", "gpu", aliases=(f"gpu{number}",)) for number in range(4)),
        Device("nvme0n1", "disk"),
    )
)
GOOD = Expectation(basis="capability", low=52e9, typical=55.3e9, high=57e9, source="measured")


def shown(*levels: Level) -> list[str]:
    report = Report(
        node=None,
        taken_at=None,
        source="live",
        context="host",
        profile=None,
        verdict="ok",
        levels=levels,
        topology=NODE,
    )
    return list(measured(report, painter(False)))


def test_nothing() -> None:
    assert shown() == []
    assert shown(Level(op="copy", ends=("numa0", "gpu0"), expected=(GOOD,))) == []


def test_equal_flows_in_a_row() -> None:
    rates = (55.2e9, 55.3e9, 27.4e9, 55.4e9)
    alone = [
        Level(op="copy", ends=("numa0", f"gpu{place}"), observed=rate, expected=(GOOD,))
        for place, rate in enumerate(rates)
    ]
    beside = (("numa0", "gpu1"), ("numa0", "gpu2"))
    assert shown(
        *alone,
        Level(op="copy", ends=("numa0", "gpu0"), observed=13.1e9, beside=beside),
        Level(op="copy", ends=("gpu0", "gpu1"), via="nvlink", observed=3.71e11),
        Level(op="read", ends=("nvme0n1",), observed=6.93e9),
        Level(op="all_reduce", ends=tuple(f"gpu{place}" for place in range(4)), size=1 << 30, observed=2.3e11),
    ) == [
        "MEASURED                       flows    slowest     median   expected  GB/s",
        "  copy numa-gpu                    4       27.4       55.2       55.3  numa0-gpu2",
        "  copy numa-gpu, 3 at once         1       13.1       13.1          -",
        "  copy gpu-gpu by nvlink           1      371.0      371.0          -",
        "  read disk                        1       6.93       6.93          -",
        "  all_reduce, 4 ranks, 1.07 GB     1      230.0      230.0          -",
    ]


def test_a_report_of_many_kinds_stays_short() -> None:
    kinds = [Level(op=f"op{number}", ends=("numa0",), observed=1e9) for number in range(12)]
    assert shown(*kinds)[-1] == "  and 4 more kinds, all in --format json"
    assert len(shown(*kinds)) == 10
