"""The machine of a plan is the node as it was found."""

from __future__ import annotations

from functools import cache

import pytest
from msgspec.structs import replace

from bench.accuracy.edits import Edit, names_of, set_fields, together, without
from bench.accuracy.healthy_nodes import HealthyNode, node_of
from linkgauge.models.facts.machine import Port
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.inventory.snapshot import Snapshot
from linkgauge.models.site.schema import Machine, Site
from linkgauge.models.training.cluster import cluster_of
from linkgauge.models.training.found_node import differences, machine_as_found

TYPE = Machine(name="its type", source="", product="x", gpus=8, rdma=8, rdma_rate=50e9)


@cache
def node(name: str) -> HealthyNode:
    return node_of(name)


def snapshot(name: str, *edits: Edit) -> Snapshot:
    records = together(*edits)(list(node(name).records))
    return assemble(records, Site(), node(name).now, origin=node(name).origin)


def shape(one: Machine | None) -> tuple[int | None, int | None, float | None]:
    assert one
    return one.gpus, one.rdma, one.rdma_rate


DOWN = set_fields(Port, "mlx5_2/1", state="DOWN")
SLOW = set_fields(Port, "mlx5_3/1", rate=25e9)


@pytest.mark.parametrize(
    ("edits", "found", "expected"),
    [
        ((), (8, 8, 50e9), ""),
        ((DOWN,), (8, 7, 50e9), "7 ports of 50 GB/s, not 8 of 50"),
        ((SLOW,), (8, 8, 46.875e9), "8 ports of 46.9 GB/s, not 8 of 50"),
    ],
)
def test_ports_of_the_fabric_as_found(edits: tuple[Edit, ...], found: tuple[int, int, float], expected: str) -> None:
    """Ports for management do not count."""
    machine = machine_as_found(snapshot("hgx-h100", *edits))
    assert shape(machine) == found
    assert machine
    assert differences(TYPE, machine) == expected


def test_gpus_as_found() -> None:
    one = snapshot("hgx-h100", without(names_of(node("hgx-h100").snapshot, "0000:1b:00.0")))
    machine = machine_as_found(one)
    assert machine
    assert machine.gpus == 7
    assert differences(TYPE, machine) == "7 GPUs, not 8"
    assert cluster_of(machine, 2, gpu=None).gpus == 14


def test_a_node_of_no_known_type() -> None:
    """Four A100 on PCIe and one port: the type has the name of the firmware."""
    one = snapshot("a100-pcie")
    assert one.machine is None
    machine = machine_as_found(one)
    assert machine
    assert (machine.name, *shape(machine)) == ("PowerEdge R7525", 4, 1, 25e9)
    assert machine_as_found(replace(one, facts={key: {} for key in one.facts})) is None
