"""All pairs at once have the same path and prediction as each pair alone."""

from __future__ import annotations

import pytest
from hypothesis import given

from bench.accuracy.machines import nvlink_domain, pci_node
from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.models.bandwidth.all_pairs import ENDS, Pair, pairs
from linkgauge.models.bandwidth.contention import rate_without_sockets
from linkgauge.models.bandwidth.predict import predict
from linkgauge.models.facts.records import Flow
from linkgauge.models.graph.flow_paths import sub_flows
from linkgauge.models.graph.routes import path_type, route
from linkgauge.models.graph.symmetry import symmetric_groups
from linkgauge.models.graph.topology import Topology
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.site.schema import Site
from tests.support.nodes.described import EACH, node
from tests.support.nodes.drawn_nodes import nodes as drawn


def one_by_one(topology: Topology) -> dict[str, dict[str, Pair]]:
    ends = [device.id for device in topology.devices if device.kind in ENDS]
    found: dict[str, dict[str, Pair]] = {end: {} for end in ends}
    for source, target in ((a, b) for a in ends for b in ends if a != b):
        flow = Flow("copy", (source, target))
        path, predicted = route(topology, source, target), predict(topology, [flow]).get(flow)
        if path and predicted:
            kind = path_type(topology, path)
            found[source][target] = Pair(kind, predicted.rated, predicted.typical, predicted.bottleneck)
        elif path:
            able_to = min(
                rate_without_sockets(hop) for sub_flow in sub_flows(topology, flow) for over in sub_flow for hop in over
            )
            rated = None if able_to == float("inf") else able_to
            found[source][target] = Pair(path_type(topology, path), rated, None, None)
    return found


@pytest.mark.parametrize("name", EACH)
@pytest.mark.slow
def test_described_nodes(name: str) -> None:
    recorded = node(name)
    topology = assemble((record for reader in SOURCES for record in reader.read(recorded)), Site(), 0).topology
    assert pairs(topology) == one_by_one(topology)


@given(drawn())
@pytest.mark.slow
def test_any_node(topology: Topology) -> None:
    assert pairs(topology) == one_by_one(topology)


@pytest.mark.parametrize("topology", [nvlink_domain(6), nvlink_domain(16), pci_node(90)], ids=["6", "16", "90"])
def test_large_machines_in_small(topology: Topology) -> None:
    assert pairs(topology) == one_by_one(topology)


def test_nothing() -> None:
    assert pairs(Topology()) == {}


def test_trays_are_joined_by_nvlink_alone() -> None:
    found = pairs(nvlink_domain(8))
    assert found["gpu0"]["gpu7"].path_type == "NVL"
    assert found["gpu0"]["gpu7"].rated == 900e9
    assert "nic7" not in found["gpu0"]
    assert found["nic0"].keys() == {f"{kind}{n}" for kind in ("gpu", "nic", "nvme") for n in range(4)} - {"nic0"} | {
        "numa0",
        "numa1",
    }


def test_of_ends_that_hang_alike_two_are_looked_at() -> None:
    """The saving makes a thousand functions fast. The test counts computed devices, because times vary."""
    topology = pci_node(1000)
    groups, few = symmetric_groups(topology, ENDS)
    ends = sum(1 for device in topology.devices if device.kind in ENDS)
    assert (ends, sum(map(len, groups)), len(groups)) == (484, 484, 58)
    assert len(few.devices) < len(topology.devices) / 3
