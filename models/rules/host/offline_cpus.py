"""Processors that are present and offline (kernel documentation, admin-guide/cputopology)."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.machine import Node, Package
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ...report import Finding
from ..core.claims import Claim, Support
from ..core.rule import Rule
from ..core.wording import cited

ONLINE = "number of online CPUs"
_NO_THREADS = ("notsupported", "notimplemented")  # values of sys/devices/system/cpu/smt/control
_GUEST = "a hypervisor may list CPUs that it can add later"
_HALF = "one CPU of each core is online: nothing says that SMT is off, or which CPUs should be online"
_THREADS_OFF = ("off", "forceoff")
_UNKNOWN = "nothing says how many CPUs are present"


def on_metal(snapshot: Snapshot, package: Package) -> bool:
    """Select packages of real machines. A hypervisor may list processors that it can add later."""
    node = snapshot.of(Node).get("node")
    return node is not None and node.virtual is False and bool(node.present_cpus) and snapshot.origin != "dumps"


def cpu_claims(snapshot: Snapshot) -> Iterator[Claim]:
    """The claims of the numbers of online CPUs of all packages."""
    node, whole = snapshot.of(Node).get("node"), _whole(snapshot)
    for package in snapshot.of(Package).values():
        if not package.cpus:
            continue
        metal, present = on_metal(snapshot, package), node.present_cpus if node else None
        full = whole is not None and len(package.cpus) >= whole
        half = node is not None and node.smt not in _THREADS_OFF and whole is not None and whole < _present(snapshot)
        source = f"{present} CPUs are present in {len(snapshot.of(Package))} packages"
        yield Claim(
            group="counts",
            subject=package.key,
            quantity=ONLINE,
            observed=len(package.cpus),
            supports=(Support("product", whole, source),) if whole and (metal or full) and not half else (),
            doubt=_HALF if half else None if metal or full else _GUEST if whole else _UNKNOWN,
        )


@once_per_snapshot
def _whole(snapshot: Snapshot) -> int | None:
    """The number of CPUs that each package has if all are online. None: not known."""
    node, packages = snapshot.of(Node).get("node"), snapshot.of(Package)
    unread = any(one.what == "Package" for one in snapshot.not_checked)  # there may be further packages
    if unread or node is None or not node.present_cpus or not packages or node.present_cpus % len(packages):
        return None
    each = node.present_cpus // len(packages)
    return each // 2 if _without_threads(node, list(packages.values()), each) else each


def _present(snapshot: Snapshot) -> float:
    """The number of CPUs that are present in each package."""
    node = snapshot.of(Node).get("node")
    return (node.present_cpus or 0) / len(snapshot.of(Package)) if node else 0


def offline(snapshot: Snapshot, package: Package) -> Iterator[Finding]:
    """CPUs of a package are offline, more than SMT explains. It is a warning if at least half of them are offline."""
    node, whole, online = snapshot.of(Node)["node"], _whole(snapshot), len(package.cpus or ())
    if not whole or online >= whole:
        return
    yield Finding(
        code="cpu-missing",
        severity="warning" if 2 * online <= whole else "info",
        subject=package.key,
        subject_name=package.model,
        message=f"{online} of {whole} CPUs of {package.key} are online: its jobs have as many fewer processors",
        expected=whole,
        observed=online,
        unit="CPUs",
        basis="capability",
        expected_source=f"{node.present_cpus} CPUs are present in {len(snapshot.of(Package))} packages",
        cause="an operator, a power policy or a machine check switched them off",
        evidence=(*cited(node, "present_cpus"), *cited(package, "cpus")),
    )


def is_listed(snapshot: Snapshot, node: Node) -> bool:
    """Select dumps in which lscpu lists offline CPUs of a real machine."""
    return snapshot.origin == "dumps" and bool(node.offline_cpus) and not node.virtual


def listed(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
    """The tool lscpu lists offline CPUs: information. A half may be threads of SMT, more may be CPUs of a guest.

    Reports of outputs have the code `not-enough-evidence` for it, so the verdict is unknown.
    """
    present, offline = node.present_cpus or 0, node.offline_cpus or 0
    yield Finding(
        code="cpu-missing",
        severity="info",
        confidence="possible",
        subject="node",
        message=f"{offline} of {present} CPUs are offline: jobs have as many fewer processors",
        expected=present,
        observed=present - offline,
        unit="CPUs",
        basis="capability",
        cause="SMT that is off, or an operator"
        if 2 * offline == present
        else "an operator, a power policy or a machine check",
        evidence=cited(node, "present_cpus", "offline_cpus"),
    )


def _without_threads(node: Node, packages: list[Package], whole: int) -> bool:
    """Whether SMT is off: the kernel says so, or each core of each package has one online CPU of two."""
    if node.smt in _THREADS_OFF:
        return True
    alike = all(package.cores and len(package.cpus or ()) == package.cores == whole // 2 for package in packages)
    return alike and node.smt not in _NO_THREADS


RULES = (
    Rule("cpu-missing", Package, ("cpus", "Node.present_cpus"), offline, on_metal),
    Rule("cpu-missing", Node, ("present_cpus", "offline_cpus"), listed, is_listed),
)
