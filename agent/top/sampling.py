"""Samples of this machine: threads that read sources at their intervals, and the readings from their records."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from functools import partial
from itertools import chain, count
from math import inf
from threading import Event, Thread

from msgspec import Struct

from ...models.facts.gpu import Gpu
from ...models.facts.records import Fact, Record
from ...models.graph.topology import Topology
from ...models.inventory.assemble import assemble
from ...models.site.schema import Site
from ...models.traffic.reading import Reading, of_records
from ...probes.gpu.gpus import read_gpus_now
from ...probes.host.guarded import Guarded
from ...probes.host.host import Host
from ...probes.network.port_traffic import read_traffic
from ...probes.storage.disk_traffic import read_disk_traffic
from ..pipeline.hang_guard import HangGuard
from ..pipeline.registry import named
from ..pipeline.source import Source

_ERRORS, _SLOW, _SELDOM = 5.0, 10.0, 60.0  # seconds between two reads of errors of ports, of PCIe links, of the rest
_VALID = 3.0  # intervals that values are shown without new ones
_LEAST_VALID = 10.0  # seconds: a driver in which one GPU hangs answers for the others after 8 s
_TRAFFIC = (
    Source("port_traffic", read_traffic, provides=("Port.counters", "Net.counters")),
    Source("disk_traffic", read_disk_traffic, provides=("disk_traffic",)),
)
_COMPLETE = 2  # samples with all sources of the group: --once shows the difference
_GPUS_NOW = Source("gpus_now", read_gpus_now, provides=("gpus_now",))
_OF_GPUS = (_GPUS_NOW.name, "gpus")
_NAMES = "pci"  # without this source a GPU has another id
_CHANGED_SELDOM = named("node", "cpu", "numa", "pci", "kfd", "link_modes", "nvme")


class Sample(Struct, frozen=True):
    """The records of sources that were read together."""

    records: Mapping[str, tuple[Record, ...]]  # by name of the source
    at: float  # seconds since 1970
    ahead: float  # seconds that the clock is ahead of the monotonic clock


class Group(Struct, frozen=True):
    """Sources that one thread reads. Each has its seconds between two reads."""

    sources: tuple[tuple[Source, float], ...]

    @property
    def every(self) -> float:
        """Seconds between two samples."""
        return min(every for _, every in self.sources)


def groups(interval: float) -> tuple[Group, ...]:
    """All sources, in groups that do not wait for each other: the driver of a GPU can hang for minutes."""
    errors, slow, seldom = (max(interval, least) for least in (_ERRORS, _SLOW, _SELDOM))

    def each(every: float, sources: Iterable[Source]) -> Iterator[tuple[Source, float]]:
        return ((one, every) for one in sources)

    return (
        Group((*each(interval, (_GPUS_NOW,)), *each(errors, named("gpus")), *each(seldom, named("gpu_wiring")))),
        Group((*each(errors, named("net", "rdma")), *each(interval, _TRAFFIC))),
        Group(tuple(each(slow, named("pci_links", "disks")))),
        Group(tuple(each(seldom, _CHANGED_SELDOM))),
    )


class LocalFeed:
    """Samples of a machine, which threads put into a queue. Sources that hang do not delay the other groups."""

    def __init__(self, host: Host, interval: float, site: Site) -> None:
        self._host, self._groups = host, groups(interval)
        self._assembler = Assembler(interval, site)
        # A rate needs two samples of its group.
        self.wanted = tuple(2 if group.every == interval else 1 for group in self._groups)

    def start(self, put: Callable[[int, Sample], None], end: Event) -> None:
        """Start the threads. They pass the number of their group and each sample to `put` until `end` is set."""
        for number, group in enumerate(self._groups):
            Thread(target=_samples, args=(group, self._host, partial(put, number), end), daemon=True).start()

    def take(self, samples: Iterable[Sample]) -> Reading:
        """The reading after further samples."""
        for one in samples:
            self._assembler.add(one)
        return self._assembler.reading()


def _samples(group: Group, host: Host, put: Callable[[Sample], None], end: Event) -> None:
    last: dict[str, float] = {}
    guarded, samples = Guarded(host), count()
    with closing(guarded), closing(HangGuard()) as hang_guard:
        while not end.is_set():
            began = time.monotonic()
            early = began + group.every / 2 if next(samples) >= _COMPLETE else inf
            due = [one for one, every in group.sources if early >= last.get(one.name, -inf) + every]
            last.update({one.name: began for one in due})
            put(sample(hang_guard, due, guarded))
            end.wait(max(0.0, began + group.every - time.monotonic()))


def sample(hang_guard: HangGuard, sources: Iterable[Source], host: Host) -> Sample:
    """One sample of the sources."""
    records = hang_guard.collect(sources, host)
    at = host.now()
    return Sample(records, at, at - time.monotonic())


class Assembler:
    """Makes readings of samples. It builds the topology again if facts have changed, except values of GPUs."""

    def __init__(self, interval: float, site: Site) -> None:
        self._lasts, self._site = max(_VALID * interval, _LEAST_VALID), site
        self._topology = Topology()
        self._collected: dict[str, tuple[Record, ...]] = {}
        self._read_at: dict[str, float] = {}
        self._facts: dict[str, list[Fact]] = {}
        self._changed = False
        self._at, self._ahead = 0.0, 0.0

    def add(self, one: Sample) -> None:
        """Replace the records of the sources of this sample."""
        self._collected.update(one.records)
        self._read_at.update(dict.fromkeys(one.records, one.at))
        facts = {name: _steady(records) for name, records in one.records.items()}
        self._changed = self._changed or any(facts[name] != self._facts.get(name) for name in facts)
        self._facts.update(facts)
        self._at, self._ahead = max(self._at, one.at), one.ahead

    def reading(self) -> Reading:
        """The reading after the samples so far."""
        if self._changed and _NAMES in self._collected:
            self._topology = assemble(chain(*self._collected.values()), self._site, self._at).topology
            self._changed = False
        current = self._collected
        for name in _OF_GPUS:  # facts have no time of their own
            if self._at - self._read_at.get(name, self._at) > self._lasts:
                current = {**current, name: tuple(self._facts[name])}
        return of_records(chain(*current.values()), self._topology, self._at, self._lasts, self._ahead)


def _steady(records: Iterable[Record]) -> list[Fact]:
    """The facts, without the values of GPUs that change in each second."""
    return [
        Gpu(key=one.key, address=one.address, name=one.name, failure=one.failure, nvlink_rate=one.nvlink_rate)
        if isinstance(one, Gpu)
        else one
        for one in records
        if isinstance(one, Fact)
    ]
