"""Firmware that differs between equal devices of a node. It explains different rates and faults, and is none itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import TypeVar

from ...facts.gpu import Gpu
from ...facts.machine import Node, Nvme, Pci, Rdma
from ...facts.records import Evidence, Fact
from ...inventory.cohorts import product_of_function
from ...inventory.snapshot import Snapshot
from ...report import COHORT, Finding
from ..core.rule import Rule
from ..core.wording import cited

F = TypeVar("F", bound=Fact)


def _board(snapshot: Snapshot, nic: Rdma) -> object:
    """The board of a NIC; without a board ID the ids of its PCI function."""
    function = snapshot.of(Pci).get(nic.address or "")
    return nic.board_id or (product_of_function(function) if function else None)


def mixed(kind: type[F], field: str, word: str, product: Callable[[Snapshot, F], object]) -> Rule:
    """The rule for one kind of device. `product` returns what equal devices have in common; None: not known."""

    def evaluate(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
        groups: dict[object, list[F]] = defaultdict(list)
        for one in snapshot.of(kind).values():
            if (group := product(snapshot, one)) is not None and getattr(one, field):
                groups[group].append(one)
        for equal in groups.values():
            if len({getattr(one, field) for one in equal}) > 1:
                yield _finding(equal, field, word)

    def where(snapshot: Snapshot, node: Node) -> bool:
        return sum(getattr(one, field) is not None for one in snapshot.of(kind).values()) > 1

    return Rule("firmware-mixed", Node, (kind.__name__,), evaluate, where)


def _finding(group: list[F], field: str, word: str) -> Finding:
    of: dict[str, list[str]] = defaultdict(list)
    for one in group:
        of[getattr(one, field)].append(one.key)
    versions = sorted(of, key=lambda version: (-len(of[version]), version))
    rare = [key for version in versions[1:] for key in of[version]]
    rest = "; ".join(f"{', '.join(of[version])}: {version}" for version in versions[1:])
    return Finding(
        code="firmware-mixed",
        severity="info",
        subject="node" if len(rare) > 1 else rare[0],
        message=f"{len(group)} equal {word} have different firmware: "
        f"{len(of[versions[0]])} of them {versions[0]}; {rest}",
        expected=versions[0],
        observed=", ".join(versions[1:]),
        basis=COHORT,
        expected_source=f"most of the {len(group)} equal {word}",
        cause="a device that was replaced, or an update that did not reach all devices",
        evidence=tuple(evidence for one in group for evidence in cited(one, field))
        or tuple(Evidence(f"{one.key} {field}", getattr(one, field)) for one in group),
    )


RULES = (
    mixed(Gpu, "vbios", "GPUs", lambda snapshot, gpu: gpu.name and (gpu.name, gpu.board_part)),
    mixed(Rdma, "firmware", "NICs", _board),
    mixed(Nvme, "firmware", "NVMe disks", lambda snapshot, disk: disk.model),
)
