"""PCIe links that run as both ends agree, but below what independent evidence says of them.

A slot that firmware has split, or that is set to a lower generation, reports the lower maximum itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ...facts.machine import Pci
from ...facts.pci_classes import kind_of
from ...facts.pcie_rates import rated
from ...facts.units import as_gigabytes, as_transfers
from ...inventory.cohorts import carried
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ...report import Finding, Severity
from ..core.claims import BASES, Claim, Support
from ..core.rule import Rule
from ..core.wording import cited, function_name, location
from .link_claims import MAX_SPEED, WIDTH, board_product, carriers, speed_claim, width_claim

_CAUSES = {
    WIDTH: "a slot that firmware has split (bifurcation), lanes that both ends switched off after failed training, or "
    "a slot that the board wires with fewer lanes",
    MAX_SPEED: "a firmware setting that limits the slot's generation, or firmware of the device or retimer",
}


def narrower(snapshot: Snapshot, function: Pci) -> Iterator[Finding]:
    """The link has fewer lanes than the evidence says, and both ends agree on them."""
    port = snapshot.of(Pci)[snapshot.topology.link_below[function.key].a]
    claim = width_claim(snapshot, function)
    if claim is None or port.max_width is None or claim.observed < min(function.max_width or 0, port.max_width):
        return  # pcie.py reports a link below what both ends support
    if against := claim.contradicted:
        speed = min(function.max_speed or 0.0, port.max_speed or 0.0)
        yield _finding(snapshot, function, claim, against, rated(speed, int(claim.observed)) if speed else None)


def slower(snapshot: Snapshot, function: Pci) -> Iterator[Finding]:
    """Both ends of the link support a lower speed than the evidence says."""
    claim = speed_claim(snapshot, function)
    if claim and (against := claim.contradicted):
        width = function.width or function.max_width
        yield _finding(snapshot, function, claim, against, rated(claim.observed, width) if width else None)


def code_of(snapshot: Snapshot, function: Pci, claim: Claim) -> str:
    """The finding code of a link that is below its evidence."""
    device = "pcie-link-narrow" if claim.quantity == WIDTH else "pcie-link-slow"
    return {"nvme": "storage-link-slow", "port": "pcie-path-bottleneck"}.get(_kind(snapshot, function), device)


def _finding(snapshot: Snapshot, function: Pci, claim: Claim, against: Support, left: float | None) -> Finding:
    name = function_name(snapshot, function)
    lanes = claim.quantity == WIDTH
    is_, should = (
        (f"x{claim.observed:.0f}", f"x{against.least:.0f}")
        if lanes
        else (as_transfers(claim.observed), as_transfers(against.least))
    )
    link = snapshot.topology.link_below[function.key]
    return Finding(
        code=code_of(snapshot, function, claim),
        severity=_severity(snapshot, function, against),
        confidence="likely" if against.by == "cohort" else "certain",
        subject=function.key,
        subject_name=name,
        case="below evidence",
        fact=f"{'runs on' if lanes else 'supports'} {is_} of {should}",
        message=f"{name}: the link {'runs on' if lanes else 'supports at most'} {is_}, not {should}"
        + (f": {as_gigabytes(left)}" if left else "")
        + f"; {against.source}",
        expected=against.least,
        observed=claim.observed,
        unit="lanes" if lanes else "transfers_per_second",
        basis=BASES[against.by],
        expected_source=against.source,
        cause=_CAUSES[claim.quantity],
        limits={link.id: left} if left else {},
        location=location(function, snapshot),
        evidence=cited(function, *(("width", "max_width") if lanes else ("speed", "max_speed"))),
    )


def _severity(snapshot: Snapshot, function: Pci, against: Support) -> Severity:
    """Critical if the machine type or a GPU board requires it. Equal cards in different slots can be intended."""
    below = carried(snapshot).get(function.key, frozenset())
    on_board = board_product(snapshot, function) or ("gpu" in below and _boards(snapshot))
    if kind_of(function) == "nvme":
        return "warning"
    return "critical" if against.by != "cohort" or on_board else "warning"


def _boards(snapshot: Snapshot) -> bool:
    return any(board_product(snapshot, gpu) for gpu in snapshot.functions("gpu"))


@once_per_snapshot
def _kinds(snapshot: Snapshot) -> Mapping[str, str]:
    """The kind of each function at the lower end of a PCIe link that carries job traffic."""
    return {address: _kind(snapshot, one) for address, one in carriers(snapshot).items()}


def of_kind(kind: str) -> Callable[[Snapshot, Pci], bool]:
    """Select functions on a link by "nvme", "port" (a switch above such devices) or "device" (all others)."""

    def where(snapshot: Snapshot, function: Pci) -> bool:
        return _kinds(snapshot).get(function.key) == kind

    return where


def _kind(snapshot: Snapshot, function: Pci) -> str:
    return "nvme" if kind_of(function) == "nvme" else "port" if carried(snapshot).get(function.key) else "device"


def _of_port(snapshot: Snapshot, function: Pci) -> bool:
    """Select devices of whose links only the port says how many lanes it has, if there is evidence for the number.

    Equal devices with equal ports show no health: people write such files by hand, and copy lines.
    """
    if function.width is not None or _kinds(snapshot).get(function.key) != "device":
        return False
    claim = width_claim(snapshot, function)
    return claim is not None and bool(claim.contradicted or (claim.corroborated and claim.corroborated.by != "cohort"))


_WIDTH, _SPEED = ("pci_class", "width", "max_width?"), ("pci_class", "max_speed?")
_DEVICE, _DISK, _PORT = of_kind("device"), of_kind("nvme"), of_kind("port")
RULES = (
    Rule("pcie-link-narrow", Pci, _WIDTH, narrower, _DEVICE),
    Rule("pcie-link-narrow", Pci, ("pci_class",), narrower, _of_port),
    Rule("pcie-link-slow", Pci, _SPEED, slower, _DEVICE),
    Rule("storage-link-slow", Pci, _WIDTH, narrower, _DISK),
    Rule("storage-link-slow", Pci, _SPEED, slower, _DISK),
    Rule("pcie-path-bottleneck", Pci, _WIDTH, narrower, _PORT),
    Rule("pcie-path-bottleneck", Pci, _SPEED, slower, _PORT),
)
