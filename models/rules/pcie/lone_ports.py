"""Ports in partial dumps that run on fewer lanes than they support, where the text does not show what is below them.

The device below may have no more lanes. Therefore this is information, and the width is not evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.machine import Pci
from ...facts.pci_classes import kind_of
from ...facts.reason import Reason
from ...facts.records import NotChecked
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.rule import Rule
from ..core.wording import gap
from .partial_dumps import below_own, is_unnamed

_BELOW = "sudo lspci -vv, all of it: the port and the device below it"


def is_lone(snapshot: Snapshot, port: Pci) -> bool:
    """Select ports whose lower end is not in the text. A whole dump has ports with empty slots: they are left out."""
    if snapshot.origin != "dumps" or kind_of(port) != "bridge" or port.key in snapshot.topology.link_below:
        return False
    return is_unnamed(port) or all(kind_of(other) == "bridge" for other in snapshot.of(Pci).values())


def narrow_port(snapshot: Snapshot, port: Pci) -> Iterator[Finding | NotChecked]:
    """A port runs on fewer lanes than it supports."""
    narrow = "width" in (port.downgraded or ()) or (port.max_width or 0) > (port.width or 0)
    if not port.width or not narrow or any(link.a == port.key for link in snapshot.topology.link_below.values()):
        return
    yield below_own(snapshot, port, "width")
    why = "below its own width, and the text does not show the device below the port"
    yield from gap(snapshot, "Pci.width", port.key, Reason.INCOMPLETE, why, _BELOW)


RULES = (Rule("pcie-link-narrow", Pci, ("width",), narrow_port, is_lone),)
