"""PCIe links of GPUs as reported by their driver, if the PCI bus does not show them, and replay counters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from ...catalog.gpus import Product
from ...facts.gpu import Gpu
from ...facts.machine import Node, Pci
from ...facts.reason import Reason
from ...facts.records import NotChecked, Observation
from ...facts.units import as_transfers
from ...inventory.cohorts import strict_majority
from ...inventory.snapshot import Snapshot
from ...report import COHORT, Finding
from ..core.claims import BASES, Claim, Support
from ..core.gpus import (
    function_of,
    gpu_cohort,
    gpu_evidence,
    gpu_name,
    gpu_product,
    latest,
    majority,
    place_of,
    scrubs,
    subject_of,
)
from ..core.machine_expectations import profile
from ..core.rule import Rule
from ..pcie.aer import errors, repeated
from ..pcie.link_claims import MAX_SPEED, WIDTH, carriers, lanes_of_grade
from ..pcie.pcie import is_emulated
from .pcie_events import errors as logged_errors

_LANES = 16
_EMULATED = "a hypervisor emulates the link; no driver shows the real one"
_SMALLEST_COHORT = 3
_AT_WORK = 0.5  # share of the time in which a program runs


def is_hidden(snapshot: Snapshot, gpu: Gpu) -> bool:
    """Whether the PCI bus does not show the GPU's link."""
    function = function_of(snapshot, gpu)
    return function is None or function.key not in snapshot.topology.link_below or is_emulated(snapshot, function)


def busy(gpu: Gpu) -> bool:
    """Whether the GPU works, by its state and clocks, else by its utilization. Its link then runs at full speed."""
    if gpu.clock_reasons is not None:
        return gpu.performance_state == 0 and "idle" not in gpu.clock_reasons
    return not gpu.performance_state and (gpu.utilization or 0) >= _AT_WORK and not scrubs(gpu)


def hidden_claims(snapshot: Snapshot) -> Iterator[Claim]:
    """The claims of the links of GPUs and NICs that a hypervisor hides, from the driver and the machine type."""
    for gpu in snapshot.of(Gpu).values():
        if gpu.pcie_width and is_hidden(snapshot, gpu) and gpu.virtualization != "vGPU":
            yield driver_claim(snapshot, gpu, gpu.pcie_width)
    shown = {gpu.address for gpu in snapshot.of(Gpu).values() if gpu.pcie_width}
    for address, function in carriers(snapshot).items():
        if is_emulated(snapshot, function):
            port = snapshot.of(Pci)[snapshot.topology.link_below[address].a]
            yield from _emulated_claims(function, port, address in shown)


def _emulated_claims(function: Pci, port: Pci, width_shown: bool) -> Iterator[Claim]:
    """The claims that nothing supports. The driver of a GPU shows the real width, and not what its slot supports."""
    speed = function.max_speed or port.max_speed
    values = {MAX_SPEED: speed, **({} if width_shown else {WIDTH: function.width or 0.0})}
    for quantity, observed in values.items():
        if observed is not None:
            yield Claim(group="links", subject=function.key, quantity=quantity, observed=observed, doubt=_EMULATED)


def driver_claim(snapshot: Snapshot, gpu: Gpu, width: int) -> Claim:
    """The claim of the width that the driver reads from the GPU itself."""
    product, supports = gpu_product(snapshot, gpu), []
    if lanes := _of_machine(snapshot):
        supports.append(lanes)
    if product and _is_module(product):
        supports.append(Support("product", product.width, f"{product.name} ({product.source})"))
    equal = gpu_cohort(snapshot, gpu)
    if most := strict_majority(other.pcie_width for other in equal):
        agree = sum(other.pcie_width == most for other in equal)
        supports.append(Support("cohort", most, f"{agree} of {len(equal)} equal GPUs have these lanes"))
    able = max(gpu.pcie_max_width or width, product.width if product else width)
    return Claim(
        group="links",
        subject=subject_of(gpu),
        quantity="link width",
        observed=width,
        supports=tuple(supports),
        doubt=f"at x{width}, the GPU supports x{able}: nothing says how its slot is wired" if able > width else None,
    )


def _is_module(product: Product) -> bool:
    """Whether it is a module for a baseboard, whose slot has all lanes. Before NVLink 3 some boards had fewer.

    The traffic of a Grace machine uses NVLink-C2C.
    """
    return bool(product.links and not product.bridged and (product.link_version or 0) >= 3 and not product.c2c_rate)


def _of_machine(snapshot: Snapshot) -> Support | None:
    """The lanes of a GPU's own link, by the machine type."""
    known = profile(snapshot)
    grade = known.machine.gpu_link if known else None
    if known is None or grade is None:
        return None
    return Support("site" if known.basis == "site" else "profile", lanes_of_grade(grade), known.machine.name)


def can_be_narrow(snapshot: Snapshot, gpu: Gpu) -> bool:
    """Select hidden links. In dumps, only those with all lanes, and those with evidence of how many there should be."""
    if not is_hidden(snapshot, gpu):
        return False
    claim = driver_claim(snapshot, gpu, gpu.pcie_width or 0)
    return snapshot.origin != "dumps" or bool(claim.supports) or claim.doubt is None


def with_all_lanes(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding | NotChecked]:
    """below_evidence(), or a gap: a dump says neither how many lanes the GPU supports, nor how many it should have."""
    width = gpu.pcie_width or 0
    supports = driver_claim(snapshot, gpu, width).supports
    if snapshot.origin == "dumps" and not has_known_lanes(snapshot, gpu) and {one.by for one in supports} <= {"cohort"}:
        yield NotChecked(
            what="Gpu.pcie_width",
            subject=subject_of(gpu),
            reason=Reason.INCOMPLETE,
            detail=f"the link has {_lanes(width)}; the text does not say how many lanes the GPU supports",
            how="nvidia-smi -q -i 0 (Link Width: Max), or lspci -vv of the GPU and of the port above it",
        )
    else:
        yield from below_evidence(snapshot, gpu)


def has_known_lanes(snapshot: Snapshot, gpu: Gpu) -> bool:
    """Whether the link has all lanes, or something says how many the GPU supports. Equal GPUs can all have too few."""
    known = gpu.pcie_max_width or gpu.pcie_wanted_width or gpu_product(snapshot, gpu)
    return (gpu.pcie_width or 0) >= _LANES or bool(known)


def below_evidence(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding]:
    """A hidden link has fewer lanes than the machine type or the board says. _below() compares it with equal GPUs."""
    claim = driver_claim(snapshot, gpu, gpu.pcie_width or 0)
    against = claim.contradicted
    if against is None or against.by == "cohort" or not is_hidden(snapshot, gpu) or narrower(snapshot, gpu):
        return
    yield Finding(
        code="pcie-link-narrow",
        severity="critical",
        subject=claim.subject,
        subject_name=gpu_name(snapshot, gpu),
        fact=f"runs on {_lanes(claim.observed)} of {_lanes(against.least)}",
        message=f"{gpu_name(snapshot, gpu)} runs at {_lanes(claim.observed)}, not {_lanes(against.least)}; "
        f"{against.source}",
        expected=against.least,
        observed=claim.observed,
        unit="lanes",
        basis=BASES[against.by],
        expected_source=against.source,
        cause="its link did not train as it should: seating, slot, riser or cable",
        location=place_of(snapshot, gpu),
        evidence=gpu_evidence(gpu, "pcie_width"),
    )


def narrower(snapshot: Snapshot, gpu: Gpu) -> float | None:
    """The width of most equal GPUs of the node, if this GPU has less."""
    most = majority(other.pcie_width for other in gpu_cohort(snapshot, gpu))
    return most if most and gpu.pcie_width and gpu.pcie_width < most else None


def slower(snapshot: Snapshot, gpu: Gpu) -> float | None:
    """The speed of most equal GPUs of the node under load, if this GPU is under load and has less."""
    most = majority(other.pcie_speed for other in gpu_cohort(snapshot, gpu) if busy(other))
    return most if busy(gpu) and most and gpu.pcie_speed and gpu.pcie_speed < most else None


def shows_speed(snapshot: Snapshot, gpu: Gpu) -> bool:
    """Whether the speed can be judged: under load, or at the speed that the GPU supports."""
    return busy(gpu) or (gpu.pcie_speed or 0.0) >= (gpu.pcie_max_speed or math.inf)


def _lanes(value: float) -> str:
    return f"x{value:.0f}"


def has_equal(snapshot: Snapshot, gpu: Gpu) -> bool:
    """Whether the GPU can be compared. A dump may show one GPU of a machine."""
    return snapshot.origin != "dumps" or len(gpu_cohort(snapshot, gpu)) >= _SMALLEST_COHORT


_BELOW = (  # code, field, unit, functions that find the usual value and whether that of a dump tells, format of a value
    ("pcie-link-narrow", "pcie_width", "lanes", narrower, has_known_lanes, _lanes),
    ("pcie-link-slow", "pcie_speed", "transfers_per_second", slower, shows_speed, as_transfers),
)
_Row = tuple[
    str,
    str,
    str,
    Callable[[Snapshot, Gpu], "float | None"],
    Callable[[Snapshot, Gpu], bool],
    Callable[[float], str],
]


def _below(row: _Row) -> Rule:
    """The rule for links that only the driver shows: below most equal GPUs of the node.

    The GPU's own maximum is no reference: an A10G or a T4 with 16 lanes in a slot of eight lanes is normal. Equal
    cards in slots of different width can be intended. So it is critical only in guests and for GPUs on a baseboard.
    """
    code, field, unit, find, tells, word = row

    def where(snapshot: Snapshot, node: Node) -> bool:
        shown = [gpu for gpu in snapshot.of(Gpu).values() if getattr(gpu, field) is not None]
        telling = snapshot.origin != "dumps" or any(find(snapshot, gpu) or tells(snapshot, gpu) for gpu in shown)
        return telling and any(is_hidden(snapshot, gpu) and has_equal(snapshot, gpu) for gpu in shown)

    def evaluate(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
        for gpu in snapshot.of(Gpu).values():
            most = find(snapshot, gpu) if is_hidden(snapshot, gpu) else None
            if most is None:
                continue
            product = gpu_product(snapshot, gpu)
            alike = bool(node.virtual) or bool(product and product.fabric)
            is_ = getattr(gpu, field)
            yield Finding(
                code=code,
                severity="critical" if alike else "warning",
                confidence="likely" if gpu.name else "possible",
                subject=subject_of(gpu),
                subject_name=gpu_name(snapshot, gpu),
                fact=f"runs at {word(is_)}, most equal GPUs at {word(most)}",
                message=f"{gpu_name(snapshot, gpu)} runs at {word(is_)}, most equal GPUs of this node at {word(most)}",
                expected=most,
                observed=is_,
                unit=unit,
                basis=COHORT,
                expected_source="most equal GPUs of this node, as their driver says",
                cause="its link did not train as theirs: seating, slot, riser or cable",
                location=place_of(snapshot, gpu),
                evidence=gpu_evidence(gpu, field),
            )

    return Rule(code, Node, (), evaluate, where)


def counts_replays(snapshot: Snapshot, gpu: Gpu) -> bool:
    """Select GPUs with a replay counter."""
    return latest(snapshot, gpu, "pcie_replay") is not None


def replays(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding]:
    """The link repeats packets more often than a healthy link, and neither the bus nor the log shows the errors."""
    now, function = latest(snapshot, gpu, "pcie_replay"), function_of(snapshot, gpu)
    if now is None or (function and (any(errors(snapshot, function)) or _logged(snapshot, function))):
        return

    def equal() -> Iterator[Observation]:
        others = (other for other in gpu_cohort(snapshot, gpu) if other.key != gpu.key)
        yield from (one for other in others if (one := latest(snapshot, other, "pcie_replay")))

    found = repeated(snapshot, gpu.pcie_width or (function and function.width) or _LANES, now, equal, "replays")
    if found is None:
        return
    text, rise = found
    yield Finding(
        code="pcie-errors",
        severity="warning",
        subject=subject_of(gpu),
        subject_name=gpu_name(snapshot, gpu),
        message=f"{gpu_name(snapshot, gpu)}: {text}",
        observed=rise.new,
        unit="count",
        cause="the link's signal: seating, riser, retimer or cable; then the device",
        location=place_of(snapshot, gpu),
        evidence=rise.evidence,
    )


def _logged(snapshot: Snapshot, function: Pci) -> bool:
    node = snapshot.of(Node)["node"]
    return any(finding.subject == function.key for finding in logged_errors(snapshot, node))


RULES = (
    *(_below(row) for row in _BELOW),
    Rule("pcie-link-narrow", Gpu, ("pcie_width",), with_all_lanes, can_be_narrow),
    Rule("pcie-errors", Gpu, (), replays, counts_replays),
)
