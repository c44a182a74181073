"""The machine type of a cluster of nodes like a given one: GPUs and fabric ports as they were found."""

from __future__ import annotations

from collections import defaultdict

from msgspec.structs import replace

from ..facts.gpu import Gpu
from ..facts.machine import Node, Pci
from ..facts.pci_classes import kind_of
from ..inventory.snapshot import Snapshot
from ..rules.core.fabric_cards import fabric_functions
from ..site.schema import Machine


def machine_as_found(snapshot: Snapshot) -> Machine | None:
    """The recognised type, or a type of this node alone, with what was found. None: no GPU was found, no type fits.

    What was not read stays as in the type. Ports that are down, or without a known rate, do not count.
    """
    gpus, (ports, rate) = _gpus(snapshot), _ports(snapshot)
    base = snapshot.machine
    if base is None:
        if not gpus:
            return None
        node = snapshot.of(Node).get("node")
        name = (node and node.product) or "this node"
        base = Machine(name=name, source="as found", product=name)
    counts = {"gpus": gpus, "rdma": ports, "rdma_rate": rate}
    return replace(base, **{name: value for name, value in counts.items() if value})


def differences(machine: Machine, found: Machine) -> str:
    """What of a type was found otherwise: "7 ports of 50 GB/s, not 8 of 50"; "" if nothing."""
    told = []
    if machine.gpus and machine.gpus != found.gpus:
        told.append(f"{found.gpus} GPUs, not {machine.gpus}")
    usual, now = (machine.rdma, machine.rdma_rate), (found.rdma, found.rdma_rate)
    if machine.rdma and machine.rdma_rate and usual != now:
        told.append(
            f"{found.rdma} ports of {(found.rdma_rate or 0) / 1e9:.3g} GB/s, "
            f"not {machine.rdma} of {machine.rdma_rate / 1e9:.3g}"
        )
    return "; ".join(told)


def _gpus(snapshot: Snapshot) -> int:
    """GPUs of the driver; without a driver, GPU functions."""
    functions = [one for one in snapshot.of(Pci).values() if kind_of(one) == "gpu" and not one.physfn]
    return len(snapshot.of(Gpu)) or len(functions)


def _ports(snapshot: Snapshot) -> tuple[int, float]:
    """The number of fabric ports that run, and their mean rate in bytes per second. Of several kinds of NICs the one
    with the highest rate together: others are for storage and management.
    """
    fabric, functions = fabric_functions(snapshot), snapshot.of(Pci)
    kinds = defaultdict[tuple[int | None, int | None], list[float]](list)
    for one in snapshot.topology.links:
        if one.kind == "port" and one.a in fabric and one.trained:
            function = functions.get(one.a or "")
            kinds[(function.vendor, function.device) if function else (None, None)].append(one.trained)
    rates = max(kinds.values(), key=sum, default=[])
    return (len(rates), sum(rates) / len(rates)) if rates else (0, 0.0)
