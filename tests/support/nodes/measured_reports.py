"""Reports with a measurement of each flow."""

from __future__ import annotations

from itertools import permutations, product

from msgspec.structs import replace

from linkgauge.models.report import Expectation, Level, Report


def flow(*ends: str, op: str = "copy", via: str = "", reached: float = 0.9) -> Level:
    expected = Expectation(basis="capability", low=0.9e10, typical=1e10, high=1.1e10, source="x")
    at = "2026-11-21T02:59:00Z"
    return Level(
        op=op,
        ends=ends,
        via=via,
        rated=2e10,
        trained=2e10,
        expected=(expected,),
        observed=reached * 1e10,
        observed_at=at,
    )


def measured(report: Report) -> Report:
    """A report with every flow that a campaign measures on 8 GPUs, 2 NUMA nodes, 8 NICs and 8 disks."""
    gpus, numas = [f"gpu{n}" for n in range(8)], ("numa0", "numa1")
    both = [*product(numas, gpus), *product(gpus, numas)]
    wires = [(f"mlx5_{n}", f"mlx5_{n}/1") for n in range(2, 10)]
    disks = [(f"nvme{n}n1", "numa0") for n in range(8)]
    ranks = [flow(*gpus, op=op) for op in ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast")]
    single = [*((gpu,) for gpu in gpus), *((numa,) for numa in numas)]
    levels = [*(flow(*ends) for ends in [*both, *single, ("numa0", "numa1"), ("numa1", "numa0")]), *ranks]
    levels += [flow(*pair, via="nvlink", reached=0.9 + n / 1000) for n, pair in enumerate(permutations(gpus, 2))]
    levels += [flow(*ends, op="write") for ends in [*wires, *zip(gpus, (wire[1] for wire in wires), strict=True)]]
    return replace(report, levels=(*levels, *(flow(*ends, op="read") for ends in disks)))
