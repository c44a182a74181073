"""Recognise the machine type: by firmware strings, the cloud's instance type, and the devices in the machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fnmatch import fnmatchcase

from msgspec import Struct

from ..catalog import machines
from ..catalog.gpus import products_of
from ..facts.gpu import Gpu
from ..facts.machine import Node, Pci
from ..facts.merge import Facts, of
from ..facts.pci_classes import AMAZON, kind_of
from ..site.schema import Machine, Site


class Signs(Struct, frozen=True):
    """All properties by which a machine type is recognised."""

    node: Node
    gpus: list[str]  # names
    named_by: str  # the source of the names: "GPU name"
    functions: Mapping[str, int]  # vendor and device -> count


def recognise(facts: Facts, site: Site) -> tuple[Machine | None, str | None]:
    """The first matching type of the site file or the catalog, and the matching property; else (None, None)."""
    signs = _signs(facts)
    for machine in (*site.machine, *machines()):
        if fits(machine, signs):
            return machine, _by(machine, signs)
    return None, None


def fits(machine: Machine, signs: Signs) -> bool:
    """Whether every property in the entry matches. An unread property does not, except `instance` (see Machine)."""
    node = signs.node
    pairs = [(machine.product, node.product), (machine.vendor, node.vendor), (machine.asset_tag, node.asset_tag)]
    if node.instance is not None or not (machine.gpu or machine.functions):
        lower = (machine.instance and machine.instance.lower(), node.instance and node.instance.lower())
        pairs.append(lower)
    return (
        all(wanted is None or (seen is not None and fnmatchcase(seen, wanted)) for wanted, seen in pairs)
        and (machine.gpu is None or any(fnmatchcase(name, machine.gpu) for name in signs.gpus))
        and all(signs.functions.get(numbers, 0) >= least for numbers, least in machine.functions.items())
    )


def _by(machine: Machine, signs: Signs) -> str:
    """The most specific property that matched: "DMI product name p5.48xlarge"."""
    node = signs.node
    matched = []
    if machine.product:
        matched.append(f"DMI product name {node.product}")
    if machine.instance and node.instance:
        matched.append(f"cloud-init instance type {node.instance}")
    if matched:
        return " and ".join(matched)
    if machine.gpu:
        matched.append(f"{signs.named_by} {next(name for name in signs.gpus if fnmatchcase(name, machine.gpu))}")
    matched += [f"{signs.functions[numbers]} PCI functions {numbers}" for numbers in machine.functions]
    if machine.asset_tag:
        matched.append(f"DMI chassis asset tag {node.asset_tag}")
    elif machine.vendor:
        matched.append(f"DMI vendor {node.vendor}")
    return " and ".join(matched)


def _signs(facts: Facts) -> Signs:
    node = facts[Node]["node"]
    assert isinstance(node, Node)
    functions = [f for f in of(facts, Pci).values() if f.vendor is not None and f.device is not None and not f.physfn]
    numbers = Counter(f"{function.vendor:04x}:{function.device:04x}" for function in functions)
    return Signs(node, *_gpu_names(facts), numbers)


def _gpu_names(facts: Facts) -> tuple[list[str], str]:
    """The GPU names from the drivers; without a driver, the catalog's names for the PCI ids."""
    names = [gpu.name for gpu in of(facts, Gpu).values() if gpu.name]
    if names:
        return names, "GPU name"
    found = [f for f in of(facts, Pci).values() if kind_of(f) == "gpu" or f.vendor == AMAZON]
    known = [same[0] for function in found if len(same := products_of(function)) == 1]
    return [name for product in known for name in (product.name, *product.called)], "PCI numbers of"
