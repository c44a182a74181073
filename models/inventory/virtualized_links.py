"""PCIe links that a hypervisor hides, with the rates of the machine type.

The devices of a virtual machine are below emulated ports. The link attributes of these ports are not real.
platforms.toml has the real links between a GPU and its processor, from the provider or from a published measurement.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from ..facts.machine import Pci, Rdma
from ..facts.merge import Facts, of
from ..facts.pci_classes import kind_of
from ..facts.pcie_rates import rated, speed_of
from ..graph.topology import Link
from ..site.schema import Grade, Machine
from .pci_tree import emulated


def hidden_links(links: Iterable[Link], facts: Facts, machine: Machine) -> list[Link]:
    """The links of a PCI tree, with rates on the emulated links above GPUs and NICs. Their trained rate stays unknown.

    The GPU's own link gets `gpu_link`. The topmost link above it gets `gpu_path`, which traffic of other devices below
    it shares. A GPU without a link above its own, or on the root bus, gets the narrower of both.
    """
    functions = of(facts, Pci)
    above = {link.b: link for link in links}
    adapters = {adapter.address for adapter in of(facts, Rdma).values()}
    grades: dict[str, Grade | None] = {}
    invented = emulated(functions)
    for address, function in functions.items():
        own = above.get(address)
        if own is None or own.kind == "function" or address not in invented:
            continue
        if kind_of(function) == "gpu":
            top = _topmost(own, above)
            grades[own.id] = machine.gpu_link if top else _narrower(machine.gpu_link, machine.gpu_path)
            grades.update({top.id: machine.gpu_path} if top else {})
        elif address in adapters:
            grades[own.id] = machine.nic_link
    return [_at(link, grades.get(link.id)) for link in above.values()]


def _topmost(own: Link, above: Mapping[str, Link]) -> Link | None:
    """The PCIe link nearest to the processor, above a device's own link."""
    seen, top, here = {own.b}, None, own.a
    while here in above and here not in seen:
        seen.add(here)
        link = above[here]
        top, here = (link if link.kind == "pcie" else top), link.a
    return top


def _narrower(*grades: Grade | None) -> Grade | None:
    return min((grade for grade in grades if grade), key=_rate, default=None)


def _at(link: Link, grade: Grade | None) -> Link:
    """The link at that grade, unless its trained rate was read."""
    return replace(link, rated=_rate(grade), grade=grade) if grade and link.trained is None else link


def _rate(grade: Grade) -> float:
    """Bytes per second of a grade such as "pcie4x8"."""
    number, _, width = grade.removeprefix("pcie").partition("x")
    return rated(speed_of(int(number)), int(width))
