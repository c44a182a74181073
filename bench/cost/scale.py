"""Time for all pairs of GPUs, NICs, disks and NUMA nodes by machine size: python -m bench.cost.scale

For each pair linkgauge computes the path, its type, the rated and the typical rate of a copy, and the limiting hop. For
comparison, the same run measures networkx, which only finds the shortest paths between the same devices over the same
hops. The output is the median of five runs, each with a new topology. The exit code is 1 if 72 GPUs or 1,000 PCI
functions exceed their limits.
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
    """Machines with their names, and whether the time limit applies."""
    for gpus in (8, 16, 32, 72, 144):
        yield f"{gpus} GPUs in one NVLink domain", nvlink_domain(gpus), gpus == 72
    for functions in (100, 300, 1000):
        yield f"{functions} PCI functions", pci_node(functions), functions == 1000


def count(topology: Topology) -> int:
    """Compute all pairs."""
    return sum(map(len, pairs(topology).values()))


def peer() -> Callable[[Topology], int] | None:
    """The number of paths that networkx finds; None if it is not installed."""
    try:
        networkx = importlib.import_module("networkx")
    except ImportError:
        return None

    def paths(topology: Topology) -> int:
        graph = networkx.Graph((hop.sender, hop.receiver) for hops in topology.hops.values() for hop in hops)
        ends = [device.id for device in topology.devices if device.kind in ENDS]
        found = (networkx.single_source_shortest_path(graph, end) for end in ends)
        return sum(1 for paths_of in found for end in ends if end in paths_of) - len(ends)

    return paths


def seconds(work: Callable[[Topology], int], topology: Topology) -> tuple[float, int]:
    """The median time of the runs, and their result."""
    taken = []
    for _ in range(RUNS):
        fresh = Topology(topology.devices, topology.links)
        start = time.perf_counter()
        result = work(fresh)
        taken.append(time.perf_counter() - start)
    return median(taken), result


def main() -> int:
    """Print the table. Returns the exit code."""
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
