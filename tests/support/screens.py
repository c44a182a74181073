"""Twelve nodes whose texts an operator reads: one fault of each kind, several faults, none, eight equal ones, an absent
GPU. Each is an HGX H100 of tests/nodes with lines of TOML appended.
"""

from __future__ import annotations

from functools import cache

from linkgauge.agent.pipeline.diagnose import KnownState, diagnose, read_snapshot
from linkgauge.agent.pipeline.registry import SOURCES, measure_nothing
from linkgauge.models.inventory.inventory import Inventory
from linkgauge.models.inventory.present import present
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site

from .nodes.broken_nodes import DOUBLE_BIT, kernel
from .nodes.described import node, steady

NARROW = "[device.gpu1]\nwidth = 8\n"
PORT = "[device.mlx5_4]\nup = false\n"
DISK = "[device.nvme3]\nwidth = 2\n"
NVLINK = "[device.gpu3]\ninactive = [7]\n"
MEMORY = "[device.gpu5]\ngpu = {remap_pending = true, remapped_uncorrectable = 1, recovery = 'GPU reset'}\n"
HEAT = """[device.gpu6]
counters = {clocks_hw_thermal = 3000}
[device.gpu6.gpu]
clock_reasons = ["hardware slowdown", "hardware thermal slowdown"]
clock = 600e6
temperature = 92
power = 310
"""
SCREENS = {
    "healthy": "",
    "pcie": NARROW,
    "nic": PORT,
    "nvme": DISK,
    "nvlink": NVLINK,
    "memory": MEMORY,
    "heat": HEAT,
    "log": kernel(DOUBLE_BIT) + "[device.gpu5]\ngpu = {recovery = 'GPU reset'}\n",
    "three": NARROW + PORT + DISK,
    "six": NARROW + PORT + DISK + NVLINK + MEMORY + HEAT,
    "eight": "".join(f"[device.gpu{number}]\nwidth = 8\n" for number in range(8)),
    "absent": "[device.gpu3]\ngone = true\n",
}


@cache
def screen(name: str) -> Report:
    """The report. The node with an absent GPU has the inventory of the healthy node."""
    before = _healthy() if name == "absent" else None
    host = node("hgx-h100", SCREENS[name])
    return steady(diagnose(host, SOURCES, measure_nothing, Site(), KnownState(inventory=before)).report)


@cache
def _healthy() -> Inventory:
    return present(read_snapshot(node("hgx-h100"), SOURCES, Site()))
