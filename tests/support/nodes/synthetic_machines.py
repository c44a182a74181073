"""Machines that are built from a few lines."""

from __future__ import annotations

from pathlib import Path

from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.models.facts.records import Record
from linkgauge.probes.host.recorded import Recorded

NODES = Path(__file__).parents[2] / "nodes"
NAMES = ("desktop", "server-raid", "hgx-h100", "vm-p5")
SMALL = """
[cpu]
cores = 1
threads = 1

[[root]]
bus = [0x50]
numa = 0
ports = ["h100"]
"""
GPU = "0000:51:00.0"


def said_of(machine: Recorded) -> list[Record]:
    return [record for reader in SOURCES for record in reader.read(machine)]
