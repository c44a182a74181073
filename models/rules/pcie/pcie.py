"""PCIe links: width, speed, and slower uplinks of switches."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.gpu import Gpu
from ...facts.machine import Node, Pci
from ...facts.pci_classes import INTEL, NVIDIA, card_of, kind_of, lowers_speed
from ...facts.pcie_rates import rated
from ...facts.reason import Reason
from ...facts.records import Evidence, NotChecked, Observation
from ...facts.units import as_gigabytes, as_transfers
from ...graph.topology import Link
from ...inventory.cohorts import carried, ports_above
from ...inventory.pci_tree import emulated, functions_above
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ...report import Finding
from ..core.gpus import gpu_cohort, gpu_product, majority
from ..core.rule import Rule
from ..core.wording import cited, function_name, gap, location
from .link_claims import is_gigabit, speed_claim, width_claim

_EMULATED = "a virtual machine shows {}; its PCI tree is emulated"
_LOOK_ON_HOST = "look on the host, or set trust_virtual_links in the site file"


def on_link(snapshot: Snapshot, function: Pci) -> bool:
    """Select functions 0 at the lower end of a PCIe link that answer. NVMe controllers have their own code."""
    return function.key in snapshot.topology.link_below and kind_of(function) != "nvme" and not function.lost


def narrow(snapshot: Snapshot, function: Pci) -> Iterator[Finding | NotChecked]:
    """A link was trained on fewer lanes than both ends support. Idle links keep their width, so no load is needed."""
    yield from width_below(snapshot, function, "pcie-link-narrow")


def width_below(snapshot: Snapshot, function: Pci, code: str) -> Iterator[Finding | NotChecked]:
    """The width check, with the finding code of the device on the link."""
    link = snapshot.topology.link_below[function.key]
    port = snapshot.of(Pci)[link.a]
    if function.max_width is None or (function.width or 0) >= function.max_width:
        return
    if function.width is None:
        if not is_emulated(snapshot, function):
            yield from gap(
                snapshot, "Pci.width", function.key, Reason.OTHER, "its link says x0: not trained, or not shown"
            )
    elif is_emulated(snapshot, function):
        if _whole_by_driver(snapshot, function):
            return
        seen = f"x{function.width} of x{function.max_width}"
        yield from gap(snapshot, "Pci.width", function.key, Reason.HIDDEN, _EMULATED.format(seen), _LOOK_ON_HOST)
    elif port.max_width is None:
        why = f"at x{function.width} of its x{function.max_width}, and {port.key} above does not say what it can do"
        yield from gap(
            snapshot, "Pci.max_width", port.key, Reason.OTHER, why, "read the slot's width in the board's manual"
        )
    elif function.width < min(function.max_width, port.max_width):
        yield _narrower(snapshot, function, link, code)


def _narrower(snapshot: Snapshot, function: Pci, link: Link, code: str) -> Finding:
    port = snapshot.of(Pci)[link.a]
    width, both = function.width or 0, min(function.max_width or 0, port.max_width or 0)
    split = _split(snapshot, function, port)
    speed = function.max_speed if port.max_speed is None else min(function.max_speed or 0, port.max_speed)
    return Finding(
        code=code,
        severity="info" if split or is_gigabit(function) else "warning" if code.startswith("storage") else "critical",
        subject=function.key,
        subject_name=function_name(snapshot, function),
        fact=f"runs on x{width} of x{both}",
        message=f"{function_name(snapshot, function)} runs on x{width}, both ends support x{both}"
        + (f": {as_gigabytes(rated(speed, width))} of {as_gigabytes(rated(speed, both))}" if speed else ""),
        expected=both,
        observed=width,
        unit="lanes",
        basis="capability",
        expected_source=f"{function.key} supports x{function.max_width}, {port.key} above it x{port.max_width}",
        case="by design" if split else None,
        cause=split or f"trained at x{width}: seating, slot, riser, cable, or a slot split by firmware",
        limits={link.id: rated(speed, width)} if speed else {},
        location=location(function, snapshot),
        evidence=cited(function, "width", "max_width"),
    )


def _whole_by_driver(snapshot: Snapshot, function: Pci) -> bool:
    """Whether the GPU's driver shows enough of the link. The driver reads the width from the GPU itself.

    That is so if the link is as wide as the product supports, or if gpu_pcie.py compares it with equal GPUs.
    """
    for gpu in snapshot.of(Gpu).values():
        if gpu.address == function.key and gpu.pcie_width is not None:
            product = gpu_product(snapshot, gpu)
            most = min((width for width in (gpu.pcie_max_width, product and product.width) if width), default=None)
            alike = majority(other.pcie_width for other in gpu_cohort(snapshot, gpu)) is not None
            return alike or (most is not None and gpu.pcie_width >= most)
    return False


def _split(snapshot: Snapshot, function: Pci, port: Pci) -> str | None:
    """Why the link is narrower than the port by design, as text. None: it is not known to be by design.

    A port of an Intel desktop processor reports its full width even if its lanes are split between slots. A Grace
    processor reaches GPUs over NVLink-C2C, and switches get one lane of PCIe for management.
    """
    if port.vendor == NVIDIA and kind_of(function) == "bridge":
        return "a Grace processor needs no more: its GPUs are attached over NVLink-C2C"
    sisters = [
        link
        for link in snapshot.topology.link_below.values()
        if link.a != port.key and card_of(link.a) == card_of(port.key) and snapshot.of(Pci)[link.b].width
    ]
    lanes = (function.width or 0) + sum(snapshot.of(Pci)[link.b].width or 0 for link in sisters)
    if port.vendor == INTEL and sisters and lanes <= (port.max_width or 0):
        return f"the slot is split: {', '.join(link.b for link in sisters)} has the other lanes"
    return None


def slow(snapshot: Snapshot, function: Pci) -> Iterator[Finding | NotChecked]:
    """A link under load runs at a lower generation than both ends support. Idle links reduce their speed."""
    yield from speed_below(snapshot, function, "pcie-link-slow")


def speed_below(snapshot: Snapshot, function: Pci, code: str) -> Iterator[Finding | NotChecked]:
    """The speed check, with the finding code of the device on the link."""
    link = snapshot.topology.link_below[function.key]
    port = snapshot.of(Pci)[link.a]
    if function.max_speed is None or port.max_speed is None:
        return
    both = min(function.max_speed, port.max_speed)
    busy = busy_speed(snapshot, function.key)
    if is_emulated(snapshot, function):
        if busy and busy.value < function.max_speed:
            seen = f"{as_transfers(busy.value)} of {as_transfers(function.max_speed)}"
            yield from gap(snapshot, "Pci.speed", function.key, Reason.HIDDEN, _EMULATED.format(seen), _LOOK_ON_HOST)
    elif busy is None and function.speed is not None and function.speed < both and rests(snapshot, function):
        why = f"at {as_transfers(function.speed)} of {as_transfers(both)} at rest; speed is judged while bytes move"
        yield from gap(
            snapshot,
            "Pci.speed",
            function.key,
            Reason.AT_REST,
            why,
            "measure under load: copy over the link and look again",
        )
    elif busy and busy.value < both:
        yield _slower(snapshot, function, link, busy.value, (busy.evidence,), code)
    elif busy is None and function.speed is not None and function.speed < both:
        yield _slower(snapshot, function, link, function.speed, cited(function, "speed", "max_speed"), code)


def rests(snapshot: Snapshot, function: Pci) -> bool:
    """Whether the link may lower its speed at rest: links of GPUs and accelerators, and of switches above them.

    NICs, disks and the switches above them alone keep their speed. Source: nvidia-smi and lspci of idle nodes. The
    driver of a GPU changes the speed of its link and of the port above.
    """
    if function.key in carried(snapshot):
        return function.key in _above_resting(snapshot)
    return kind_of(function) not in ("nic", "nvme", "storage")


@once_per_snapshot
def _above_resting(snapshot: Snapshot) -> frozenset[str]:
    """The ports above devices that lower the speed of their links at rest."""
    functions = snapshot.of(Pci)
    resting = [one for one in functions.values() if lowers_speed(one)]
    return frozenset(port for one in resting for port in functions_above(one.key, functions))


def _slower(
    snapshot: Snapshot, function: Pci, link: Link, speed: float, evidence: tuple[Evidence, ...], code: str
) -> Finding:
    port = snapshot.of(Pci)[link.a]
    own, above = function.max_speed or 0.0, port.max_speed or 0.0
    both = min(own, above)
    width = function.width or function.max_width
    while_busy = " while bytes move" if rests(snapshot, function) else ""
    limits = {link.id: rated(speed, width)} if width else {}
    return Finding(
        code=code,
        severity="info" if is_gigabit(function) else "warning" if code.startswith("storage") else "critical",
        subject=function.key,
        subject_name=function_name(snapshot, function),
        fact=f"runs at {as_transfers(speed)} of {as_transfers(both)}{while_busy}",
        message=f"{function_name(snapshot, function)} runs at {as_transfers(speed)}{while_busy}, "
        f"both ends support {as_transfers(both)}"
        + (f": {as_gigabytes(rated(speed, width))} of {as_gigabytes(rated(both, width))}" if width else ""),
        expected=both,
        observed=speed,
        unit="transfers_per_second",
        basis="capability",
        expected_source=f"{function.key} supports {as_transfers(own)}, {port.key} above it {as_transfers(above)}",
        cause="the link's signal made it fall back: seating, riser, retimer or cable; or a BIOS limit on the slot",
        limits=limits,
        location=location(function, snapshot),
        evidence=evidence,
    )


def busy_speed(snapshot: Snapshot, address: str) -> Observation | None:
    """The last observation of the link's speed under load."""
    seen = [one for one in snapshot.observed.get(address, ()) if one.quantity == "link_speed" and one.busy]
    return max(seen, key=lambda one: one.at, default=None)


def is_emulated(snapshot: Snapshot, function: Pci) -> bool:
    """Whether a hypervisor emulates the ports above the function."""
    return function.key in _emulated(snapshot)


@once_per_snapshot
def _emulated(snapshot: Snapshot) -> frozenset[str]:
    node = snapshot.of(Node).get("node")
    virtual = node is not None and node.virtual and not snapshot.site.trust_virtual_links
    return emulated(snapshot.of(Pci)) if virtual else frozenset()


def is_switch(snapshot: Snapshot, function: Pci) -> bool:
    """Select upstream ports of switches."""
    device = snapshot.topology.find(function.key)
    return device is not None and device.kind == "upstream-port"


def _below_evidence(snapshot: Snapshot, port: Pci) -> bool:
    """Whether the uplink is not built that way: independent evidence contradicts it (below_evidence.py)."""
    claims = (width_claim(snapshot, port), speed_claim(snapshot, port))
    return any(claim.contradicted for claim in claims if claim)


def fastest_below(snapshot: Snapshot, port: Pci) -> Link | None:
    """The link with the highest rated rate below an upstream port. None: no rate is known."""
    links = snapshot.topology.link_below
    below = (links[key] for key, above in ports_above(snapshot).items() if key in links and port.key in above)
    return max((link for link in below if link.rated), key=lambda link: link.rated or 0.0, default=None)


def bottleneck(snapshot: Snapshot, port: Pci) -> Iterator[Finding]:
    """The uplink of a switch is slower by design than the link of a device below it. This is not a fault."""
    links = snapshot.topology.link_below
    uplink = links.get(port.key)
    if uplink is None or uplink.rated is None or is_emulated(snapshot, port) or _below_evidence(snapshot, port):
        return
    widest = fastest_below(snapshot, port)
    if widest is None or not widest.rated or widest.rated <= uplink.rated:
        return
    yield Finding(
        code="pcie-path-bottleneck",
        severity="info",
        subject=port.key,
        subject_name=function_name(snapshot, port),
        fact=f"carries {as_gigabytes(uplink.rated)}, less than the {as_gigabytes(widest.rated)} of a link below it",
        message=f"the switch's uplink {uplink.id} carries {as_gigabytes(uplink.rated)}, less than the "
        f"{as_gigabytes(widest.rated)} of {widest.b} below it; built that way",
        expected=widest.rated,
        observed=uplink.rated,
        unit="bytes_per_second",
        basis="capability",
        expected_source=f"link {widest.id}",
        case="by design",
        cause="both ends of the uplink support no more",
        evidence=cited(port, "max_speed", "max_width"),
    )


RULES = (
    Rule("pcie-link-narrow", Pci, ("pci_class", "width?", "max_width"), narrow, on_link),
    Rule("pcie-link-slow", Pci, ("pci_class", "max_speed"), slow, on_link),
    Rule("pcie-path-bottleneck", Pci, ("pci_class", "max_speed", "max_width"), bottleneck, is_switch),
)
