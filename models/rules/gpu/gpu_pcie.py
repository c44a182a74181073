"""What the driver of GPUs says of their PCIe links: those that the bus does not show, and replays."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...catalog.gpus import product_of
from ...facts.gpu import Gpu
from ...facts.machine import Node, Pci
from ...facts.units import as_transfers
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.like_gpus import called, equals, function_of, last, place_of, proof, subject_of, usual
from ..core.rule import Rule
from ..pcie.pcie import correctable, errors, made_up
from .pcie_events import errors as logged_errors

_LANES = 16
_GUEST = (
    "Report the GPU, with both numbers, to whoever runs the host; nothing inside a virtual machine mends it. In a "
    "cloud, stop and start the machine: it may get another host."
)


def _hidden(snapshot: Snapshot, gpu: Gpu) -> bool:
    """Whether the bus says nothing of the GPU's link: its driver does."""
    function = function_of(snapshot, gpu)
    return function is None or function.key not in snapshot.topology.link_below or made_up(snapshot, function)


def _busy(gpu: Gpu) -> bool:
    """In its fastest state, and with work: its link is then at the speed that it can have."""
    return gpu.performance_state == 0 and gpu.clock_reasons is not None and "idle" not in gpu.clock_reasons


def narrower(snapshot: Snapshot, gpu: Gpu) -> float | None:
    """The width of most equal GPUs of the node, where this one has less."""
    most = usual(other.pcie_width for other in equals(snapshot, gpu))
    return most if most and gpu.pcie_width and gpu.pcie_width < most else None


def slower(snapshot: Snapshot, gpu: Gpu) -> float | None:
    """The speed of most equal GPUs of the node that are at work, where this one is at work and has less."""
    most = usual(other.pcie_speed for other in equals(snapshot, gpu) if _busy(other))
    return most if _busy(gpu) and most and gpu.pcie_speed and gpu.pcie_speed < most else None


def _lanes(value: float) -> str:
    return f"x{value:.0f}"


_BELOW = (  # code, field, unit, how it is found, how it is written
    ("pcie-link-narrow", "pcie_width", "lanes", narrower, _lanes),
    ("pcie-link-slow", "pcie_speed", "transfers_per_second", slower, as_transfers),
)
_Found = tuple[str, str, str, Callable[[Snapshot, Gpu], "float | None"], Callable[[float], str]]


def _below(row: _Found) -> Rule:
    """The rule for what a driver says of links that the bus does not show: below most equal GPUs of the node.

    The GPU's own maximum says nothing here: an A10G or a T4 of 16 lanes in a slot of eight is as it should be. Cards
    of one kind in slots of unequal width may be meant so: critical only in guests and where GPUs are soldered on.
    """
    code, field, unit, find, word = row

    def some(snapshot: Snapshot, node: Node) -> bool:
        return any(getattr(gpu, field) is not None and _hidden(snapshot, gpu) for gpu in snapshot.of(Gpu).values())

    def evaluate(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
        for gpu in snapshot.of(Gpu).values():
            most = find(snapshot, gpu) if _hidden(snapshot, gpu) else None
            if most is None:
                continue
            product = product_of(gpu, snapshot.of(Pci))
            alike = bool(node.virtual) or bool(product and product.fabric)
            is_ = getattr(gpu, field)
            yield Finding(
                code=code,
                severity="critical" if alike else "warning",
                confidence="likely",
                subject=subject_of(gpu),
                subject_name=called(snapshot, gpu),
                message=f"{called(snapshot, gpu)} runs at {word(is_)}, most equal GPUs of this node at {word(most)}",
                expected=most,
                observed=is_,
                unit=unit,
                basis="kin",
                expected_source="most equal GPUs of this node, as their driver says",
                cause="its link did not train as theirs: seating, slot, riser or cable",
                remedy=_GUEST if node.virtual else None,
                location=place_of(snapshot, gpu),
                evidence=proof(gpu, field),
            )

    return Rule(code, Node, (), evaluate, some)


def counts_replays(snapshot: Snapshot, gpu: Gpu) -> bool:
    """GPUs whose driver counts them."""
    return last(snapshot, gpu, "pcie_replay") is not None


def replays(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding]:
    """The link repeats packets more often than a good one. Where the bus or the log tells of errors, that is said."""
    now, function = last(snapshot, gpu, "pcie_replay"), function_of(snapshot, gpu)
    if now is None or (function and (any(errors(snapshot, function)) or _logged(snapshot, function))):
        return
    earlier = [one for one in snapshot.earlier.get((now.about, now.quantity), ()) if one.at < now.at]
    told = correctable(snapshot, gpu.pcie_width or (function and function.width) or _LANES, now, earlier, "replays")
    if told is None:
        return
    text, before = told
    yield Finding(
        code="pcie-errors",
        severity="warning",
        subject=subject_of(gpu),
        subject_name=called(snapshot, gpu),
        message=f"{called(snapshot, gpu)}: {text}",
        observed=now.value - (before.value if before else 0),
        unit="count",
        cause="the link's signal: seating, riser, retimer or cable; then the device",
        location=place_of(snapshot, gpu),
        evidence=(before.evidence, now.evidence) if before else (now.evidence,),
    )


def _logged(snapshot: Snapshot, function: Pci) -> bool:
    node = snapshot.of(Node)["node"]
    return any(finding.subject == function.key for finding in logged_errors(snapshot, node))


RULES = (
    *(_below(row) for row in _BELOW),
    Rule("pcie-errors", Gpu, (), replays, counts_replays),
)
