"""How fast GPUs copy to each other, pair by pair and in the patterns that find what pairs hide.

The sender's copy engine writes: what a chipset passes on slowly are writes. Where the driver lets a pair not reach each
other the copy goes through the host's memory, and that is what is measured then.
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
from ..probe import Probe, Wanted
from .concurrent_copies import Lane
from .copy_plan import gpus_of, nearest_memory, probe_of, wanted_runs
from .copy_request import CopyRequest, Run, flows
from .copy_runs import measured
from .cuda_driver import Cuda, Device, Refused, Stream
from .cuda_gpus import fitting

SIZE = 256 * MIB  # of a copy alone: NVLink 5 is at 95 % of its rate with that
_ROOM = 2 * SIZE  # in which all copies to one GPU have a place of their own
_LEAST = 16 * MIB
_KINDS = frozenset({("gpu", "gpu")})


def plan(report: Report, wanted: Wanted) -> Iterator[Probe]:
    """At "quick" a ring: each GPU sends once and receives once. At "full" all pairs, and what runs at one moment."""
    topology = report.topology
    names = [*gpus_of(topology)]
    if len(names) < 2:
        return
    ring: list[Run] = [((a, b),) for a, b in zip(names, names[1:] + names[:1], strict=True)]
    pairs: list[Run] = [((a, b),) for a, b in permutations(names, 2)]
    both: list[Run] = [((a, b), (b, a)) for a, b in combinations(names, 2)]
    crowds = [*_crowds(topology, names), tuple(permutations(names, 2))] if len(names) > 2 else []
    for runs in [ring] if wanted.effort == "quick" else [pairs, both, crowds]:
        if asked := wanted_runs(topology, runs, wanted):
            yield probe_of("peer_copy", report, wanted, asked, SIZE, _KINDS)


def _crowds(topology: Topology, gpus: Sequence[str]) -> Iterator[Run]:
    """Where GPUs reach each other over PCIe: each beside its neighbour below one switch, then across switches; and two
    that write from below one switch to two others.
    """
    below = defaultdict[str, list[str]](list)
    for name in gpus:
        if switch := _switch(topology, name):
            below[switch].append(name)
    several = [names for names in below.values() if len(names) > 1]
    if not several or _is_joined(topology, *several[0][:2]):
        return
    yield tuple((names[0], names[1]) for names in several)
    if len(several) > 1:
        yield tuple((a[0], b[0]) for a, b in zip(several, several[1:] + several[:1], strict=True))
    for names in several:
        others = [other[0] for other in below.values() if other is not names]
        if len(others) > 1:
            yield (names[0], others[0]), (names[1], others[1])


def _switch(topology: Topology, gpu: str) -> str | None:
    """The switch chip that is nearest to the processor above a GPU; None where it hangs on a root port."""
    way: Route = routes(topology, gpu, "pcie").get(nearest_memory(topology, gpu), ())
    return next((hop.receiver for hop in reversed(way) if topology.kind(hop.receiver) == "upstream-port"), None)


def _is_joined(topology: Topology, one: str, other: str) -> bool:
    """Whether something else than PCIe leads from one to the other."""
    way = route(topology, one, other)
    return way is not None and way[0].links[0].kind != "pcie"


def copies(*words: str) -> Iterator[Record]:
    """Runs in the child. What is asked is in the words of copy_request.py."""
    yield from measured("peer_copy", words, PeerBench)


class PeerBench:
    """On each GPU a buffer that all its copies read, and room in which each copy that arrives has its own place."""

    counted = 1

    def __init__(self, cuda: Cuda, request: CopyRequest, devices: Mapping[str, Device]) -> None:
        self._devices = devices
        self._memory: dict[str, tuple[int, int, int]] = {}  # source, target, bytes of the source
        self._streams = defaultdict[str, list[Stream]](list)
        self._via: dict[tuple[str, ...], str] = {}

    def prepare(self, device: Device) -> None:
        size = fitting(device.free(), SIZE, 1 + _ROOM // SIZE, _LEAST)
        if size is None:
            raise Refused(
                f"only {device.free() / 1e6:.0f} MB of its memory are free",
                "end what uses it",
                reason=Reason.NOT_MEASURED,
            )
        room = _ROOM // SIZE * size
        base = device.take(size + room)
        self._memory[device.name] = base, base + size, size

    def lanes(self, run: Run) -> list[Lane]:
        size = place(min(self._memory[end][2] for ends in run for end in ends), run)
        found, leaving, landed = list[Lane](), Counter[str](), Counter[str]()
        for sender, receiver in run:
            if (sender, receiver) not in self._via:
                straight = self._devices[sender].reaches(self._devices[receiver])
                self._via[sender, receiver] = "" if straight else "host"
            stream = self._stream(sender, leaving[sender])
            leaving[sender] += 1
            target = self._memory[receiver][1] + landed[receiver] * size
            landed[receiver] += 1
            found.append(Lane(stream, target, self._memory[sender][0], size))
        return found

    def flows(self, run: Run, size: int | None) -> list[Flow]:
        return flows(run, size, self._via)

    def wake(self, run: Run, lanes: Sequence[Lane]) -> None:
        """NVLinks wake within the first copy, which does not count; PCIe's have been woken by copies to the host."""

    def look(self, run: Run, lanes: Sequence[Lane]) -> list[Record]:
        return []

    def close(self) -> None:
        """All that was taken is the GPUs'."""

    def _stream(self, gpu: str, number: int) -> Stream:
        """The `number`th stream of a GPU: what leaves it at one moment has a stream each."""
        if number == len(self._streams[gpu]):
            self._streams[gpu].append(self._devices[gpu].stream())
        return self._streams[gpu][number]


def place(size: int, run: Run) -> int:
    """Bytes of each copy of a run, of `size` alone: halved until all that arrive at one GPU have room."""
    room, most = _ROOM // SIZE * size, max(Counter(receiver for _, receiver in run).values())
    while size * most > room:
        size //= 2
    return size
