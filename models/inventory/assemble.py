"""From all collected records to a snapshot."""

from __future__ import annotations

from collections.abc import Iterable

from ..facts.gpu_identity import with_gpu_numbers
from ..facts.machine import Node
from ..facts.merge import merge
from ..facts.records import Fact, NotChecked, Observation, Record, Run
from ..report import Context, Origin
from ..site.schema import Site
from .build import build_topology
from .inventory import Inventory
from .machine_type import recognise
from .snapshot import Snapshot


def assemble(
    records: Iterable[Record],
    site: Site,
    now: float,
    past: Iterable[Observation] = (),
    baseline: Iterable[Observation] = (),
    origin: Origin = "live",
    context: Context = "host",
    accepted: float | None = None,
    inventory: Inventory | None = None,
) -> Snapshot:
    """Merge the facts, build the topology and recognise the machine. `now` and `accepted` are seconds since 1970."""
    everything = with_gpu_numbers(records)
    facts, conflicts = merge((Node(key="node"), *(one for one in everything if isinstance(one, Fact))))
    machine, matched_by = recognise(facts, site)
    return Snapshot(
        facts=facts,
        conflicts=conflicts,
        topology=build_topology(facts, site, machine),
        observations=tuple(one for one in everything if isinstance(one, Observation)),
        not_checked=tuple(dict.fromkeys(one for one in everything if isinstance(one, NotChecked))),
        runs=tuple(one for one in everything if isinstance(one, Run)),
        machine=machine,
        matched_by=matched_by,
        site=site,
        past=tuple(past),
        baseline=tuple(baseline),
        now=now,
        origin=origin,
        context="dumps" if origin == "dumps" else context,
        accepted=accepted,
        inventory=inventory,
    )
