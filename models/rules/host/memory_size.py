"""The memory of NUMA nodes, and of CPU packages as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from ...facts.averages import median
from ...facts.machine import Node, Numa, Package
from ...facts.reason import Reason
from ...facts.records import NotChecked
from ...facts.units import as_bytes
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ...report import COHORT, Finding
from ..core.claims import Claim, Support
from ..core.rule import Rule
from ..core.wording import cited

# One of eight equal modules leaves 0.875 of the memory of a package, one of twelve 0.917. Equal packages differ by up
# to 3 % in what the kernel shows (hwloc's recorded machines).
_PACKAGE = 0.94
# Share of the median of the other nodes, where packages cannot be compared. Machines with one package are often filled
# unevenly, so the loss of one module of eight is not enough here.
_NODE = 0.75
_SAME = 0.97
_AGREE = 3
# A GPU of a Grace machine has eight nodes. They are empty unless its instances (MIG) have memory.
_MOST_NODES = 8
_GUEST = "a hypervisor decides how much memory a virtual machine has"
_ALIKE = "equal memory in all packages: each may lack the same modules"


class _Low(Struct, frozen=True):
    """A NUMA node with less memory than it should have. Bytes; `usual` and `source` are None without an equal."""

    usual: float | None
    source: str | None
    text: str


def has_cpus(snapshot: Snapshot, node: Numa) -> bool:
    """Select NUMA nodes with CPUs. Nodes with memory only (CXL, GPUs of a Grace machine) and empty nodes are normal."""
    return node.cpus is None or len(node.cpus) > 0


def memory(snapshot: Snapshot, node: Numa) -> Iterator[Finding]:
    """A NUMA node has CPUs and no memory, less than its equals, or its package has less than the other packages."""
    low = _low(snapshot, node)
    if low is None:
        return
    yield Finding(
        code="numa-memory-missing",
        severity="warning",
        confidence="likely" if node.memory and low.usual else "certain",
        subject=node.key,
        message=low.text,
        expected=low.usual,
        observed=node.memory or 0,
        unit="bytes",
        basis=COHORT if low.usual else None,
        expected_source=low.source,
        cause="memory modules missing, failed at boot, or in the wrong sockets",
        evidence=cited(node, "memory"),
    )


def may_be_empty(snapshot: Snapshot, node: Numa) -> bool:
    """Select nodes of dumps that do not show their CPUs, beside others: one alone shows nothing. Nodes that linkgauge
    reads itself have known CPUs.
    """
    return snapshot.origin == "dumps" and node.cpus is None and len(snapshot.of(Numa)) > 1


def empty(snapshot: Snapshot, node: Numa) -> Iterator[Finding | NotChecked]:
    """Of a few NUMA nodes with unknown CPUs, this one has no memory: firmware shows no such node without CPUs.

    Less memory than another node is a gap: a node of other memory (CXL, a GPU) is often smaller, and has no CPUs.
    """
    every = list(snapshot.of(Numa).values())
    filled = [one.memory for one in every if one.memory]
    if node.memory and node.memory < _NODE * max(filled) and node.memory == min(filled):
        sizes = f"{as_bytes(node.memory)}, another NUMA node has {as_bytes(max(filled))}"
        why = f"{node.key} has {sizes}: without their CPUs it is not known whether they should be equal"
        yield NotChecked(what="Numa", subject=node.key, reason=Reason.INCOMPLETE, detail=why, how="numactl -H")
    if node.memory != 0 or not filled or len(every) > _MOST_NODES:
        return
    yield Finding(
        code="numa-memory-missing",
        severity="warning",
        confidence="likely",
        subject=node.key,
        message=f"{node.key} has no memory, {len(filled)} of {len(every)} NUMA nodes have {as_bytes(median(filled))}",
        expected=median(filled),
        observed=0,
        unit="bytes",
        basis=COHORT,
        expected_source=f"median of {len(filled)} other NUMA nodes",
        cause="memory modules missing, failed at boot, or in the wrong sockets",
        evidence=cited(node, "memory"),
    )


def _low(snapshot: Snapshot, node: Numa) -> _Low | None:
    others = [other.memory for other in _filled(snapshot) if other.key != node.key and other.memory]
    usual = median(others) if others else None
    source = f"median of {len(others)} other NUMA nodes" if usual else None
    if not node.memory:
        text = f"{node.key} has CPUs and no memory" + (f", the others have {as_bytes(usual)}" if usual else "")
        return _Low(usual, source, text)
    if _is_guest(snapshot) or usual is None:
        return None
    packages = _packages(snapshot)
    if len(packages) > 1:
        return _of_package(snapshot, node, packages)
    small = 1 + sum(one < _NODE * usual for one in others)
    if node.memory >= _NODE * usual or (small > 1 and 2 * small > len(others)):
        return None  # nodes of two sizes in turn are filled so on purpose
    return _Low(usual, source, f"{node.key} has CPUs and {as_bytes(node.memory)}, the others have {as_bytes(usual)}")


def _of_package(snapshot: Snapshot, node: Numa, packages: Mapping[str, tuple[Numa, ...]]) -> _Low | None:
    """The node is the smallest of a package that has less memory than the other packages."""
    own = next((key for key, nodes in packages.items() if node in nodes), None)
    if own is None or min(packages[own], key=lambda one: one.memory or 0) is not node:
        return None
    sums = {key: sum(one.memory or 0 for one in nodes) for key, nodes in packages.items()}
    others = [value for key, value in sums.items() if key != own]
    usual = median(others)
    if sums[own] >= _PACKAGE * usual or any(one.memory in (None, 0) for one in packages[own]):
        return None
    source = f"median of {len(others)} other packages" if len(others) > 1 else "the other package"
    text = f"{own} has {as_bytes(sums[own])} ({node.key}: {as_bytes(node.memory or 0)}), {source}: {as_bytes(usual)}"
    return _Low((node.memory or 0) + usual - sums[own], source, text)


def _is_guest(snapshot: Snapshot) -> bool:
    node = snapshot.of(Node).get("node")
    return node is not None and node.virtual is True


def _filled(snapshot: Snapshot) -> list[Numa]:
    return [one for one in snapshot.of(Numa).values() if one.cpus]


@once_per_snapshot
def _packages(snapshot: Snapshot) -> Mapping[str, tuple[Numa, ...]]:
    """The NUMA nodes of each package. Empty: the packages are not equal, or a node belongs to two of them."""
    found = {
        key: tuple(one for one in _filled(snapshot) if set(one.cpus or ()) & set(package.cpus or ()))
        for key, package in snapshot.of(Package).items()
    }
    unequal = len({(one.model, len(found[key])) for key, one in snapshot.of(Package).items()}) > 1
    several = sum(map(len, found.values())) != len(_filled(snapshot))
    return {} if unequal or several or not all(found.values()) else found


def numa_claims(snapshot: Snapshot) -> Iterator[Claim]:
    """The claims of the memory of all NUMA nodes with CPUs."""
    filled = [one for one in _filled(snapshot) if one.memory]
    for node in filled:
        low = _low(snapshot, node)
        alike = sum(
            min(one.memory or 0, node.memory or 0) >= _SAME * max(one.memory or 0, node.memory or 0) for one in filled
        )
        supports: tuple[Support, ...] = ()
        if low and low.usual and low.source:
            supports = (Support("cohort", low.usual, low.source),)
        elif alike >= _AGREE and 2 * alike > len(filled) and not _is_guest(snapshot):
            supports = (
                Support("cohort", _SAME * (node.memory or 0), f"{alike} of {len(filled)} NUMA nodes have as much"),
            )
        doubt = _GUEST if _is_guest(snapshot) else None if len(filled) < 2 or supports else _ALIKE
        yield Claim(
            group="states",
            subject=node.key,
            quantity="memory of the NUMA node",
            observed=node.memory or 0,
            supports=supports,
            doubt=doubt,
        )


RULES = (
    Rule("numa-memory-missing", Numa, ("cpus", "memory"), memory, has_cpus),
    Rule("numa-memory-missing", Numa, ("memory",), empty, may_be_empty),
)
