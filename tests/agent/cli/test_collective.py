"""`linkgauge collective`: the bound and its formula, the same rates as `linkgauge expect`, and messages about mistakes.

The bounds are those of "How to Scale Your Model", the chapter on GPUs (https://jax-ml.github.io/scaling-book/gpus/).
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from linkgauge.agent.cli.main import main
from linkgauge.agent.pipeline.diagnose import read_snapshot
from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.models.bandwidth.expectations import expect
from linkgauge.models.catalog.gpus import product_of
from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.machine import Pci
from linkgauge.models.facts.records import Flow
from linkgauge.models.inventory.snapshot import Snapshot
from linkgauge.models.site.schema import Site
from linkgauge.models.training.cluster import cluster_of
from linkgauge.models.training.collective_time import Request, collective_of
from tests.support.nodes.described import node

ROOT = Path(__file__).parents[3]
NODES = ("hgx-h100", "hgx-b200", "p5-tree", "hgx-a100", "mi300x", "gb200-tray", "p4d", "perlmutter")
DGX, POD = ("--machine", "nvidia-dgx-h100"), ("--nodes", "128", "--switches", "64x400", "--rails")


def run(*words: str) -> str:
    done = CliRunner().invoke(main, ["collective", *words], prog_name="linkgauge")
    assert done.exit_code == 0, done.output
    return done.output


def found(*words: str) -> Any:
    return json.loads(run(*words, "--format", "json"))


@cache
def snapshot_of(name: str) -> Snapshot:
    return read_snapshot(node(name), SOURCES, Site())


@pytest.mark.parametrize("op", ["all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast"])
@pytest.mark.parametrize("name", NODES)
def test_expect_returns_the_same_numbers(name: str, op: str) -> None:
    snapshot = snapshot_of(name)
    assert snapshot.machine
    gpus = tuple(f"gpu{number}" for number in range(snapshot.machine.gpus or 0))
    products = {product_of(gpu, snapshot.of(Pci)) for gpu in snapshot.of(Gpu).values()}
    cluster = cluster_of(snapshot.machine, 1, gpu=products.pop())
    for size in (1 << 20, 64 << 20, 1 << 30, 16 << 30):
        other = next(expect(snapshot, Flow(op, gpus, size)))
        one = collective_of(Request(op, size, len(gpus)), cluster)
        rates = [timing and timing.bus_bandwidth for timing in (one.low, one.typical, one.high)]
        assert rates == pytest.approx([other.low, other.typical, other.high], rel=1e-5), size


def test_the_bound_of_an_all_gather_of_a_matrix() -> None:
    """bf16[4096, 65536] over 8 H100 in 1.04 ms, bf16[1024, 16384] in 65 us."""
    large = found("all_gather", "--size", str(4096 * 65536 * 2), *DGX)
    assert round(large["bound"]["seconds"] * 1e3, 2) == 1.04
    assert large["tiers"] == [
        {
            "name": "node",
            "parts": 8,
            "rate": 450e9,
            "seconds": large["bound"]["seconds"],
            "usable": pytest.approx(450e9 * 8 / 7),
            "formula": "S (N - 1) / (N W)",
        }
    ]
    assert round(found("all_gather", "--size", "32MiB", *DGX)["bound"]["seconds"] * 1e6) == 65


def test_each_level_of_a_superpod_has_its_bound() -> None:
    """514, 413 GB/s and 17.1 TB/s of AllGather, so 413 GB/s."""
    pod = found("all_gather", *DGX, *POD)
    assert [(one["name"], one["parts"]) for one in pod["tiers"]] == [("node", 8), ("leaf", 32), ("spine", 4)]
    assert [round(one["usable"] / 1e9) for one in pod["tiers"]] == [514, 413, 17067]
    assert round(pod["bound"]["algorithm_bandwidth"] / 1e9) == 413
    assert pod["level"] == "leaf"
    unit = found("all_gather", "--within", "unit", *DGX, *POD)
    assert unit["request"]["ranks"] == 256


def test_algorithms_have_their_own_bound() -> None:
    """Over 8 GPUs at W = 450 GB/s: a ring sends the array 1.75 times, a tree twice, switches once, one shot 7 times."""
    bounds = {algo: found("all_reduce", "--algo", algo, *DGX) for algo in ("ring", "tree", "nvls", "one-shot")}
    passes = {algo: one["bound"]["seconds"] * 450e9 / 2**30 for algo, one in bounds.items()}
    assert passes == pytest.approx({"ring": 1.75, "tree": 2, "nvls": 1, "one-shot": 7})
    for one in bounds.values():
        assert one["bound"]["seconds"] < one["high"]["seconds"] < one["typical"]["seconds"] < one["low"]["seconds"]


def test_a_sparse_exchange_sends_to_some_of_the_gpus() -> None:
    """4 of 8 entries are non-zero: half of the time. Random targets are on 3.3 different GPUs."""
    dense, sparse = found("all_to_all", *DGX), found("alltoall", "--active", "4", *DGX)
    assert sparse["bound"]["seconds"] == pytest.approx(dense["bound"]["seconds"] / 2)
    assert sparse["typical"]["seconds"] / dense["typical"]["seconds"] == pytest.approx((1 - (7 / 8) ** 4), rel=0.05)


def test_an_exchange_falls_by_more_than_four_times_from_one_node_to_two() -> None:
    one, two = (found("alltoall", *DGX, "--nodes", nodes) for nodes in ("1", "2"))
    assert one["bound"]["bus_bandwidth"] / two["bound"]["bus_bandwidth"] > 4


def test_a_reduction_at_the_spine() -> None:
    """2 D F bytes, sharded 256 ways and reduced in the switches: 2 D F / 12.8e12 s with 12.8 TB/s for each unit."""
    size = 2 * 8192 * 28672
    reduced = found("all_reduce", "--size", str(size), "--sharp", "--sharded", "256", *DGX, *POD)
    assert reduced["bound"]["seconds"] == pytest.approx(size / 12.8e12)
    assert (reduced["typical"], reduced["latency"]) == (None, None)


def test_a_part_of_a_mesh_has_a_part_of_the_links() -> None:
    """MI300X: 448 GB/s to seven peers, 64 GB/s between two."""
    for gpus, rate in (("2", 64e9), ("8", 448e9)):
        part = found("all_reduce", "--machine", "azure-nd96isr-mi300x-v5", "--gpus", gpus)
        assert part["tiers"][0]["rate"] == pytest.approx(rate)
    sent = found("send", "--machine", "azure-nd96isr-mi300x-v5")
    assert sent["bound"]["bus_bandwidth"] == pytest.approx(64e9)
    assert found("all_reduce", "--machine", "nvidia-dgx-h100", "--within", "socket")["request"]["ranks"] == 4


def test_text_chart_and_curve() -> None:
    """The docs show the text (docs/operate/expect.md)."""
    text = run("all_reduce", "--size", "64MiB", *DGX)
    assert text.strip() in (ROOT / "docs/operate/expect.md").read_text()
    curve, chart = run("all_reduce", *DGX, "--curve"), run("all_reduce", *DGX, "--plot")
    for output in (curve, chart):
        rows = [line for line in output.splitlines() if "iB  " in line]
        assert [rows[0].split()[:2], rows[-1].split()[:2], len(rows)] == [["1", "KiB"], ["16", "GiB"], 25]
        assert max(map(len, output.splitlines())) < 100
    assert len(found("all_reduce", *DGX, "--curve")["curve"]) == 25


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("all_reduce", "--algo", "one-shot", *DGX, "--nodes", "2"), "leave out --nodes, or use --algo ring"),
        (("all_gather", "--algo", "tree", *DGX), "apply to all_reduce, not to all_gather: leave them out"),
        (("all_reduce", "--algo", "nvls", "--gpus", "4", *DGX), "NCCL uses it from 5 GPUs on; use --algo ring"),
        (("all_reduce", "--algo", "nvls", "--machine", "nvidia-dgx-a100"), "do not reduce arrays; use --algo ring"),
        (("all_reduce", "--sharp", "--algo", "ring", *DGX), "--sharp and --algo ring exclude each other"),
        (("alltoall", "--active", "9", *DGX), "applies to alltoall, with 1 to 8 of the GPUs"),
        (("all_reduce", "--gpus", "9", *DGX), "9 GPUs: a collective has from 2 to 8 GPUs here"),
        (("all_reduce", "--sharded", "3", *DGX), "8 GPUs do not divide into groups"),
        (("all_reduce", "--within", "unit", *DGX), "add --switches 64x400 --rails --nodes 32"),
        (("all_reduce", "--within", "node", "--gpus", "4", *DGX), "exclude each other"),
        (("all_reduce", "--size", "big", *DGX), "--size big: not a size: write 64MiB, 1G or a number of bytes"),
        (("all_reduce", "--machine", "dgx"), "no machine type is called 'dgx'"),
        (("allreduces", *DGX), "'allreduces' is not one of"),
    ],
)
def test_messages_name_the_remedy(words: tuple[str, ...], says: str) -> None:
    done = CliRunner().invoke(main, ["collective", *words], prog_name="linkgauge")
    assert done.exit_code == 64
    assert says in " ".join(done.output.split())
