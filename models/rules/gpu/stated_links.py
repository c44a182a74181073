"""PCIe links of GPUs in texts: fewer lanes or a lower speed than somebody wrote, or than the GPU supports.

Only for links that the PCI bus does not show, and that no equal GPUs of the text show to be slow (gpu_pcie.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...facts.gpu import Gpu
from ...facts.reason import Reason
from ...facts.records import NotChecked
from ...facts.units import as_transfers
from ...inventory.snapshot import Snapshot
from ...report import Finding, Severity
from ..core.gpus import gpu_cohort, gpu_evidence, gpu_name, gpu_product, place_of, subject_of
from ..core.rule import Rule
from .gpu_pcie import below_evidence, busy, driver_claim, has_equal, is_hidden, narrower, shows_speed, slower

_FEW = 4  # times as many lanes as there are
_CONSUMERS = ("GeForce", "Laptop")
_WANTED = "the text says what it should have"


def below_wanted(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding]:
    """Somebody wrote that the link should have more lanes: "x4 instead of x16"."""
    if gpu.pcie_width and gpu.pcie_wanted_width and gpu.pcie_width < gpu.pcie_wanted_width:
        yield _narrow(snapshot, gpu, gpu.pcie_wanted_width, _WANTED, "critical")


def slower_than_wanted(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding]:
    """Somebody wrote that the link should be faster: "stuck at Gen1, the others are at Gen4". It may be at rest."""
    now, wanted = gpu.pcie_speed, gpu.pcie_wanted_speed
    if now and wanted and now < wanted:
        yield Finding(
            code="pcie-link-slow",
            severity="warning",
            confidence="possible",
            subject=subject_of(gpu),
            subject_name=gpu_name(snapshot, gpu),
            message=f"{gpu_name(snapshot, gpu)} runs at {as_transfers(now)} of {as_transfers(wanted)}; {_WANTED}",
            expected=wanted,
            observed=now,
            unit="transfers_per_second",
            basis="site",
            expected_source=_WANTED,
            cause="its link did not train as it should, or the GPU was idle: it lowers its speed at rest",
            location=place_of(snapshot, gpu),
            evidence=gpu_evidence(gpu, "pcie_speed", "pcie_wanted_speed"),
        )


def slow_at_work(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding]:
    """A GPU that works has a link that is slower than its maximum in this machine. A link at rest may be slower."""
    now, most = gpu.pcie_speed or 0.0, gpu.pcie_max_speed or 0.0
    if not (busy(gpu) and now < most) or gpu.pcie_wanted_speed or slower(snapshot, gpu):
        return
    yield Finding(
        code="pcie-link-slow",
        severity="warning",
        confidence="likely",
        subject=subject_of(gpu),
        subject_name=gpu_name(snapshot, gpu),
        fact=f"works, and its link runs at {as_transfers(now)} of {as_transfers(most)}",
        message=f"{gpu_name(snapshot, gpu)} works, and its link runs at {as_transfers(now)} of {as_transfers(most)}",
        expected=most,
        observed=now,
        unit="transfers_per_second",
        basis="capability",
        expected_source="the highest speed that its driver reports for this machine",
        cause="its link did not train as it should: seating, slot, riser or cable",
        location=place_of(snapshot, gpu),
        evidence=gpu_evidence(gpu, "pcie_speed", "pcie_max_speed", "performance_state", "utilization"),
    )


def far_narrower(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding]:
    """In a dump: a quarter or less of the lanes that the GPU has, and nothing else says how its slot is wired.

    Half the lanes are usual for cards in servers. Four lanes are usual for consumers' cards and in laptops.
    """
    width, most = gpu.pcie_width or 0, gpu.pcie_max_width or 0
    if not width or _FEW * width > most or _is_judged(snapshot, gpu):
        return
    usual = width > 1 and any(word in (gpu.name or "") for word in _CONSUMERS)
    yield Finding(
        code="pcie-link-narrow",
        severity="info" if usual else "warning",
        confidence="possible",
        subject=subject_of(gpu),
        subject_name=gpu_name(snapshot, gpu),
        fact=f"runs on x{width} of x{most}",
        message=f"{gpu_name(snapshot, gpu)} runs at x{width}, the GPU supports x{most}",
        expected=most,
        observed=width,
        unit="lanes",
        basis="capability",
        expected_source="the largest width that its driver reports",
        cause="a slot or riser that has only these lanes, or a link that did not train as it should",
        location=place_of(snapshot, gpu),
        evidence=gpu_evidence(gpu, "pcie_width", "pcie_max_width"),
    )


def below_own(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding | NotChecked]:
    """A link that only the driver shows, of a GPU that nothing can be compared with, has fewer lanes than the GPU.

    Many slots have fewer lanes than the cards in them. So it is a warning only if the text does not name the product,
    or if half of the equal GPUs have all lanes: most of them would decide (gpu_pcie.py).
    """
    width, most = gpu.pcie_width or 0, gpu.pcie_max_width or 0
    if not width < most < _FEW * width or _is_judged(snapshot, gpu):
        return  # far_narrower() reports fewer lanes
    whole = any(other.pcie_width == most for other in gpu_cohort(snapshot, gpu))
    if driver_claim(snapshot, gpu, width).contradicted or (has_equal(snapshot, gpu) and not whole):
        return
    if whole:
        yield _narrow(snapshot, gpu, most, "an equal GPU of the text has them all", "warning")
        return
    severity: Severity = "info" if gpu.name else "warning"
    yield _narrow(snapshot, gpu, most, "the GPU supports these lanes; its slot may have fewer", severity)
    if gpu.name and not any(word in gpu.name for word in _CONSUMERS):
        yield NotChecked(
            what="Gpu.pcie_width",
            subject=subject_of(gpu),
            reason=Reason.NOT_MEASURED,
            detail=f"the link has x{width} of x{most}; the text does not say how many lanes its slot has",
            how="lspci -vv of the GPU and of the port above it",
        )


def _is_judged(snapshot: Snapshot, gpu: Gpu) -> bool:
    """Whether another rule compares the width: with what somebody wrote, with equal GPUs, or with other evidence."""
    return bool(gpu.pcie_wanted_width or narrower(snapshot, gpu) or any(below_evidence(snapshot, gpu)))


def _narrow(snapshot: Snapshot, gpu: Gpu, lanes: int, source: str, severity: Severity) -> Finding:
    """The finding of a link with fewer lanes than a text says."""
    return Finding(
        code="pcie-link-narrow",
        severity=severity,
        confidence="likely" if severity == "critical" else "possible",
        subject=subject_of(gpu),
        subject_name=gpu_name(snapshot, gpu),
        fact=f"runs on x{gpu.pcie_width} of x{lanes}",
        message=f"{gpu_name(snapshot, gpu)} runs at x{gpu.pcie_width} of x{lanes}; {source}",
        expected=lanes,
        observed=gpu.pcie_width,
        unit="lanes",
        basis="site" if gpu.pcie_wanted_width else "capability",
        expected_source=source,
        cause="its link did not train as it should: seating, slot, riser or cable; or a slot with fewer lanes",
        location=place_of(snapshot, gpu),
        evidence=gpu_evidence(gpu, "pcie_width", "pcie_max_width", "pcie_wanted_width"),
        remedy="Compare with an equal machine; lspci -vv shows the lanes of the slot." if severity == "info" else None,
    )


def _states(*fields: str) -> Callable[[Snapshot, Gpu], bool]:
    """A rule's `where`: a dump has these fields, and only the driver or the text shows the link."""

    def where(snapshot: Snapshot, gpu: Gpu) -> bool:
        stated = snapshot.origin == "dumps" and all(getattr(gpu, name) is not None for name in fields)
        known = stated and is_hidden(snapshot, gpu) and gpu.virtualization != "vGPU"
        return known and not _is_integrated(snapshot, gpu)

    return where


def _is_integrated(snapshot: Snapshot, gpu: Gpu) -> bool:
    """Whether the GPU shares the memory of its processor (GB10): no slot is between them, and the driver shows x1."""
    shown = [gpu] if gpu.name else snapshot.of(Gpu).values()
    return any((product := gpu_product(snapshot, one)) and product.memory_kind == "lpddr" for one in shown)


_has_speeds = _states("pcie_speed", "pcie_max_speed")


def _shows_its_speed(snapshot: Snapshot, gpu: Gpu) -> bool:
    """Select GPUs that work or have the highest speed: the speed of a GPU at rest says nothing."""
    return _has_speeds(snapshot, gpu) and shows_speed(snapshot, gpu)


RULES = (
    Rule("pcie-link-narrow", Gpu, (), below_wanted, _states("pcie_width", "pcie_wanted_width")),
    Rule("pcie-link-slow", Gpu, (), slower_than_wanted, _states("pcie_speed", "pcie_wanted_speed")),
    Rule("pcie-link-slow", Gpu, (), slow_at_work, _shows_its_speed),
    Rule("pcie-link-narrow", Gpu, (), far_narrower, _states("pcie_width", "pcie_max_width")),
    Rule("pcie-link-narrow", Gpu, (), below_own, _states("pcie_width", "pcie_max_width")),
)
