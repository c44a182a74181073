"""GPUs and NICs whose links lspci hides: it shows the capabilities of a function to root only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...facts.gpu import Gpu
from ...facts.machine import Node, Pci
from ...facts.pci_classes import kind_of
from ...facts.reason import Reason
from ...facts.records import NotChecked
from ...inventory.snapshot import Snapshot
from ..core.rule import Rule
from ..core.wording import gap, missed

_HOW = "sudo lspci -vvv"


def _hidden(snapshot: Snapshot) -> Sequence[str]:
    """The GPUs without a link state in the text, else the NICs. A text with the output of a GPU's driver has more."""
    functions = snapshot.of(Pci).values()
    if snapshot.of(Gpu) or any(function.width is not None for function in functions):
        return ()
    by_kind = {kind: [one.key for one in functions if kind_of(one) == kind] for kind in ("gpu", "nic")}
    return by_kind["gpu"] or by_kind["nic"]


def is_hidden(snapshot: Snapshot, node: Node) -> bool:
    """Select dumps in which a user without rights asked for the links."""
    asked = snapshot.origin == "dumps" and missed(snapshot, "Pci.width", "node")
    return asked and not node.virtual and bool(_hidden(snapshot))


def hidden(snapshot: Snapshot, node: Node) -> Iterator[NotChecked]:
    """A gap for each device: the text shows nothing of its link."""
    for key in _hidden(snapshot):
        why = "its link is not in the text: lspci shows it to root only"
        yield from gap(snapshot, "Pci.width", key, Reason.INCOMPLETE, why, _HOW)


RULES = (Rule("pcie-link-narrow", Node, (), hidden, is_hidden),)
