"""The probe `peer_copy`: rates between GPUs, for pairs and for concurrent patterns that show shared bottlenecks.

The sender's copy engine writes, because chipsets forward writes more slowly than reads. If the driver gives a pair no
peer access, the copy goes through host memory, and the rate is that of this route.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, permutations

from ....models.facts.reason import Reason
from ....models.facts.records import Flow, Record
from ....models.facts.units import MIB
from ....models.graph.routes import Route, route, routes
from ....models.graph.topology import Topology
from ....models.report import Report
from ..probe import Probe, Scope
from .concurrent_copies import Lane
from .copy_plan import gpus_of, nearest_memory, probe_of, runs_in_scope
from .copy_request import CopyRequest, Run, flows
from .copy_runs import measured
from .cuda_driver import Cuda, CudaError, Device, Stream
from .cuda_gpus import fitting
from .performance_state import Waking

SIZE = 256 * MIB  # bytes of a single copy: NVLink 5 reaches 95 % of its rate with it
_ROOM = 2 * SIZE  # bytes shared by the targets of all copies to one GPU
_LEAST = 16 * MIB
_KINDS = frozenset({("gpu", "gpu")})


def plan(report: Report, scope: Scope) -> Iterator[Probe]:
    """Yield at "quick" a ring, in which each GPU sends and receives once; at "full" all pairs and patterns."""
    topology = report.topology
    names = [*gpus_of(topology)]
    if len(names) < 2:
        return
    ring: list[Run] = [((a, b),) for a, b in zip(names, names[1:] + names[:1], strict=True)]
    pairs: list[Run] = [((a, b),) for a, b in permutations(names, 2)]
    both: list[Run] = [((a, b), (b, a)) for a, b in combinations(names, 2)]
    concurrent = [*_concurrent_runs(topology, names), tuple(permutations(names, 2))] if len(names) > 2 else []
    for runs in [ring] if scope.effort == "quick" else [pairs, both, concurrent]:
        if planned := runs_in_scope(topology, runs, scope):
            yield probe_of("peer_copy", report, scope, planned, SIZE, _KINDS)


def _concurrent_runs(topology: Topology, gpus: Sequence[str]) -> Iterator[Run]:
    """Yield concurrent patterns for GPUs that are connected over PCIe.

    First a pair below each switch, then pairs across switches, then two GPUs of one switch that write to two others.
    """
    below = defaultdict[str, list[str]](list)
    for name in gpus:
        if switch := _switch(topology, name):
            below[switch].append(name)
    several = [names for names in below.values() if len(names) > 1]
    if not several or _avoids_pcie(topology, *several[0][:2]):
        return
    yield tuple((names[0], names[1]) for names in several)
    if len(several) > 1:
        yield tuple((a[0], b[0]) for a, b in zip(several, several[1:] + several[:1], strict=True))
    for names in several:
        others = [other[0] for other in below.values() if other is not names]
        if len(others) > 1:
            yield (names[0], others[0]), (names[1], others[1])


def _switch(topology: Topology, gpu: str) -> str | None:
    """Return the switch above a GPU that is nearest to the processor; None if the GPU is attached to a root port."""
    path: Route = routes(topology, gpu, "pcie").get(nearest_memory(topology, gpu), ())
    return next((hop.receiver for hop in reversed(path) if topology.kind(hop.receiver) == "upstream-port"), None)


def _avoids_pcie(topology: Topology, one: str, other: str) -> bool:
    """Whether the route between two GPUs does not start with PCIe."""
    path = route(topology, one, other)
    return path is not None and path[0].links[0].kind != "pcie"


def copies(*words: str) -> Iterator[Record]:
    """Measure in the child process. `words` are the arguments of copy_request.py."""
    yield from measured("peer_copy", words, PeerSetup)


class PeerSetup:
    """On each GPU one source buffer for all its copies, and a region with a separate target for each arriving copy."""

    bytes_factor = 1

    def __init__(self, cuda: Cuda, request: CopyRequest, devices: Mapping[str, Device]) -> None:
        self._devices = devices
        self._memory: dict[str, tuple[int, int, int]] = {}  # source, target, bytes of the source
        self._streams = defaultdict[str, list[Stream]](list)
        self._via: dict[tuple[str, ...], str] = {}
        self._waking = Waking(devices)

    def prepare(self, device: Device) -> None:
        size = fitting(device.free(), SIZE, 1 + _ROOM // SIZE, _LEAST)
        if size is None:
            raise CudaError(
                f"only {device.free() / 1e6:.0f} MB of its memory are free",
                "end what uses it",
                reason=Reason.NOT_MEASURED,
            )
        room = _ROOM // SIZE * size
        base = device.take(size + room)
        self._memory[device.name] = base, base + size, size

    def lanes(self, run: Run) -> list[Lane]:
        size = copy_size(min(self._memory[end][2] for ends in run for end in ends), run)
        lanes, sent, received = list[Lane](), Counter[str](), Counter[str]()
        for sender, receiver in run:
            if (sender, receiver) not in self._via:
                direct = self._devices[sender].reaches(self._devices[receiver])
                self._via[sender, receiver] = "" if direct else "host"
            stream = self._stream(sender, sent[sender])
            sent[sender] += 1
            target = self._memory[receiver][1] + received[receiver] * size
            received[receiver] += 1
            lanes.append(Lane(stream, target, self._memory[sender][0], size))
        return lanes

    def flows(self, run: Run, size: int | None) -> list[Flow]:
        return flows(run, size, self._via)

    def wake_links(self, run: Run, lanes: Sequence[Lane]) -> None:
        """Wake the GPUs. The first copy, which does not count, wakes NVLinks. Copies to the host wake PCIe links."""
        self._waking.wake([*dict.fromkeys(end for ends in run for end in ends)], lanes)

    def sample_links(self, run: Run, lanes: Sequence[Lane]) -> list[Record]:
        return []

    def close(self) -> None:
        """Do nothing: all memory belongs to the GPUs."""

    def _stream(self, gpu: str, number: int) -> Stream:
        """Return the `number`th stream of a GPU. Each concurrent copy from a GPU has its own stream."""
        if number == len(self._streams[gpu]):
            self._streams[gpu].append(self._devices[gpu].stream())
        return self._streams[gpu][number]


def copy_size(size: int, run: Run) -> int:
    """Return the bytes of each copy of a run: `size`, halved until the targets of all copies to a GPU fit."""
    room, most = _ROOM // SIZE * size, max(Counter(receiver for _, receiver in run).values())
    while size * most > room:
        size //= 2
    return size
