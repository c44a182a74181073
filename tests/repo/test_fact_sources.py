"""Each fact and counter that linkgauge reads has a row in docs/reference/fact-sources.md."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import tomli

from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.agent.pipeline.run_source import collect
from linkgauge.models.catalog import codes
from linkgauge.models.facts.counters import ERRORS, TRAFFIC
from linkgauge.models.facts.records import Observation
from linkgauge.models.facts.registry import KINDS
from linkgauge.probes.gpu.nvml import state
from tests.support.nodes.described import node

ROOT = Path(__file__).parents[2]
TABLE = {
    kind: rows
    for kind, rows in tomli.loads((ROOT / "docs" / "fact-sources.toml").read_text(encoding="utf-8")).items()
    if kind != "text"
}
NODES = sorted(path.stem for path in (ROOT / "tests" / "nodes").glob("*.toml"))
# Values of the moment, and counters of memory and processors.
OTHERS = {"processes", "driver_calls", "link_speed", "ce_count", "ue_count", "throttle_time"}
# NVML fields that count on Ampere, Hopper and Blackwell, by speed (MB/s) and version of NVLinks (gpu/nvml_links.py).
COUNTING = {
    (25781, 6): [*range(32, 60), *range(96, 120)],
    (26562, 7): [138, 139, 161, 162, 163],
    (53125, 7): [*range(214, 251), 293],
}


@pytest.mark.parametrize(
    "kind", ["Driver", "Gpu", "GpuLink", "GpuPair", "Pci", "Net", "Rdma", "Port", "Gid", "Nvme", "Disk", "Array"]
)
def test_each_fact_has_a_row(kind: str) -> None:
    assert set(TABLE[kind]) == {*KINDS[kind].__struct_fields__} - {"key", "cites"}


def test_no_other_kind_is_left_out() -> None:
    """The kinds without a table are parts of the host, settings, logs and outputs of tools."""
    rest = "Node Package Numa HostBridge NicPath Optics Mount Setting Serial Service Event Nccl Transport NcclFailure"
    assert KINDS.keys() - TABLE.keys() == {
        *rest.split(),
        "NodePair",
        "Rank",
        "BmcLink",
        "BmcPart",
        "Temperature",
        "DiskHealth",
        "OfferedDevices",
    }
    others = {"counters", "numbers, requests and Xids of NVIDIA's driver", "logs, traffic and tools"}
    assert TABLE.keys() - KINDS.keys() == others


def test_each_error_and_each_byte_counter_has_a_row() -> None:
    assert (ERRORS | TRAFFIC.keys()) - TABLE["counters"].keys() == set()


@pytest.mark.parametrize("name", NODES)
def test_each_counter_that_sources_read_has_a_row(name: str) -> None:
    host = node(name)
    read = [record for source in SOURCES for record in collect(source, host)]
    counted = {one.quantity for one in read if isinstance(one, Observation)}
    assert counted - TABLE["counters"].keys() - OTHERS == set()


@pytest.mark.parametrize(("speed", "version"), COUNTING)
def test_each_counter_of_the_driver_has_a_row(driver: Callable[[str], Path], speed: int, version: int) -> None:
    counting = "\n".join(f'"{number}" = 1' for number in COUNTING[speed, version])
    driver(f"gpus = 1\nspeed = {speed}\nversion = {version}\n[fields]\n{counting}\n")
    counted = {one.quantity for one in state() if isinstance(one, Observation)}
    assert len([name for name in counted if name.startswith("nvlink_")]) >= 3
    assert counted - TABLE["counters"].keys() - OTHERS == set()


def test_rows_are_complete_and_name_codes_that_exist() -> None:
    for kind, rows in TABLE.items():
        for name, row in rows.items():
            assert len(row) in (2, 3), f"{kind}.{name}"
            assert all(row), f"{kind}.{name}"
            named = set(re.findall(r"`((?:gpu|nic|nvlink|pcie|storage|driver)-[a-z0-9-]+)`", " ".join(row)))
            assert named <= codes().keys(), f"{kind}.{name}"
