"""The machine type that an accepted node defines, for `linkgauge profile --from-node`."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, TypeVar, cast, get_args

import msgspec

from ..facts.averages import median
from ..facts.gpu import Gpu
from ..facts.machine import Mount, Node, Numa, Nvme, Package, Pci, Port, Rdma
from ..facts.pci_classes import is_network_disk
from ..facts.records import COLLECTIVES, Flow, Observation
from ..facts.units import as_utc
from ..inventory.snapshot import Snapshot
from ..site.schema import Machine, Op, Rate, Via
from .best_rates import best_observations
from .message_size import full

T = TypeVar("T", bound=Hashable)
# Tolerance around the rates of the accepted node. Links of one kind agree within 0.2 %; ten times that is a real
# difference. Host memory varies with the placement of its threads.
_APART, _APART_MEMORY = 0.03, 0.15
# DMI product names of hypervisors, which machines of every size share.
_NO_TYPE = {
    "Virtual Machine",
    "Google Compute Engine",
    "KVM",
    "Standard PC (Q35 + ICH9, 2009)",
    "VMware Virtual Platform",
}

_OPS, _VIAS = frozenset(get_args(Op)), frozenset(get_args(Via))  # allowed in a rate of a site file


class Unrecognisable(Exception):
    """No property distinguishes the node from others. Carries a sentence for the user."""


def machine_of(snapshot: Snapshot, name: str) -> Machine:
    """An entry for a site file. It is recognised like the node itself, else by DMI names or GPUs, and has the node's
    devices.

    Values that could not be read or differ between equal devices are left out. Other values of the node's own machine
    type stay: links that a hypervisor hides, the port rate of the fabric if ports differ, rates of flows that were not
    measured here. Raises Unrecognisable.
    """
    node, gpus = snapshot.of(Node)["node"], list(snapshot.of(Gpu).values())
    base = _recognised_by(snapshot, node, gpus)
    had = {
        "gpus": len(gpus) or None,
        "links": _same(gpu.nvlinks for gpu in gpus),
        "rdma": len(snapshot.of(Rdma)) or None,
        "rdma_rate": _same(port.rate for port in snapshot.of(Port).values() if port.state == "ACTIVE")
        or base.rdma_rate,
        "nvme": len(_data_disks(snapshot)) or None,
        "sockets": len(snapshot.of(Package)) or None,
        "numa": sum(1 for numa in snapshot.of(Numa).values() if numa.cpus) or None,
        **_places(snapshot, node, gpus),
        "mig": _same(gpu.mig for gpu in gpus),
        "ecc": _same(gpu.ecc for gpu in gpus),
        "persistence": _same(gpu.persistence for gpu in gpus),
        "compute_mode": _same(gpu.compute_mode for gpu in gpus),
        "rates": tuple(_rates(snapshot)) or base.rates,
        "bus_bandwidth": {**base.bus_bandwidth, **_bus_bandwidth(snapshot, len(gpus))},
    }
    source = f"{node.hostname or 'a node'} as it was accepted on {as_utc(snapshot.now)[:10]}"
    if snapshot.machine:
        source += f"; else as {snapshot.machine.name}"
    return msgspec.structs.replace(base, name=name, source=source, **had)


def _places(snapshot: Snapshot, node: Node, gpus: list[Gpu]) -> dict[str, Any]:
    """The positions of GPUs on a baseboard and of NICs. Empty in a virtual machine: the hypervisor assigns the
    addresses.
    """
    if node.virtual is not False:
        return {}
    modules = {str(gpu.module_id): gpu.address for gpu in gpus if gpu.module_id is not None and gpu.address}
    functions = snapshot.of(Pci)
    nics = (functions.get(one.address or "") for one in snapshot.of(Rdma).values())
    own = sorted(function.key for function in nics if function and function.physfn is None)
    return {"gpu_places": modules if 1 < len(gpus) == len(modules) else {}, "nic_places": tuple(own)}


def _recognised_by(snapshot: Snapshot, node: Node, gpus: list[Gpu]) -> Machine:
    """The properties of the node's own type, plus DMI names if that type has only a GPU name."""
    machine = snapshot.machine
    if machine and machine.sure:
        return machine
    product = node.product if node.product not in _NO_TYPE else None
    gpu = machine.gpu if machine else _exactly(_same(one.name for one in gpus))
    if not product and not gpu:
        raise Unrecognisable(
            "nothing distinguishes this node from others: it has no DMI product name of its own and no GPUs of one name"
        )
    base = machine or Machine(name="-", source="-", gpu=gpu, product=_exactly(product))
    return msgspec.structs.replace(base, product=_exactly(product), vendor=_exactly(node.vendor if product else None))


def _exactly(text: str | None) -> str | None:
    """A shell pattern that matches exactly this text."""
    return re.sub(r"([*?[])", r"[\1]", text) if text else None


def _data_disks(snapshot: Snapshot) -> list[Nvme]:
    """Local NVMe controllers without system file systems. Volumes of the network are not local."""
    system = [mount.device or "" for at in ("/", "/boot", "/boot/efi") if (mount := snapshot.of(Mount).get(at))]
    near = {function.key for function in snapshot.functions("nvme") if not is_network_disk(function)}
    local = [nvme for nvme in snapshot.of(Nvme).values() if nvme.transport == "pcie" and nvme.address in near]
    return [nvme for nvme in local if not any(device.startswith(f"/dev/{nvme.key}n") for device in system)]


def _same(values: Iterable[T | None]) -> T | None:
    """The common value; None if a value is missing or different."""
    found = set(values)
    return found.pop() if len(found) == 1 else None


def _rates(snapshot: Snapshot) -> Iterator[Rate]:
    """One rate per kind of flow that was measured alone. Numbers in names become "*"."""
    kinds = defaultdict[tuple[str, tuple[str, ...], str], list[Observation]](list)
    for flow, best in _measured(snapshot):
        if flow.op in _OPS and flow.via in _VIAS:
            kinds[flow.op, tuple(re.sub(r"\d+", "*", end) for end in flow.ends), flow.via].append(best)
    for (op, ends, via), several in kinds.items():
        low, typical, high = _levels(several, _APART if len(ends) > 1 else _APART_MEMORY)
        tool = Counter(one.evidence.source for one in several).most_common(1)[0][0]
        source = f"{len(several)} measured when the node was accepted ({tool})"
        yield Rate(
            op=cast("Op", op), ends=ends, via=cast("Via", via), low=low, typical=typical, high=high, source=source
        )


def _bus_bandwidth(snapshot: Snapshot, gpus: int) -> dict[str, tuple[float, float, float]]:
    """Measured collectives over all GPUs, except those of a tool that did not name the collective."""
    kinds = defaultdict[str, list[Observation]](list)
    for flow, best in _measured(snapshot):
        if flow.op in COLLECTIVES - {"collective"} and len(flow.ends) == gpus:
            kinds[flow.op].append(best)
    return {op: _levels(several, _APART) for op, several in kinds.items()}


def _measured(snapshot: Snapshot) -> Iterator[tuple[Flow, Observation]]:
    """Flows that ran alone with long messages. Rates in a site file apply only to these."""
    for flow, best in best_observations(snapshot).items():
        if not flow.beside and best.value and (flow.size is None or flow.size >= full(flow.op)):
            yield flow, best


def _levels(several: list[Observation], apart: float) -> tuple[float, float, float]:
    """Low, typical and high."""
    values = [one.value for one in several]
    return _short((1 - apart) * min(values)), _short(median(values)), _short((1 + apart) * max(values))


def _short(rate: float) -> float:
    """The rate with four digits."""
    return float(f"{rate:.4g}")
