"""Pairs without peer access, or without NVLink, in a text that does not show whether the GPUs should have it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...facts.gpu import NO_ACCESS, Gpu, GpuLink, GpuPair
from ...facts.machine import Node
from ...facts.reason import Reason
from ...facts.records import NotChecked
from ...inventory.snapshot import Snapshot
from ...report import COHORT, Finding
from ..core.gpus import gpu_product
from ..core.rule import Rule
from ..core.wording import cited, gap

_NOT_REFUSED = (None, "ok", "unknown")
_FEWEST = 3  # pairs with peer access that make a smaller number without it an exception
_MOST_NAMED = 4
_HOW = "nvidia-smi -L: GeForce cards since Ampere have no peer access over PCIe; and whether it is a virtual machine"


def _refused(snapshot: Snapshot) -> Mapping[str, str]:
    """The status of each refused pair of two GPUs without a product. ROCm's table names its GPUs (peer_access.py)."""
    found = dict[str, str]()
    for key, pair in snapshot.of(GpuPair).items():
        status = pair.read if pair.read not in _NOT_REFUSED else pair.write
        both = [snapshot.of(Gpu).get(end) for end in key.split("-")]
        if status not in (*_NOT_REFUSED, NO_ACCESS) and not any(gpu and gpu_product(snapshot, gpu) for gpu in both):
            found[key] = str(status)
    return found


def is_refused(snapshot: Snapshot, node: Node) -> bool:
    """Select dumps with such a pair."""
    return snapshot.origin == "dumps" and bool(_refused(snapshot))


def refused(snapshot: Snapshot, node: Node) -> Iterator[Finding | NotChecked]:
    """A warning if most pairs have peer access and some do not; else information and a gap."""
    lacking = _refused(snapshot)
    able = sum("ok" in (pair.read, pair.write) for pair in snapshot.of(GpuPair).values())
    odd = able >= max(_FEWEST, len(lacking) + 1)
    first, *_ = lacking
    named = ", ".join([*lacking][:_MOST_NAMED]) + (" and more" if len(lacking) > _MOST_NAMED else "")
    pair = snapshot.of(GpuPair)[first]
    others = f"; {able} pairs have it" if odd else ", and the text does not name the GPUs"
    yield Finding(
        code="p2p-disabled",
        severity="warning" if odd else "info",
        confidence="likely" if odd else "possible",
        subject=first if len(lacking) == 1 else "node",
        subject_name=named,
        message=f"{len(lacking)} of {len(lacking) + able} pairs of GPUs have no peer access ({named}: {lacking[first]})"
        + others,
        expected="ok",
        observed=lacking[first],
        basis=COHORT if odd else None,
        cause="the chipset between the two, ACS, the IOMMU or the driver" if odd else "the product, or the chipset",
        evidence=cited(pair, "read", "write"),
    )
    if not odd:
        why = "pairs have no peer access, and the text does not name the GPUs"
        yield from gap(snapshot, "GpuPair.read", "node", Reason.INCOMPLETE, why, _HOW)


def _without_partner(snapshot: Snapshot) -> list[str]:
    """The GPUs that reach no other one over NVLink, if at least two others reach each other."""
    pairs = [(key.split("-"), pair.nvlink) for key, pair in snapshot.of(GpuPair).items() if pair.nvlink]
    able = {end for ends, status in pairs if status == "ok" for end in ends}
    return sorted({end for ends, _ in pairs for end in ends} - able) if able else []


def has_lone_gpu(snapshot: Snapshot, node: Node) -> bool:
    """Select dumps with a GPU without NVLink beside GPUs with NVLink, if no text shows its links."""
    return snapshot.origin == "dumps" and bool(_without_partner(snapshot)) and not snapshot.of(GpuLink)


def lone_gpus(snapshot: Snapshot, node: Node) -> Iterator[NotChecked]:
    """A gap: the GPU has no bridge, or its links are down."""
    names = ", ".join(_without_partner(snapshot))
    why = f"{names} reaches no other GPU over NVLink, and others do: it has no bridge, or its links are down"
    yield from gap(snapshot, "GpuPair.nvlink", "node", Reason.INCOMPLETE, why, "nvidia-smi nvlink -s; nvidia-smi -L")


RULES = (
    Rule("p2p-disabled", Node, (), refused, is_refused),
    Rule("nvlink-inactive", Node, (), lone_gpus, has_lone_gpu),
)
