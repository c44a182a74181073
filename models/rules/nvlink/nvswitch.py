"""Missing NVSwitches: fewer than the baseboard has, or fewer than GPU links lead to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...catalog.baseboards import baseboards
from ...facts.machine import Node, Pci
from ...facts.pci_classes import kind_of
from ...facts.records import Evidence
from ...inventory.present import removed
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.gpus import absent_switches
from ..core.rule import Rule
from ..core.wording import cited
from ..pcie.not_responding import lost_function
from .interconnect_kind import switches


def whole(snapshot: Snapshot, node: Node) -> bool:
    """Select bare-metal nodes with NVSwitches on PCI. Guests see parts of boards. NVLink 5 switches are not on PCI."""
    return bool(switches(snapshot)) and not node.virtual and not node.container


def too_few(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
    """A switch is not on the bus, although a link leads to it or the baseboard has it."""
    seen = switches(snapshot)
    gone = _missing_remotes(snapshot)
    links = absent_switches(snapshot)
    for address, (count, evidence) in gone.items():
        yield Finding(
            code="nvswitch-error",
            severity="critical",
            subject=address,
            fact=f"is not on the bus, and {count} NVLinks lead to it",
            message=f"NVSwitch {address} is not on the bus, and {count} NVLinks lead to it",
            expected="on the bus",
            observed="none",
            cause="power, a failed switch, or the board that carries it",
            limits={link.key: 0.0 for link in links[address]},
            case="absent",
            evidence=evidence,
        )
    ids = Counter(
        f"{f.vendor:04x}:{f.device:04x}" for f in map(snapshot.of(Pci).__getitem__, seen) if f.vendor and f.device
    )
    for board in baseboards():
        wanted = -(-ids[board.switch] // board.switches) * board.switches
        named = gone.keys() | {item.key for item in removed(snapshot, "nvswitch")}
        if ids[board.switch] + len(named) < wanted:
            yield Finding(
                code="nvswitch-error",
                severity="critical",
                subject="node",
                message=f"{ids[board.switch]} of the {wanted} NVSwitches of {board.name} are there",
                expected=wanted,
                observed=ids[board.switch],
                unit="switches",
                basis="capability",
                expected_source=board.source,
                cause="power, a failed switch, or the board that carries it",
                case="absent",
                evidence=(Evidence("PCI functions", ", ".join(seen)),),
            )


def _missing_remotes(snapshot: Snapshot) -> dict[str, tuple[int, tuple[Evidence, ...]]]:
    """Switches at the other end of links that are not on the bus, by address: the number of links and the evidence."""
    return {
        address: (len(several), tuple(seen for link in several[:1] for seen in cited(link, "remote")))
        for address, several in absent_switches(snapshot).items()
    }


def is_switch(snapshot: Snapshot, function: Pci) -> bool:
    """Select NVSwitches."""
    return kind_of(function) == "nvswitch"


RULES = (
    Rule("nvswitch-error", Node, ("virtual", "Pci", "Pci.pci_class", "Pci.vendor"), too_few, whole),
    Rule("nvswitch-error", Pci, ("pci_class", "lost?"), lost_function("nvswitch-error"), is_switch),
)
