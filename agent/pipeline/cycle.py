"""One cycle of the service: from the sources that are due to a report, with the memory of earlier cycles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from ...models.diagnosis.hysteresis import Histories, settle
from ...models.diagnosis.ignored import last_matched, silenced
from ...models.diagnosis.reevaluation import obstacles, unreported
from ...models.evaluate import evaluate
from ...models.facts.machine import Event, Node
from ...models.facts.records import Observation, Record
from ...models.inventory.assemble import assemble
from ...models.inventory.inventory import Inventory, completed, equal, same_machine
from ...models.inventory.present import is_complete, present
from ...models.inventory.snapshot import Snapshot
from ...models.report import Report
from ...models.rules.gpu.driver import listed_gpus
from ...models.site.schema import Site
from ...probes.host.host import Host
from .diagnose import Probes, confirmed
from .earlier_events import of_this_boot, without_events
from .past import recent_rates, thin
from .renumbering import followed, gpu_places, new_names, records_followed
from .run_source import collect_each, keep_last_if_exhausted
from .source import Source

Collector: TypeAlias = Callable[[Iterable[Source], Host], Mapping[str, tuple[Record, ...]]]


class Memory(Struct, frozen=True):
    """The memory of a service: the last records of each source, the active findings, and earlier observations."""

    collected: Mapping[str, tuple[Record, ...]] = field(default_factory=dict)
    measured: tuple[Record, ...] = ()  # by the last run of the probes
    histories: Histories = field(default_factory=dict)
    past: tuple[Observation, ...] = ()
    rates: tuple[Observation, ...] = ()  # of flows, by earlier runs of the probes
    baseline: tuple[Observation, ...] = ()
    accepted: float | None = None  # when the node was marked as good, in seconds since 1970
    inventory: Inventory | None = None  # what was there before: the reference
    last: Inventory | None = None  # what is there in this boot
    listed: frozenset[str] = frozenset()  # addresses of GPUs that a driver listed in this run of the service
    boot_id: str | None = None  # of the boot in which the findings were evaluated
    events: tuple[Event, ...] = ()  # of this boot, also those that the kernel's log no longer holds
    gpus: Mapping[str, str] = field(default_factory=dict)  # the place of each GPU that has a number (renumbering.py)
    ignored: Mapping[str, float] = field(default_factory=dict)  # entry of [ignore] -> when it matched a finding last


def cycle(
    host: Host,
    due: Iterable[Source],
    site: Site,
    memory: Memory,
    probes: Probes | None = None,
    pause: Callable[[], None] = lambda: None,
    collector: Collector = collect_each,
) -> tuple[Memory, Report]:
    """One cycle of the service. Sources that are not due keep their last records. `pause` splits the work into bursts.

    `probes` as in `diagnose`, or None if no measurement is due. A measurement replaces the rates measured before; those
    of the last days stay in the memory, because the measurements of several days show a smaller loss than one.
    """
    memory, fresh = _collected(tuple(due), host, memory, collector)
    collected = {**memory.collected, **fresh}
    retained = () if probes else memory.measured
    rates = recent_rates(memory.rates, memory.measured, host.now()) if probes else memory.rates
    events = of_this_boot(memory.events, collected, host.now(), memory.boot_id, memory.accepted, memory.histories)

    def evaluated(measured: Sequence[Record]) -> tuple[Snapshot, Report]:
        records = chain(without_events(collected), events, retained, measured)
        snapshot = _assembled(records, site, host, replace(memory, rates=rates))
        pause()
        return snapshot, evaluate(snapshot)

    measured, snapshot, report = confirmed(host, probes or (lambda report, undecided: ()), evaluated)
    pause()
    histories, shown = _settled(memory, snapshot, report)
    past = thin((*memory.past, *chain(*fresh.values())), host.now())
    kept = (*retained, *measured)
    after = replace(memory, collected=collected, events=events, measured=kept, histories=histories, past=past)
    ignored = last_matched(memory.ignored, snapshot, shown.findings)
    return replace(_with_inventory(after, snapshot), rates=rates, ignored=ignored), shown


def _collected(
    sources: tuple[Source, ...], host: Host, memory: Memory, collector: Collector
) -> tuple[Memory, Mapping[str, tuple[Record, ...]]]:
    """The memory under the present numbers of the GPUs, and the records of the sources that are due."""
    read = collector(sources, host)
    memory = renumbered(memory, read)
    return memory, keep_last_if_exhausted(sources, read, memory.collected, host.now())


def renumbered(memory: Memory, fresh: Mapping[str, Sequence[Record]]) -> Memory:
    """The memory under the present numbers of the GPUs. Unchanged if no GPU was read."""
    now = gpu_places(chain(*fresh.values()))
    if now.items() <= memory.gpus.items():
        return memory
    names = new_names(memory.gpus, now)
    return replace(
        memory,
        collected={name: tuple(records_followed(records, names)) for name, records in memory.collected.items()},
        measured=tuple(records_followed(memory.measured, names)),
        past=tuple(followed(memory.past, names)),
        rates=tuple(followed(memory.rates, names)),
        baseline=tuple(followed(memory.baseline, names)),
        gpus={key: place for key, place in memory.gpus.items() if place not in now.values()} | now,
    )


def _settled(memory: Memory, snapshot: Snapshot, report: Report) -> tuple[Histories, Report]:
    return settle(
        _silenced(memory.histories, snapshot),
        report,
        memory.accepted,
        booted=snapshot.of(Node)["node"].booted,
        obstacles=lambda finding: obstacles(snapshot, report, finding),
        first=not memory.collected,
        unreported=lambda finding: unreported(snapshot, finding),
    )


def _assembled(records: Iterable[Record], site: Site, host: Host, memory: Memory) -> Snapshot:
    """The snapshot of a cycle, with the memory of the service."""
    return assemble(
        records,
        site,
        host.now(),
        (*memory.past, *memory.rates),
        memory.baseline,
        host.origin,
        accepted=memory.accepted,
        inventory=memory.inventory,
        listed=memory.listed,
    )


def _with_inventory(memory: Memory, snapshot: Snapshot) -> Memory:
    """The memory with the boot and what is present. The first inventory is the reference; later ones complete it."""
    boot_id = snapshot.of(Node)["node"].boot_id or memory.boot_id
    memory = replace(memory, boot_id=boot_id, listed=memory.listed | listed_gpus(snapshot))
    if not is_complete(snapshot):
        return memory
    now = present(snapshot)
    last = memory.last if memory.last and equal(memory.last, now) else now
    if memory.inventory is None or not same_machine(memory.inventory, now):
        return replace(memory, inventory=now, last=last)
    return replace(memory, inventory=completed(memory.inventory, now), last=last)


def _silenced(histories: Histories, snapshot: Snapshot) -> Histories:
    """The histories with the reasons of the present site file: an operator can silence a finding that is stale."""
    return {
        key: replace(
            history, findings=tuple(replace(one, silenced=silenced(snapshot, one)) for one in history.findings)
        )
        for key, history in histories.items()
    }
