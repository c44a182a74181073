"""Machines of a few PCI functions, as sysfs shows them."""

from __future__ import annotations

from collections.abc import Mapping

from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import NotChecked
from linkgauge.probes.host.entries import Entry, Link
from linkgauge.probes.pcie.links import DEVICES

NO_NAMES = NotChecked(
    what="Pci.name",
    subject="node",
    reason=Reason.NOT_INSTALLED,
    detail="no pci.ids on this machine: device names are unknown",
    how="install the package pci.ids (or hwdata)",
)
Files = dict[str, str]
ROOT = "sys/devices/pci0000:16"
PORT = f"{ROOT}/0000:16:01.0"
CARD = f"{PORT}/0000:17:00.0"


def identity(pci_class: str, vendor: str, device: str) -> Files:
    return {"class": pci_class, "vendor": vendor, "device": device}


GPU = identity("0x030200", "0x10de", "0x2330")


def machine(functions: Mapping[str, Mapping[str, str]], **others: Entry) -> dict[str, Entry]:
    """Functions by their folders, as sysfs has them."""
    entries: dict[str, Entry] = {}
    for folder, files in functions.items():
        target = "../../../" + folder.removeprefix("sys/")
        entries[f"{DEVICES}/{folder.rpartition('/')[2]}"] = Link(target)
        entries.update({f"{folder}/{name}": text for name, text in files.items()})
    return {**entries, **others}
