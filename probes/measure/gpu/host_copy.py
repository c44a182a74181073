"""How fast GPUs copy from and to the host's memory, alone and all at once; and how their links run while they do.

By the copy engines of the GPUs, from and to pinned memory of a known NUMA node: the nearest at "quick", all at "full".
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ....models.facts.reason import Reason
from ....models.facts.records import Flow, Record
from ....models.facts.units import MIB
from ....models.inventory.sockets import with_cpus
from ....models.report import Report
from ...host.live import Live
from ..probe import Probe, Wanted
from .concurrent_copies import Lane, rates
from .copy_plan import gpus_of, nearest_memory, probe_of, wanted_runs
from .copy_request import CopyRequest, Run, flows
from .copy_runs import as_size, measured
from .cuda_driver import Cuda, Device, Refused, Stream
from .cuda_gpus import fitting
from .link_sampling import LinkSampling
from .pinned_memory import ANYWHERE, PinnedMemory, cpus_of

SIZE = 64 * MIB  # of a copy: PCIe 4 is at 95 % of its rate with 16 MB, and a link twice as fast needs twice as much
_LEAST = 4 * MIB
_WAKING, _STEP = 1.0, 0.02  # seconds that a link has to leave the speed at which it rests, and between two looks
_KINDS = frozenset({("numa", "gpu"), ("gpu", "numa"), ("host", "gpu"), ("gpu", "host")})


def plan(report: Report, wanted: Wanted) -> Iterator[Probe]:
    """At "quick" one process; at "full" one for the nearest NUMA nodes, for all GPUs at once, for the other nodes."""
    topology = report.topology
    near = {name: nearest_memory(topology, name) for name in gpus_of(topology)}
    down, up = [(node, name) for name, node in near.items()], [*near.items()]
    alone: list[Run] = [(ends,) for pair in zip(down, up, strict=True) for ends in pair]
    both: list[Run] = [*zip(down, up, strict=True)]
    crowd: list[Run] = [tuple(down), tuple(up), (*down, *up)] if len(near) > 1 else []
    far: list[Run] = [
        run
        for name in near
        for node in with_cpus(topology)
        if node != near[name]
        for run in (((node, name),), ((name, node),))
    ]
    for runs in [[*alone, *crowd[:1]]] if wanted.effort == "quick" else [[*alone, *both], crowd, far]:
        if asked := wanted_runs(topology, runs, wanted):
            yield probe_of("host_copy", report, wanted, asked, SIZE, _KINDS)


def copies(*words: str) -> Iterator[Record]:
    """Runs in the child. What is asked is in the words of copy_request.py."""
    yield from measured("host_copy", words, HostBench)


class HostBench:
    """A buffer for each direction on each GPU, and as many on each NUMA node as it has GPUs in one run."""

    counted = 1

    def __init__(self, cuda: Cuda, request: CopyRequest, devices: Mapping[str, Device]) -> None:
        self._cuda = cuda
        self._gpu: dict[str, tuple[int, Stream, Stream]] = {}
        self._memory: dict[str, PinnedMemory | Refused] = {}
        self._links: dict[str, LinkSampling] = {}
        runs = [Counter(end for ends in run for end in ends if end not in request.gpus) for run in request.runs]
        self._lanes = {node: max(run[node] for run in runs) for run in runs for node in run}
        self._size = _size(sum(self._lanes.values()))

    def prepare(self, device: Device) -> None:
        """One buffer, of which one half sends and one receives."""
        size = fitting(device.free(), self._size, 2, _LEAST)
        if size is None:
            raise Refused(
                f"only {device.free() / 1e6:.0f} MB of its memory are free",
                "end what uses it",
                reason=Reason.NOT_MEASURED,
            )
        self._size = min(size, self._size)
        self._gpu[device.name] = device.take(2 * size), device.stream(), device.stream()
        self._links[device.name] = LinkSampling(Live(), device.name, device.address)

    def lanes(self, run: Run) -> list[Lane]:
        """None on nodes that are memory alone: nobody could place its pages by touching them first."""
        if any(node != ANYWHERE and not cpus_of(node) for ends in run for node in ends if node in self._lanes):
            return []
        found, used = list[Lane](), Counter[str]()
        for source, target in run:
            gpu, node = (target, source) if target in self._gpu else (source, target)
            base, down, up = self._gpu[gpu]
            place = self._pinned(node) + used[node] * self._size
            used[node] += 1
            if target == gpu:
                found.append(Lane(down, base, place, self._size))
            else:
                found.append(Lane(up, place, base + self._size, self._size))
        return found

    def flows(self, run: Run, size: int | None) -> list[Flow]:
        return flows(run, size)

    def wake(self, run: Run, lanes: Sequence[Lane]) -> None:
        """Copy until no link is slower than its ends can do: a link that stays slow is slow."""
        until = time.monotonic() + _WAKING
        while not all(self._links[gpu].awake() for gpu in self._gpus(run)) and time.monotonic() < until:
            rates(lanes, _STEP)

    def look(self, run: Run, lanes: Sequence[Lane]) -> list[Record]:
        load = f"copies of {as_size(lanes[0].size)} {' and '.join('>'.join(ends) for ends in run[:2])}"
        if len(run) > 2:
            load += f" and {len(run) - 2} more"
        return [seen for gpu in self._gpus(run) for seen in self._links[gpu].sample(load)]

    def close(self) -> None:
        for memory in self._memory.values():
            if isinstance(memory, PinnedMemory):
                memory.close()

    def _gpus(self, run: Run) -> list[str]:
        return [*dict.fromkeys(end for ends in run for end in ends if end in self._gpu)]

    def _pinned(self, node: str) -> int:
        """The address of the memory of a node, which is taken once. Raises Refused, each time with the same reason."""
        if node not in self._memory:
            try:
                self._memory[node] = PinnedMemory(self._cuda, node, self._lanes[node] * self._size)
            except Refused as refusal:
                self._memory[node] = refusal
        memory = self._memory[node]
        if isinstance(memory, Refused):
            raise memory
        return memory.address


def _size(buffers: int) -> int:
    """As much as makes 5 % of what is free on the host, at most."""
    free = re.search(r"^MemAvailable: *([0-9]+) kB$", Live().read("proc/meminfo") or "", re.MULTILINE)
    return fitting(int(free[1]) << 10, SIZE, buffers, _LEAST) or _LEAST if free else _LEAST
