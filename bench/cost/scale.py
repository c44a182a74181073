"""How the time for all pairs of GPUs, NICs, disks and NUMA nodes grows: python -m bench.cost.scale

Of each pair linkgauge works out the way, its type, what a copy is rated at and what it typically reaches, and the hop
that holds it. Beside it, in the same run, networkx finds the shortest paths from the same devices over the same hops
and nothing else. Printed are medians of five runs, each of a topology that was not looked at before. Exit code 1 where
72 GPUs or 1,000 PCI functions take longer than they may.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterator
from statistics import median

from bench.accuracy.machines import nvlink_domain, pci_node
from linkgauge.models.bandwidth.all_pairs import ENDS, pairs
from linkgauge.models.graph.topology import Topology

RUNS = 5
MOST = 0.1  # seconds


def machines() -> Iterator[tuple[str, Topology, bool]]:
    """Each with its name, and whether it is one that must be fast enough."""
    for gpus in (8, 16, 32, 72, 144):
        yield f"{gpus} GPUs in one NVLink domain", nvlink_domain(gpus), gpus == 72
    for functions in (100, 300, 1000):
        yield f"{functions} PCI functions", pci_node(functions), functions == 1000


def count(topology: Topology) -> int:
    """All pairs, worked out."""
    return sum(map(len, pairs(topology).values()))


def peer() -> Callable[[Topology], int] | None:
    """The same number of paths by networkx; None where it is not installed."""
    try:
        networkx = importlib.import_module("networkx")
    except ImportError:
        return None

    def paths(topology: Topology) -> int:
        graph = networkx.Graph((hop.sender, hop.receiver) for hops in topology.hops.values() for hop in hops)
        ends = [device.id for device in topology.devices if device.kind in ENDS]
        found = (networkx.single_source_shortest_path(graph, end) for end in ends)
        return sum(1 for ways in found for end in ends if end in ways) - len(ends)

    return paths


def seconds(work: Callable[[Topology], int], topology: Topology) -> tuple[float, int]:
    """The median of the runs, and what they gave."""
    taken = []
    for _ in range(RUNS):
        fresh = Topology(topology.devices, topology.links)
        start = time.perf_counter()
        result = work(fresh)
        taken.append(time.perf_counter() - start)
    return median(taken), result


def main() -> int:
    """Print the table; the exit code."""
    paths = peer()
    missed = False
    print(f"{f'median of {RUNS}':32} devices    pairs       ms  us a pair  networkx, paths alone")
    for name, topology, must in machines():
        taken, found = seconds(count, topology)
        text = f"{name:32} {len(topology.devices):7,} {found:8,} {taken * 1e3:8.1f} {taken / found * 1e6:10.2f}  "
        text += f"{seconds(paths, topology)[0] * 1e3:8.1f} ms" if paths else "not installed"
        if must:
            text += f"  {MOST * 1e3:.0f} ms: {'kept' if taken <= MOST else 'MISSED'}"
            missed |= taken > MOST
        print(text)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
