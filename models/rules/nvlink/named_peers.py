"""Pairs of named GPUs without peer access, in a text that shows neither their NVLinks nor the path between them.

The product says whether peer access should work: a GPU of a board with NVLinks has it, a GeForce does not, and over
PCIe it depends on the chipset.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from ...facts.gpu import GpuPair
from ...facts.machine import Node
from ...facts.reason import Reason
from ...facts.records import NotChecked
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ...report import COHORT, Finding
from ..core.gpus import gpu_product
from ..core.rule import Rule
from ..core.wording import cited, gap
from .fabric_manager import explained, has_not_joined
from .interconnect_kind import is_guest
from .peer_access import ends, is_refused_for_a_reason

_NOT_REFUSED = (None, "ok", "unknown")
_FEWEST = 3  # pairs with peer access that make a smaller number without it an exception
_MOST_NAMED = 4
_HOW = (
    "nvidia-smi topo -p2p r; nvidia-smi topo -m; whether the IOMMU and ACS are on, and whether it is a virtual machine"
)


@once_per_snapshot
def _refused(snapshot: Snapshot) -> Mapping[bool, Mapping[str, str]]:
    """The status of each refused pair; by whether NVLinks of the board join GPUs of this product."""
    found: dict[bool, dict[str, str]] = defaultdict(dict)
    for key, pair in snapshot.of(GpuPair).items():
        status = pair.read if pair.read not in _NOT_REFUSED else pair.write
        both = ends(snapshot, pair)
        if status in _NOT_REFUSED or both is None or is_refused_for_a_reason(snapshot, pair):
            continue
        products = [gpu_product(snapshot, gpu) for gpu in both]
        if None in products or not all(one and one.peers for one in products):
            continue
        joined = all(one and one.links and not one.bridged for one in products)
        hidden = explained(snapshot) or any(gpu.nvlinks == 0 or has_not_joined(snapshot, gpu) for gpu in both)
        if not (joined and hidden):
            found[joined][key] = str(status)
    return found


def lacks_access(snapshot: Snapshot, node: Node) -> bool:
    """Select dumps with such a pair."""
    return snapshot.origin == "dumps" and bool(_refused(snapshot))


def refused(snapshot: Snapshot, node: Node) -> Iterator[Finding | NotChecked]:
    """Critical between GPUs that NVLinks of their board join. Over PCIe a warning if most pairs have peer access, else
    information and a gap.
    """
    able = sum("ok" in (pair.read, pair.write) for pair in snapshot.of(GpuPair).values())
    for joined, lacking in sorted(_refused(snapshot).items(), reverse=True):
        odd = able >= max(_FEWEST, len(lacking) + 1)
        yield _finding(snapshot, lacking, able, joined, odd)
        if not joined and not odd and not is_guest(snapshot):
            why = "pairs have no peer access, and the text does not show what is between them"
            yield from gap(snapshot, "GpuPair.read", "node", Reason.INCOMPLETE, why, _HOW)


def _finding(snapshot: Snapshot, lacking: Mapping[str, str], able: int, joined: bool, odd: bool) -> Finding:
    first, *_ = lacking
    pair = snapshot.of(GpuPair)[first]
    named = ", ".join([*lacking][:_MOST_NAMED]) + (" and more" if len(lacking) > _MOST_NAMED else "")
    both = ends(snapshot, pair)
    product = gpu_product(snapshot, both[0]) if both else None
    expected = f"NVLinks join GPUs of this product ({product.name})" if joined and product else ""
    source = expected or (f"{able} pairs have it" if odd else "over PCIe it depends on the chipset")
    return Finding(
        code="p2p-disabled",
        severity=("warning" if is_guest(snapshot) else "critical") if joined else "warning" if odd else "info",
        confidence="likely" if joined or odd else "possible",
        subject=first if len(lacking) == 1 else "node",
        subject_name=named,
        message=f"{len(lacking)} of {len(snapshot.of(GpuPair))} pairs of GPUs have no peer access "
        f"({named}: {lacking[first]}); {source}",
        expected="ok",
        observed=lacking[first],
        basis="capability" if joined else COHORT if odd else None,
        expected_source=expected or None,
        cause="the fabric manager, links that are down, a partition of the fabric, or a setting of the driver"
        if joined
        else "the chipset between the two, ACS, the IOMMU or the driver",
        case="over NVLink" if joined else "over PCIe",
        evidence=cited(pair, "read", "write")[:1],
    )


RULES = (Rule("p2p-disabled", Node, (), refused, lacks_access),)
