"""PCIe links that a hypervisor hides, at what the machine type has.

A virtual machine's devices hang on ports that its hypervisor made up, whose files are about nothing. What a GPU and its
processor are really joined by, its provider or somebody's measurement tells: that is in platforms.toml.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..facts.machine import Pci, Rdma
from ..facts.merge import Facts, of
from ..facts.pci_classes import kind_of
from ..facts.pcie_rates import rated, speed_of
from ..graph.topology import Link
from ..site.schema import Grade, Machine
from .pci_tree import emulated


def hidden_links(links: Iterable[Link], facts: Facts, machine: Machine) -> list[Link]:
    """The same links of a PCI tree, and rates of those above GPUs and NICs that were made up. What they run at stays
    unknown.

    A GPU's own link is the machine's `gpu_link`. The topmost link above it is its `gpu_path`: what other devices below
    it send goes there too. A GPU without links above its own, or on the root bus, has the narrower of both.
    """
    functions = of(facts, Pci)
    above = {link.b: link for link in links}
    adapters = {adapter.address for adapter in of(facts, Rdma).values()}
    grades: dict[str, Grade | None] = {}
    for address, function in functions.items():
        own = above.get(address)
        if own is None or own.kind == "function" or not emulated(function, functions):
            continue
        if kind_of(function) == "gpu":
            top = _topmost(own, above)
            grades[own.id] = machine.gpu_link if top else _narrower(machine.gpu_link, machine.gpu_path)
            grades.update({top.id: machine.gpu_path} if top else {})
        elif address in adapters:
            grades[own.id] = machine.nic_link
    return [_at(link, grades.get(link.id)) for link in above.values()]


def _topmost(own: Link, above: Mapping[str, Link]) -> Link | None:
    """The PCIe link above a device's own that is nearest to the processor."""
    seen, top, here = {own.b}, None, own.a
    while here in above and here not in seen:
        seen.add(here)
        link = above[here]
        top, here = (link if link.kind == "pcie" else top), link.a
    return top


def _narrower(*grades: Grade | None) -> Grade | None:
    return min((grade for grade in grades if grade), key=_rate, default=None)


def _at(link: Link, grade: Grade | None) -> Link:
    """What could be read is believed."""
    return replace(link, rated=_rate(grade), grade=grade) if grade and link.trained is None else link


def _rate(grade: Grade) -> float:
    """Bytes per second of "pcie4x8"."""
    number, _, width = grade.removeprefix("pcie").partition("x")
    return rated(speed_of(int(number)), int(width))
