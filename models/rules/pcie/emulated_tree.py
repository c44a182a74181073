"""PCI trees that a hypervisor emulates: the links of the devices cannot be read."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.machine import Node, Pci
from ...facts.pci_classes import kind_of
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.machine_expectations import profile
from ..core.rule import Rule
from ..core.wording import cited
from .pcie import is_emulated

_VIRTUAL_VENDORS = {0x1AF4, 0x15AD, 0x1414}  # emulated adapters of hypervisors; their links carry no data


def has_functions(snapshot: Snapshot, node: Node) -> bool:
    """Select nodes whose PCI functions were read. Many dumps show that a machine is virtual, and no PCI function."""
    return snapshot.origin != "dumps" or bool(snapshot.of(Pci))


def hidden(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
    """The devices of a virtual machine are in a PCI tree that the hypervisor emulates."""
    if not node.virtual or snapshot.site.trust_virtual_links:
        return
    kinds = ("gpu", "nic", "nvswitch")
    real = [f for f in snapshot.of(Pci).values() if kind_of(f) in kinds and f.vendor not in _VIRTUAL_VENDORS]
    # In a dump of "lspci | grep NVIDIA" the ports above are missing.
    seen = [f for f in real if f.parent or snapshot.origin != "dumps"]
    lost = [f for f in seen if is_emulated(snapshot, f)]
    gpus = [f for f in lost if kind_of(f) == "gpu"]  # a single GPU has no peers, and its driver shows its link
    if not gpus:
        return  # the path of a virtual NIC alone does not matter
    harmless = profile(snapshot) is not None or len(gpus) == 1
    yield Finding(
        code="pcie-topology-hidden",
        severity="info" if harmless else "warning",
        subject="node",
        message=f"{node.hypervisor or 'the hypervisor'} shows an emulated PCI tree: the links of {len(lost)} of "
        f"{len(seen)} GPUs and NICs cannot be read here",
        expected=0,
        observed=len(lost),
        unit="devices",
        cause="the hypervisor made up the ports above the devices",
        case="single GPU" if len(gpus) == 1 else "machine type" if harmless else None,
        evidence=tuple(seen for f in gpus[:1] for seen in cited(f, "pci_class")),
    )


RULES = (Rule("pcie-topology-hidden", Node, ("virtual", "Pci", "Node.product", "Node.vendor"), hidden, has_functions),)
