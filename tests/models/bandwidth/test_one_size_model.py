"""`expect --size` and `plan` have one model of the message size: near to published rates, and without jumps.

Published: stas00/ml-engineering, network README (all_reduce of 8 B200 of a p6-b200,
https://github.com/stas00/ml-engineering/tree/master/network); awslabs/awsome-distributed-training,
micro-benchmarks/nccl-tests (one p5, https://github.com/awslabs/awsome-distributed-training); The Smol Training
Playbook, GPU communication (latency of p5, https://huggingface.co/spaces/HuggingFaceTB/smol-training-playbook).
"""

from __future__ import annotations

from functools import cache

import pytest

from linkgauge.agent.pipeline.diagnose import read_snapshot
from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.models.bandwidth.collectives import bus_bandwidth
from linkgauge.models.bandwidth.expectations import expect
from linkgauge.models.bandwidth.message_times import bounds, pace_of, seconds
from linkgauge.models.bandwidth.predict import predict
from linkgauge.models.catalog import machines
from linkgauge.models.facts.records import Flow
from linkgauge.models.inventory.snapshot import Snapshot
from linkgauge.models.site.schema import Site
from linkgauge.models.training.cluster import cluster_of
from tests.support.nodes.described import node

MIB, GIB = 1 << 20, 1 << 30
GPUS = tuple(f"gpu{number}" for number in range(8))
# Message size: published bus bandwidth of all_reduce in GB/s.
PUBLISHED = {
    "hgx-b200": {MIB: 36.06, 2 * MIB: 63.09, 8 * MIB: 126.49, 64 * MIB: 400.6, 256 * MIB: 646.11, GIB: 723.34},
    "hgx-h100": {MIB: 64.24, 8 * MIB: 174.16, 64 * MIB: 359.54, 256 * MIB: 418.91, GIB: 441.81},
}


@cache
def snapshot_of(name: str) -> Snapshot:
    return read_snapshot(node(name), SOURCES, Site())


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_rate_of_a_message_is_near_the_published_one(name: str) -> None:
    """A ring curve from four GH200 gave 123 GB/s for 1 MiB on 8 B200."""
    for size, published in PUBLISHED[name].items():
        flow = Flow("all_reduce", GPUS, size)
        found = predict(snapshot_of(name).topology, [flow])[flow]
        assert found.typical / 1e9 == pytest.approx(published, rel=0.25), size
        assert found.low / 1e9 <= published, size


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_expected_rate_has_no_jump(name: str) -> None:
    """Below 1 GiB the links decide, from there on the machine type: 633 and 838 GB/s on 8 B200."""
    before, after = (
        next(expect(snapshot_of(name), Flow("all_reduce", GPUS, size))) for size in (1023 * MIB, 1024 * MIB)
    )
    assert before.basis != after.basis
    assert after.typical == pytest.approx(before.typical, rel=0.05)
    assert after.low >= before.low


@pytest.mark.parametrize(("nodes", "published"), [(1, 12.9e-6), (2, 55.5e-6), (16, 235e-6)])
def test_a_machine_type_has_its_own_latency(nodes: int, published: float) -> None:
    """The Smol Training Playbook: AllReduce over 1, 2 and 16 p5. The median of all machine types gave 161 us for 2."""
    machine = next(one for one in machines() if one.name == "aws-p5.48xlarge")
    cluster = cluster_of(machine, nodes)
    pace = pace_of("all_reduce", cluster.levels, cluster.algorithms, cluster.inside, cluster.switched)
    assert seconds(pace, 8) == pytest.approx(published, rel=0.1)


@pytest.mark.parametrize("size", [GIB, 16 * GIB])
@pytest.mark.parametrize(("name", "ring"), [("hgx-h100", 369e9), ("hgx-b200", 682e9)])
def test_without_reductions_in_switches_the_rate_is_low(name: str, ring: float, size: int) -> None:
    """NVLS off: 369 GB/s on 8 H100 (NVIDIA/nccl-tests issue 309), 682 on 8 B200 (stas00). On: 473 and 838 or more."""
    flow = Flow("all_reduce", GPUS, size)
    found = predict(snapshot_of(name).topology, [flow])[flow]
    assert ring < found.low * (1.02 if size == GIB else 1.0) < found.typical
    assert found.high / found.low < 1.4
    assert next(expect(snapshot_of(name), flow)).low > 0.98 * ring


def test_between_nodes_a_ring_is_no_fault() -> None:
    """391 GB/s (wutz/k8s-in-action, ai/mpi-operator) and 469 (issue 309) on two nodes of 8 H100 with 8 NDR ports."""
    machine = next(one for one in machines() if one.name == "nvidia-dgx-h100")
    cluster = cluster_of(machine, 2)
    slow, usual, fast = bounds("all_reduce", cluster.levels, cluster.algorithms, cluster.inside, cluster.switched)
    rates = [bus_bandwidth("all_reduce", 16, 16 * GIB, seconds(pace, 16 * GIB)) for pace in (slow, usual, fast)]
    assert rates[0] < 391e9 < rates[1] < rates[2]
    assert rates[2] > 469e9
