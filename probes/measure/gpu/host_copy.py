"""The probe `host_copy`: rates between GPUs and host memory, one GPU alone and all at once, and link states meanwhile.

The GPUs' copy engines use pinned memory of a known NUMA node: the nearest node at "quick", all nodes at "full".
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
from ..probe import Probe, Scope
from .concurrent_copies import Lane, rates
from .copy_plan import gpus_of, nearest_memory, probe_of, runs_in_scope
from .copy_request import CopyRequest, Run, flows
from .copy_runs import as_size, measured
from .cuda_driver import Cuda, CudaError, Device, Stream
from .cuda_gpus import fitting
from .link_sampling import LinkSampling
from .pinned_memory import ANYWHERE, PinnedMemory, cpus_of

# Bytes of a copy. PCIe 4 reaches 95 % of its rate with 16 MB, and a link twice as fast needs twice as much.
SIZE = 64 * MIB
_LEAST = 4 * MIB
_WAKING, _STEP = 1.0, 0.02  # seconds for a link to leave its idle speed, and between two checks
_KINDS = frozenset({("numa", "gpu"), ("gpu", "numa"), ("host", "gpu"), ("gpu", "host")})


def plan(report: Report, scope: Scope) -> Iterator[Probe]:
    """Yield one probe at "quick"; at "full" one each for the nearest NUMA nodes, all GPUs at once, and other nodes."""
    topology = report.topology
    near = {name: nearest_memory(topology, name) for name in gpus_of(topology)}
    to_gpu, to_host = [(node, name) for name, node in near.items()], [*near.items()]
    alone: list[Run] = [(ends,) for pair in zip(to_gpu, to_host, strict=True) for ends in pair]
    both: list[Run] = [*zip(to_gpu, to_host, strict=True)]
    concurrent: list[Run] = [tuple(to_gpu), tuple(to_host), (*to_gpu, *to_host)] if len(near) > 1 else []
    far: list[Run] = [
        run
        for name in near
        for node in with_cpus(topology)
        if node != near[name]
        for run in (((node, name),), ((name, node),))
    ]
    for runs in [[*alone, *concurrent[:1]]] if scope.effort == "quick" else [[*alone, *both], concurrent, far]:
        if planned := runs_in_scope(topology, runs, scope):
            yield probe_of("host_copy", report, scope, planned, SIZE, _KINDS)


def copies(*words: str) -> Iterator[Record]:
    """Measure in the child process. `words` are the arguments of copy_request.py."""
    yield from measured("host_copy", words, HostSetup)


class HostSetup:
    """A buffer for each direction on each GPU, and one buffer on a NUMA node for each of its copies in a run."""

    bytes_factor = 1

    def __init__(self, cuda: Cuda, request: CopyRequest, devices: Mapping[str, Device]) -> None:
        self._cuda = cuda
        self._gpu: dict[str, tuple[int, Stream, Stream]] = {}
        self._memory: dict[str, PinnedMemory | CudaError] = {}
        self._links: dict[str, LinkSampling] = {}
        runs = [Counter(end for ends in run for end in ends if end not in request.gpus) for run in request.runs]
        self._lanes = {node: max(run[node] for run in runs) for run in runs for node in run}
        self._size = _size(sum(self._lanes.values()))

    def prepare(self, device: Device) -> None:
        """Allocate one buffer: one half sends, the other receives."""
        size = fitting(device.free(), self._size, 2, _LEAST)
        if size is None:
            raise CudaError(
                f"only {device.free() / 1e6:.0f} MB of its memory are free",
                "end what uses it",
                reason=Reason.NOT_MEASURED,
            )
        self._size = min(size, self._size)
        self._gpu[device.name] = device.take(2 * size), device.stream(), device.stream()
        self._links[device.name] = LinkSampling(Live(), device.name, device.address)

    def lanes(self, run: Run) -> list[Lane]:
        """Return the copies; none for NUMA nodes without CPUs, because no CPU can place their pages by first touch."""
        if any(node != ANYWHERE and not cpus_of(node) for ends in run for node in ends if node in self._lanes):
            return []
        lanes, used = list[Lane](), Counter[str]()
        for source, target in run:
            gpu, node = (target, source) if target in self._gpu else (source, target)
            base, to_gpu, to_host = self._gpu[gpu]
            place = self._pinned(node) + used[node] * self._size
            used[node] += 1
            if target == gpu:
                lanes.append(Lane(to_gpu, base, place, self._size))
            else:
                lanes.append(Lane(to_host, place, base + self._size, self._size))
        return lanes

    def flows(self, run: Run, size: int | None) -> list[Flow]:
        return flows(run, size)

    def wake_links(self, run: Run, lanes: Sequence[Lane]) -> None:
        """Copy until all links run at the speed of their ends, or for _WAKING seconds."""
        until = time.monotonic() + _WAKING
        while not all(self._links[gpu].awake() for gpu in self._gpus(run)) and time.monotonic() < until:
            rates(lanes, _STEP)

    def sample_links(self, run: Run, lanes: Sequence[Lane]) -> list[Record]:
        load = f"copies of {as_size(lanes[0].size)} {' and '.join('>'.join(ends) for ends in run[:2])}"
        if len(run) > 2:
            load += f" and {len(run) - 2} more"
        return [record for gpu in self._gpus(run) for record in self._links[gpu].sample(load)]

    def close(self) -> None:
        for memory in self._memory.values():
            if isinstance(memory, PinnedMemory):
                memory.close()

    def _gpus(self, run: Run) -> list[str]:
        return [*dict.fromkeys(end for ends in run for end in ends if end in self._gpu)]

    def _pinned(self, node: str) -> int:
        """Return the address of a node's memory, allocated once. Raises CudaError, with the same reason each time."""
        if node not in self._memory:
            try:
                self._memory[node] = PinnedMemory(self._cuda, node, self._lanes[node] * self._size)
            except CudaError as refusal:
                self._memory[node] = refusal
        memory = self._memory[node]
        if isinstance(memory, CudaError):
            raise memory
        return memory.address


def _size(buffers: int) -> int:
    """Return the buffer size: at most SIZE, and all buffers at most 5 % of the host's free memory."""
    free = re.search(r"^MemAvailable: *([0-9]+) kB$", Live().read("proc/meminfo") or "", re.MULTILINE)
    return fitting(int(free[1]) << 10, SIZE, buffers, _LEAST) or _LEAST if free else _LEAST
