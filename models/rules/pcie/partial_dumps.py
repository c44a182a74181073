"""PCIe links and ports in partial dumps: only one end is shown, or the address is missing (grep, forum posts).

A function that runs on fewer lanes than it supports is worth a check. The port above may support no more lanes, which
such a dump does not show. Therefore the confidence is "likely".
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from msgspec.structs import replace

from ...catalog.gpus import products_of
from ...facts.gpu import Gpu, GpuPair
from ...facts.machine import Node, Pci
from ...facts.pci_classes import MELLANOX, function_number, kind_of
from ...facts.reason import Reason
from ...facts.records import NotChecked
from ...facts.units import as_transfers
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.rule import Evaluate, Rule
from ..core.wording import cited, function_name, gap, location
from .acs import REDIRECTS
from .link_claims import is_gigabit

_ENDPOINTS = {"gpu": "pcie-link-narrow", "nic": "pcie-link-narrow", "nvme": "storage-link-slow"}
_COMPLETE = "sudo lspci -vv, all of it: each function under its address, and the port above it"
_ALL_LANES = 16  # of a slot
_OLD = 5e9  # transfers per second of PCIe 2; Intel Xeon E5-2600 (2012) has slots of PCIe 3
# A place in a file is no address: "text:12", "text:1.12" within a string on line 1
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:([0-9a-f]{2}):([0-9a-f]{2}\.[0-7])")


def is_unnamed(function: Pci) -> bool:
    """Whether the dump shows the function without its address. The line's place in the file is then its key."""
    unknown = function.pci_class is None and _kind(function) == "pci"
    return (unknown or (_is_place(function) and function.vendor is None)) and function.parent is None


def _is_place(function: Pci) -> bool:
    return not _ADDRESS.fullmatch(function.key)


def narrow_rule(code: str) -> Rule:
    """The rule for the width of links whose upper end is not shown, with the finding code of the device's kind."""

    def where(snapshot: Snapshot, function: Pci) -> bool:
        if (
            snapshot.origin != "dumps"
            or function.lost
            or not _can_be_narrow(function)
            or function.key in snapshot.topology.link_below
            or _is_guest(snapshot)
        ):
            return False
        if is_unnamed(function):
            return code == "pcie-link-narrow" and function.pci_class is None  # a port may be above a narrow device
        first = _is_place(function) or function_number(function.key) == "0"
        return _ENDPOINTS.get(_kind(function)) == code and first

    return Rule(code, Pci, ("width",), _narrow(code), where)


def _kind(function: Pci) -> str:
    """The kind of the function. A text that calls it a GPU does not always say who made it, or has only its ids."""
    kind = kind_of(function)
    if function.pci_class is None and function.vendor is not None:
        return "gpu" if products_of(function) else "nic" if function.vendor == MELLANOX else kind
    return "gpu" if kind == "display" and function.vendor is None and function.name is None else kind


def _can_be_narrow(function: Pci) -> bool:
    """Whether the text shows what the width should be, or that it is the largest possible one."""
    known = function.max_width is not None or function.downgraded is not None
    return known or (function.width or 0) >= _ALL_LANES


def _narrow(code: str) -> Evaluate:
    """A link uses fewer lanes than this end supports. A lower speed is a NotChecked: the link may be idle."""

    def evaluate(snapshot: Snapshot, function: Pci) -> Iterator[Finding | NotChecked]:
        below = function.downgraded or ()
        able = function.max_width
        if is_unnamed(function) and _one_of_many(snapshot) and not _is_called_narrow(function):
            short = ("width",) if able and (function.width or 0) < able else ()
            if able and not short:  # then it is another line that calls it narrow: inventory/disagreement.py
                below = tuple(name for name in below if name != "width")
            slow = ("speed",) if function.speed and function.speed < (function.max_speed or 0.0) else ()
            if below or short or (slow and _is_place(function)):
                yield below_own(snapshot, function, "width" if short or "width" in below else "speed")
            if wrong := below or short or slow:
                why = f"{' and '.join(wrong)} below its own, and the text does not say whose link that is"
                reason = Reason.INCOMPLETE if short or "width" in below else Reason.AT_REST
                yield from gap(snapshot, "Pci.width", function.key, reason, why, _COMPLETE)
            return
        narrow = "width" in below or bool(able and (function.width or 0) < able)
        if narrow:
            yield _finding(snapshot, function, code)
            if _alike(snapshot, function) and not is_gigabit(function):
                why = f"at x{function.width}, as the others of its kind, below its own; the port above it is not shown"
                yield from gap(snapshot, "Pci.width", function.key, Reason.INCOMPLETE, why, _COMPLETE)
        if "speed" in below or (function.max_speed and (function.speed or function.max_speed) < function.max_speed):
            own = f" of {as_transfers(function.max_speed)}" if function.max_speed else ""
            if _is_old(function):
                yield _slow_nic(snapshot, function)
                return
            if not narrow:
                yield below_own(snapshot, function, "speed")
            why = f"at {as_transfers(function.speed or 0)}{own}; at rest, or where the slot has no more, it is meant so"
            yield from gap(
                snapshot, "Pci.speed", function.key, Reason.AT_REST, why, "look again while bytes move over the link"
            )

    return evaluate


def _is_old(function: Pci) -> bool:
    """Whether a NIC runs at the speed of slots before PCIe 3. NICs do not lower their speed at rest."""
    return _kind(function) == "nic" and (function.speed or math.inf) <= _OLD < (function.max_speed or 0.0)


def _slow_nic(snapshot: Snapshot, function: Pci) -> Finding:
    name = function_name(snapshot, function)
    now, most = as_transfers(function.speed or 0), as_transfers(function.max_speed or 0)
    return replace(
        below_own(snapshot, function, "speed"),
        severity="warning",
        confidence="likely",
        message=f"{name} runs at {now} of its {most}, which slots of servers have had for ten years",
        cause="a slot of the chipset, a setting of the firmware, or a link that trained low",
    )


def _is_called_narrow(function: Pci) -> bool:
    """Whether lspci calls the width of a function that is alone on its link "downgraded".

    Ports with a narrow device below them are left out: those of a processor are on the first bus, and those of a
    switch have other device numbers, except for the first.
    """
    found = _ADDRESS.fullmatch(function.key)
    alone = bool(found and found[1] != "00" and found[2] == "00.0")
    less = function.width is not None and function.width < (function.max_width or math.inf)
    return alone and less and "width" in (function.downgraded or ())


def below_own(snapshot: Snapshot, function: Pci, what: str) -> Finding:
    """Information: the "width" or "speed" of a link is below its own maximum, and the text does not show why."""
    port = kind_of(function) == "bridge"
    name = ("a port" if port else "a device") if is_unnamed(function) else function_name(snapshot, function)
    width = what == "width"
    now = f"x{function.width}" if width else as_transfers(function.speed or 0)
    most = (function.max_width and f"x{function.max_width}") if width else as_transfers(function.max_speed or 0)
    own = f" of its {most}" if (function.max_width if width else function.max_speed) else ", below its own maximum"
    return Finding(
        code="pcie-link-narrow" if width else "pcie-link-slow",
        severity="info",
        confidence="possible",
        subject=function.key,
        subject_name=None if is_unnamed(function) else name,
        message=f"{name} runs at {now}{own}: "
        + ("the device below it has no more, " if port else "the device is at rest, its slot has no more, ")
        + "or the link is at fault",
        expected=function.max_width if width else function.max_speed,
        observed=function.width if width else function.speed,
        unit="lanes" if width else "transfers_per_second",
        basis="capability",
        cause="power saving at rest, a slower slot, or a fault of the link",
        evidence=cited(function, "width", "max_width") if width else cited(function, "speed", "max_speed"),
    )


def _finding(snapshot: Snapshot, function: Pci, code: str) -> Finding:
    name = "a device" if is_unnamed(function) else function_name(snapshot, function)
    able = f"its own x{function.max_width}" if function.max_width else "its own width"
    alike = _alike(snapshot, function)
    meant = alike or is_gigabit(function)
    told_apart = not is_unnamed(function) or not _one_of_many(snapshot)
    return Finding(
        code=code,
        severity="info" if meant else "warning" if code.startswith("storage") or not told_apart else "critical",
        confidence="likely" if told_apart else "possible",
        subject=function.key,
        subject_name=None if is_unnamed(function) else name,
        fact=f"runs on x{function.width} of its x{function.max_width}" if function.max_width else None,
        case="by design" if alike else None,
        message=f"{name} runs on x{function.width}, below {able}"
        + (f", as the other {alike} of its kind do" if alike else ""),
        expected=function.max_width,
        observed=function.width,
        unit="lanes",
        basis="capability",
        expected_source="what the device says of itself; the port above it is not shown",
        cause="a slot or riser with fewer lanes; else seating, cable, or a slot split by firmware",
        location=location(function, snapshot),
        evidence=cited(function, "width", "max_width"),
    )


def _alike(snapshot: Snapshot, function: Pci) -> int:
    """The number of other functions of its product, if each has this width. They can also be copies of one output."""
    if function.device is None:
        return 0
    number = (function.vendor, function.device)
    widths = [
        other.width for other in snapshot.of(Pci).values() if (other.vendor, other.device) == number and other.width
    ]
    return len(widths) - 1 if set(widths) == {function.width} else 0


def _one_of_many(snapshot: Snapshot) -> bool:
    """Whether the dump has links of several unnamed functions. Some may be ports with narrower devices below them."""
    return sum(is_unnamed(function) and function.width is not None for function in snapshot.of(Pci).values()) > 1


def shows_switches(snapshot: Snapshot, node: Node) -> bool:
    """Select dumps with ACS of unnamed ports, if GPUs may communicate over PCIe."""
    unnamed = any(is_unnamed(function) and function.acs is not None for function in snapshot.of(Pci).values())
    joined = any((gpu.nvlinks or 0) > 0 for gpu in snapshot.of(Gpu).values()) or any(
        (pair.path or "").startswith("NV") or pair.nvlink == "ok" for pair in snapshot.of(GpuPair).values()
    )
    return snapshot.origin == "dumps" and unnamed and not joined and not _is_guest(snapshot)


def redirected(snapshot: Snapshot, node: Node) -> Iterator[Finding | NotChecked]:
    """Unnamed ports send peer traffic up to the root complex. A single one may be a root port, where that is normal."""
    ports = [function for function in snapshot.of(Pci).values() if is_unnamed(function) and function.acs is not None]
    hit = [port for port in ports if not REDIRECTS.isdisjoint(port.acs or ())]
    if len(ports) == 1 and hit and _is_part(hit[0]):
        why = "ACS redirects are on at a port, and the text does not show whether a switch or the root complex has it"
        yield from gap(snapshot, "Pci.acs", hit[0].key, Reason.INCOMPLETE, why, "lspci -vvv, whole")
    elif hit:
        on = sorted({name for port in hit for name in port.acs or ()} & REDIRECTS, reverse=True)
        yield Finding(
            code="pcie-acs-redirect",
            severity="warning",
            confidence="likely",
            subject="node",
            message=f"{' and '.join(on)} {'is' if len(on) == 1 else 'are'} on at {len(hit)} of {len(ports)} ports that "
            "the text shows without their addresses: what GPUs and NICs below them send each other goes up to the root "
            "complex",
            expected="off",
            observed=" ".join(on),
            cause="the firmware, or a kernel with the IOMMU on, switched ACS on",
            evidence=tuple(seen for port in hit[:6] for seen in cited(port, "acs")),
        )


def _is_part(port: Pci) -> bool:
    """Whether more lines of the port's output are shown than those of ACS, which people search for."""
    return any(getattr(port, name) is not None for name in ("speed", "width", "driver", "max_payload", "max_speed"))


def _is_guest(snapshot: Snapshot) -> bool:
    node = snapshot.of(Node).get("node")
    return bool(node and node.virtual)


RULES = (
    narrow_rule("pcie-link-narrow"),
    narrow_rule("storage-link-slow"),
    Rule("pcie-acs-redirect", Node, (), redirected, shows_switches),
)
