"""Processors that are present and offline (kernel documentation, admin-guide/cputopology)."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.machine import Node, Package
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.rule import Rule
from ..core.wording import cited

_NO_THREADS = ("notsupported", "notimplemented")  # values of sys/devices/system/cpu/smt/control


def on_metal(snapshot: Snapshot, package: Package) -> bool:
    """Select packages of real machines. A hypervisor may list processors that it can add later."""
    node = snapshot.of(Node).get("node")
    return node is not None and node.virtual is False and bool(node.present_cpus) and snapshot.origin != "dumps"


def half_offline(snapshot: Snapshot, package: Package) -> Iterator[Finding]:
    """At least half of the CPUs of a package are offline, and more than SMT explains."""
    node, packages = snapshot.of(Node)["node"], snapshot.of(Package)
    present, online = node.present_cpus or 0, len(package.cpus or ())
    whole = present // len(packages)
    if _without_threads(node, list(packages.values()), whole):
        whole //= 2
    if not whole or 2 * online > whole:
        return
    yield Finding(
        code="cpu-missing",
        severity="warning",
        subject=package.key,
        subject_name=package.model,
        message=f"{online} of {whole} CPUs of {package.key} are online: its jobs have as many fewer processors",
        expected=whole,
        observed=online,
        unit="CPUs",
        basis="capability",
        expected_source=f"{present} CPUs are present in {len(packages)} packages",
        cause="an operator, a power policy or a machine check switched them off",
        evidence=(*cited(node, "present_cpus"), *cited(package, "cpus")),
    )


def _without_threads(node: Node, packages: list[Package], whole: int) -> bool:
    """Whether SMT is off: the kernel says so, or each core of each package has one online CPU of two."""
    if node.smt in ("off", "forceoff"):
        return True
    alike = all(package.cores and len(package.cpus or ()) == package.cores == whole // 2 for package in packages)
    return alike and node.smt not in _NO_THREADS


RULES = (Rule("cpu-missing", Package, ("cpus",), half_offline, on_metal),)
