"""NUMA nodes from sysfs (kernel documentation, ABI/stable/sysfs-devices-node)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial

from ...models.facts.machine import Numa
from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked, Record
from ..host.host import Host, Unreadable
from ..parsing.parsers import count, cpu_list, shown
from ..sysfs.fact_reader import FactReader
from ..sysfs.packages import numbered

_NODES = "sys/devices/system/node"


def read_numa(host: Host) -> Iterator[Record]:
    """Yield a `Numa` for each online node. A kernel without NUMA has none."""
    path = f"{_NODES}/online"  # the folder also lists thousands of memory blocks on large machines
    try:
        text = host.read(path)
        # Some sandboxes and copies of sysfs lack the list; there, every node with a folder is online.
        online = numbered(host, _NODES, "node") if text is None else tuple(dict.fromkeys(cpu_list(text)))
        if text is None and not online:
            if host.resolve(_NODES) is not None:
                yield NotChecked(
                    what="Numa", subject="node", reason=Reason.NOT_INSTALLED, detail=f"{path} is not there"
                )
            return
    except Unreadable as refusal:
        yield refusal.missed("Numa", "node", path)
        return
    except ValueError as wrong:
        yield NotChecked(what="Numa", subject="node", reason=Reason.UNREADABLE, path=path, detail=str(wrong))
        return
    for number in online:
        reading = FactReader(host, Numa, f"numa{number}", f"{_NODES}/node{number}")
        reading.take("cpus", "cpulist", cpu_list, required=True)
        reading.take("memory", "meminfo", _total, required=True)
        reading.take("distances", "distance", partial(_distances, online))
        yield from reading.records()


def _total(text: str) -> int:
    """Convert "Node 0 MemTotal:       16747124 kB" to bytes."""
    if not (match := re.search(r"MemTotal:[ \t]*([0-9]{1,15}) kB", text)):
        raise ValueError(f"{shown(text)} has no MemTotal")
    return int(match[1]) * 1024


def _distances(online: tuple[int, ...], text: str) -> Mapping[str, int]:
    """Parse "10 21", one column for each online node in order (node_read_distance of drivers/base/node.c)."""
    columns = [count(column) for column in text.split()]
    if len(columns) != len(online):
        raise ValueError(f"{shown(text)} is not one distance for each of {len(online)} nodes")
    return {f"numa{number}": distance for number, distance in zip(online, columns, strict=True)}
