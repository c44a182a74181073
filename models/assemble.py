"""From everything that was said to a case."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from .build_topology import build_topology
from .case import Case
from .catalog import machines
from .facts import Node
from .gpu_facts import Gpu
from .merge import Facts, merge
from .report import Origin
from .said import Fact, NotChecked, Observation, Run, Said
from .site import Machine, Site


def assemble(
    said: Iterable[Said],
    site: Site,
    now: float,
    past: Iterable[Observation] = (),
    baseline: Iterable[Observation] = (),
    origin: Origin = "live",
) -> Case:
    """Merge the facts, build the topology, recognise the machine. `now` is in seconds since 1970."""
    everything = tuple(said)
    facts, conflicts = merge((Node(key="node"), *(one for one in everything if isinstance(one, Fact))))
    machine, matched_by = recognise(facts, site)
    return Case(
        facts=facts,
        conflicts=conflicts,
        topology=build_topology(facts, site),
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
        context="dumps" if origin == "dumps" else "host",
    )


def recognise(facts: Facts, site: Site) -> tuple[Machine | None, str | None]:
    """The machine type of the site or the catalog that fits, and by what; (None, None) where none does."""
    node = facts[Node]["node"]
    assert isinstance(node, Node)
    names = {gpu.name for gpu in facts.get(Gpu, {}).values() if isinstance(gpu, Gpu) and gpu.name}
    for machine in (*site.machine, *machines()):
        if machine.product and node.product and fnmatchcase(node.product, machine.product):
            if machine.vendor is None or fnmatchcase(node.vendor or "", machine.vendor):
                return machine, f"DMI product name {node.product}"
        elif machine.gpu and any(fnmatchcase(name, machine.gpu) for name in names):
            return machine, f"GPU name {next(name for name in names if fnmatchcase(name, machine.gpu))}"
    return None, None
