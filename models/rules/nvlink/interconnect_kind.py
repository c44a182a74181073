"""How the GPUs of this machine are joined by NVLink: what rules on links, fabric, switches and peers share."""

from __future__ import annotations

from ...catalog.gpus import Product, product_of
from ...facts.gpu import Gpu, GpuLink
from ...facts.machine import Node, Pci
from ...facts.pci_classes import NVIDIA
from ...inventory.snapshot import Snapshot
from ..core.like_gpus import equals

_JOINING = {"not started", "in progress", "completed"}  # only where the driver saw an NVSwitch (gpu_fabric_probe.c)
_MESH = 4  # GPUs of a board without switches: of NVLink 4 and later, larger boards all have them


def product(snapshot: Snapshot, gpu: Gpu) -> Product | None:
    """The product that a GPU is."""
    return product_of(gpu, snapshot.of(Pci))


def is_part(gpu: Gpu) -> bool:
    """A slice of a GPU, or one that is sliced: neither has NVLinks to use."""
    return gpu.mig is True or gpu.virtualization == "vGPU"


def is_guest(snapshot: Snapshot) -> bool:
    """A virtual machine: it may have been given a part of a board."""
    node = snapshot.of(Node).get("node")
    return node is not None and node.virtual is True


def is_alone(snapshot: Snapshot) -> bool:
    """One GPU and no peer: single-GPU slices and GH200 machines, where no NVLink leads anywhere."""
    functions = [f for f in snapshot.functions("gpu") if f.vendor == NVIDIA and not f.physfn]
    return len(snapshot.of(Gpu)) <= 1 and len(functions) <= 1


def nvlinks(snapshot: Snapshot, gpu: Gpu) -> dict[int, GpuLink]:
    """The NVLinks that the driver told of one by one, by their number."""
    found = {}
    for key, link in snapshot.of(GpuLink).items():
        owner, _, name = key.partition("/nvlink")
        if owner == gpu.key and name.isdecimal():
            found[int(name)] = link
    return found


def switches(snapshot: Snapshot) -> list[str]:
    """The addresses of the NVSwitches that are visible. Containers hide them, and of NVLink 5 they are no functions."""
    return [function.key for function in snapshot.functions("nvswitch")]


def switched(snapshot: Snapshot, gpu: Gpu) -> bool | None:
    """Whether the GPU's NVLinks lead to switches rather than to its peers. None: nothing says."""
    alike = equals(snapshot, gpu) or [gpu]
    ends = {link.remote_kind for other in alike for link in nvlinks(snapshot, other).values()}
    if "switch" in ends or switches(snapshot) or any(other.fabric_state in _JOINING for other in alike):
        return True
    if "gpu" in ends:
        return False
    known = product(snapshot, gpu)
    return True if known and known.fabric and len(alike) > _MESH else None
