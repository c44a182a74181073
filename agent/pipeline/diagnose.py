"""From sources to a report, once: read, measure and evaluate. Only the sources depend on the input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from ...models.bandwidth.repeated_rates import BATCH, MOST
from ...models.diagnosis.repetition import SimultaneousFlows, runs_to_repeat
from ...models.evaluate import evaluate
from ...models.facts.records import Observation, Record
from ...models.inventory.assemble import assemble
from ...models.inventory.inventory import Inventory
from ...models.inventory.snapshot import Snapshot
from ...models.report import Context, Report
from ...models.site.schema import Site
from ...probes.host.host import Host
from .hang_guard import collect_all
from .renumbering import found_again, gpu_places
from .run_source import collect
from .source import Source

Probes: TypeAlias = Callable[[Report, frozenset[SimultaneousFlows]], Iterable[Source]]

_MOST_ROUNDS = 3 + 2 * (MOST - 1) // BATCH  # stages of a measurement, and repetitions of copies and of related ones


class KnownState(Struct, frozen=True):
    """What is known of a node before it is read. Times in seconds since 1970."""

    baseline: Sequence[Observation] = ()  # of the time at which the node was accepted
    accepted: float | None = None  # when the node was marked as good
    inventory: Inventory | None = None  # what was there before
    context: Context = "host"  # "job": the process runs under the limits of a job


class Diagnosis(NamedTuple):
    """The evaluated snapshot of a node, and its report."""

    snapshot: Snapshot
    report: Report


def read_snapshot(host: Host, readers: Iterable[Source], site: Site) -> Snapshot:
    """Collect from all readers and return the snapshot, not evaluated."""
    return assemble(collect_all(readers, host), site, host.now(), origin=host.origin)


def diagnose(
    host: Host, readers: Iterable[Source], probes: Probes, site: Site, known: KnownState | None = None
) -> Diagnosis:
    """Read, measure and evaluate once. `probes` selects what to measure next: slow and undecided flows again."""
    known = known or KnownState()
    read = collect_all(readers, host)
    baseline = found_again(known.baseline, gpu_places(read))

    def evaluated(measured: Sequence[Record]) -> tuple[Snapshot, Report]:
        snapshot = assemble(
            [*read, *measured],
            site,
            host.now(),
            baseline=baseline,
            origin=host.origin,
            context=known.context,
            accepted=known.accepted,
            inventory=known.inventory,
        )
        return snapshot, evaluate(snapshot)

    _, snapshot, report = confirmed(host, probes, evaluated)
    return Diagnosis(snapshot, report)


def confirmed(
    host: Host, probes: Probes, evaluated: Callable[[Sequence[Record]], tuple[Snapshot, Report]]
) -> tuple[list[Record], Snapshot, Report]:
    """Measure what the reports select, including slow and undecided flows again. Evaluate after each round."""
    measured: list[Record] = []
    snapshot, report = evaluated(measured)
    for _ in range(_MOST_ROUNDS):
        undecided = runs_to_repeat(snapshot, report) if measured else frozenset[SimultaneousFlows]()
        further = [one for probe in probes(report, undecided) for one in collect(probe, host)]
        if not further:
            break
        measured += further
        snapshot, report = evaluated(measured)
    return measured, snapshot, report
