"""PCI functions that are listed and do not answer any more: their link reads Unknown at width 63."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...facts.machine import Pci
from ...facts.pci_classes import AMD, kind_of
from ...facts.reason import Reason
from ...facts.records import NotChecked
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.log_history import logged
from ..core.rule import Evaluate, Rule
from ..core.wording import function_name, location

# GPUs of laptops, which switch them off while nothing uses them: https://wiki.archlinux.org/title/Bumblebee
_MOBILE = re.compile(r"\bMobile\b|\bMax-Q\b|\b(?:GTX?|GT|MX|RTX|Quadro|GeForce|T|A|K|M|P)? ?\d{3,4}M[X]?\b")

_SERVER = re.compile(r"\bInstinct\b|\bMI\d{2,3}", re.IGNORECASE)


def lost_function(code: str) -> Evaluate:
    """The check for functions that do not answer, with the finding code of their kind."""

    def evaluate(snapshot: Snapshot, function: Pci) -> Iterator[Finding | NotChecked]:
        if function.lost:
            off = _may_sleep(snapshot, function)
            if off:
                yield NotChecked(
                    what="Pci.lost",
                    subject=function.key,
                    reason=Reason.INCOMPLETE,
                    detail="it does not answer, and the text does not say whether it is switched off",
                    how=f"cat /sys/bus/pci/devices/{function.key}/power_state",
                )
            yield Finding(
                code=code,
                severity="info" if off else "critical",
                subject=function.key,
                subject_name=function_name(snapshot, function),
                message=f"{function_name(snapshot, function)} fell off the bus: it is listed and does not answer",
                expected="a link",
                observed="none",
                case="absent" if code == "nvswitch-error" else "off the bus",
                fact="fell off the bus: it is listed and does not answer",
                cause="the GPU may be switched off, as laptops do with their second one; else it stopped"
                if off
                else "power, overheating, firmware, or a dead link; the kernel log says which came first",
                location=location(function, snapshot),
                evidence=(
                    *(function.cites[name] for name in ("speed", "width") if name in function.cites),
                    *logged(snapshot, function.key),
                ),
            )

    return evaluate


def _may_sleep(snapshot: Snapshot, function: Pci) -> bool:
    """Whether a text may show a GPU, or a port on its card, that a desktop or a laptop has switched off.

    lspci then shows ones: https://github.com/pciutils/pciutils/pull/91
    """
    name = function.name or ""
    if kind_of(function) not in ("gpu", "bridge") or snapshot.origin != "dumps":
        return False
    return bool(_MOBILE.search(name)) or (function.vendor == AMD and bool(name) and not _SERVER.search(name))


def is_gpu(snapshot: Snapshot, function: Pci) -> bool:
    """Select GPUs, and functions whose class was not read, or whose vendor was not read and that are no NIC or disk."""
    kind = kind_of(function)
    return function.pci_class is None or kind == "gpu" or (function.vendor is None and kind not in ("nic", "nvme"))


def is_nic(snapshot: Snapshot, function: Pci) -> bool:
    """Select NICs, and functions whose class was not read."""
    return function.pci_class is None or kind_of(function) == "nic"


def is_disk(snapshot: Snapshot, function: Pci) -> bool:
    """Select NVMe controllers, and functions whose class was not read."""
    return function.pci_class is None or kind_of(function) == "nvme"


def is_bridge(snapshot: Snapshot, function: Pci) -> bool:
    """Select PCI bridges that a text shows. On a live machine the devices below one are reported."""
    return snapshot.origin == "dumps" and kind_of(function) == "bridge" and bool(function.lost)


RULES = (
    Rule("gpu-missing", Pci, ("pci_class", "lost?"), lost_function("gpu-missing"), is_gpu),
    Rule("nic-missing", Pci, ("pci_class", "lost?"), lost_function("nic-missing"), is_nic),
    Rule("storage-degraded", Pci, ("pci_class", "lost?"), lost_function("storage-degraded"), is_disk),
    Rule("pcie-errors", Pci, ("pci_class", "lost"), lost_function("pcie-errors"), is_bridge),
)
