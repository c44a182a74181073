"""Sentences about the width or the speed of a link, in a text that also shows the link as a tool prints it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...catalog.log_messages import Message, is_said
from ...facts.gpu import Gpu
from ...facts.machine import Pci
from ...facts.reason import Reason
from ...facts.records import NotChecked
from ...inventory.snapshot import Snapshot
from ..core.wording import gap

_WHOLE = "lspci shows the link with all its lanes and its full speed"
_DISPLAY = 0x03  # the class of GPUs
_LINKS = ("pcie-link-narrow", "pcie-link-slow")


def is_shown(snapshot: Snapshot, row: Message) -> bool:
    """Whether a sentence is about the width or the speed of a link, and the text has those of the GPUs."""
    if row.code not in _LINKS or not is_said(row.name):
        return False
    return any(one.pcie_width or one.pcie_speed for one in snapshot.of(Gpu).values())


def whole_link(snapshot: Snapshot, row: Message, subject: str) -> str | None:
    """Why a sentence about a slow link may state no fault: it names no device, the text shows one link, that of a GPU,
    and this link has all it can have.
    """
    if row.code not in _LINKS or not is_said(row.name) or subject != "node":
        return None
    links = [one for one in snapshot.of(Pci).values() if one.width and one.max_width and one.speed and one.max_speed]
    whole = [one for one in links if (one.width, one.speed) == (one.max_width, one.max_speed)]
    of_gpu = all((one.pci_class or 0) >> 16 == _DISPLAY for one in whole)
    return _WHOLE if len(links) == len(whole) == 1 and of_gpu else None


def contradicted(snapshot: Snapshot, pasts: Iterable[str | None]) -> Iterator[NotChecked]:
    """A gap, if a sentence was left out because of the link that the text shows: it may be about another one."""
    if _WHOLE in pasts:
        why = f"a sentence says that a link is slow, and {_WHOLE}"
        yield from gap(snapshot, "Pci.width", "node", Reason.CONTRADICTED, why, "sudo lspci -vv, of all functions")
