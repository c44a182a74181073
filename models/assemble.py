"""From everything that was said to a case."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from .build_topology import build_topology
from .case import Case
from .catalog import machines
from .catalog.gpus import products_of
from .facts import Node, Pci
from .gpu_facts import Gpu
from .merge import Facts, merge, of
from .pci_classes import AMAZON, kind_of
from .report import Context, Origin
from .said import Fact, NotChecked, Observation, Run, Said
from .site import Machine, Site


def assemble(
    said: Iterable[Said],
    site: Site,
    now: float,
    past: Iterable[Observation] = (),
    baseline: Iterable[Observation] = (),
    origin: Origin = "live",
    context: Context = "host",
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
        context="dumps" if origin == "dumps" else context,
    )


def recognise(facts: Facts, site: Site) -> tuple[Machine | None, str | None]:
    """The machine type of the site or the catalog that fits, and by what; (None, None) where none does."""
    node = facts[Node]["node"]
    assert isinstance(node, Node)
    names, by = _gpu_names(facts)
    for machine in (*site.machine, *machines()):
        if machine.product and node.product and fnmatchcase(node.product, machine.product):
            if machine.vendor is None or fnmatchcase(node.vendor or "", machine.vendor):
                return machine, f"DMI product name {node.product}"
        elif machine.gpu and (fitting := [name for name in names if fnmatchcase(name, machine.gpu)]):
            return machine, f"{by} {fitting[0]}"
    return None, None


def _gpu_names(facts: Facts) -> tuple[list[str], str]:
    """The names that drivers give their GPUs; where none does, those of the catalog for their PCI numbers."""
    told = [gpu.name for gpu in of(facts, Gpu).values() if gpu.name]
    if told:
        return told, "GPU name"
    found = [f for f in of(facts, Pci).values() if kind_of(f) == "gpu" or f.vendor == AMAZON]
    known = [alike[0] for function in found if len(alike := products_of(function)) == 1]
    return [name for product in known for name in (product.name, *product.called)], "PCI numbers of"
