"""How NVLink joins the GPUs of this machine. The rules on links, fabric, switches and peers share it."""

from __future__ import annotations

import re

from ...facts.gpu import Gpu, GpuLink
from ...facts.machine import Node
from ...facts.pci_classes import NVIDIA
from ...inventory.snapshot import Snapshot
from ..core.gpus import gpu_cohort, gpu_product

_JOINING = {"not started", "in progress", "completed"}  # the driver has seen an NVSwitch (gpu_fabric_probe.c)
_NUMBERED = re.compile(r"gpu[1-9][0-9]{0,2}")  # the key of a GPU that is not the first
_MESH = 4  # GPUs on a board without switches; since NVLink 4 all larger boards have switches


def is_part(gpu: Gpu) -> bool:
    """Whether the GPU is a slice, or is divided into slices. Neither can use NVLinks."""
    return gpu.mig is True or gpu.virtualization == "vGPU"


def is_guest(snapshot: Snapshot) -> bool:
    """Whether the node is a virtual machine. It may have only a part of a board."""
    node = snapshot.of(Node).get("node")
    return node is not None and node.virtual is True


def is_alone(snapshot: Snapshot) -> bool:
    """Whether the node has one GPU and no peer (single-GPU guests, GH200). Its NVLinks are not connected.

    The driver counts the GPUs of a node from 0: an excerpt with gpu2 alone is of a node with three or more.
    """
    functions = [f for f in snapshot.functions("gpu") if f.vendor == NVIDIA and not f.physfn]
    keys = [*snapshot.of(Gpu)]
    return len(functions) <= 1 and len(keys) <= 1 and not any(_NUMBERED.fullmatch(key) for key in keys)


def nvlinks(snapshot: Snapshot, gpu: Gpu) -> dict[int, GpuLink]:
    """The NVLinks that the driver reports one by one, by number."""
    found = {}
    for key, link in snapshot.of(GpuLink).items():
        owner, _, name = key.partition("/nvlink")
        if owner == gpu.key and name.isdecimal():
            found[int(name)] = link
    return found


def switches(snapshot: Snapshot) -> list[str]:
    """The PCI addresses of the visible NVSwitches. Containers hide them. NVLink 5 switches are no PCI functions."""
    return [function.key for function in snapshot.functions("nvswitch")]


def switched(snapshot: Snapshot, gpu: Gpu) -> bool | None:
    """Whether the GPU's NVLinks lead to switches (True) or directly to other GPUs (False). None: not known."""
    alike = gpu_cohort(snapshot, gpu) or [gpu]
    ends = {link.remote_kind for other in alike for link in nvlinks(snapshot, other).values()}
    if "switch" in ends or switches(snapshot) or any(other.fabric_state in _JOINING for other in alike):
        return True
    if "gpu" in ends:
        return False
    known = gpu_product(snapshot, gpu)
    return True if known and known.fabric and len(alike) > _MESH else None
