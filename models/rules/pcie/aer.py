"""Error counters of PCIe links (Advanced Error Reporting)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec.structs import replace

from ...facts.machine import Pci
from ...facts.reason import Reason
from ...facts.records import Evidence, NotChecked, Observation
from ...inventory.cohorts import cohort_of
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ...report import Finding
from ..core.counter_windows import HOUR, Limit, Rise, far_above, latest_counter, rises, too_many
from ..core.rule import Rule
from ..core.wording import cited, function_name, location

# Correctable errors per lane and second that need a check: 8 a minute on the 16 lanes of a GPU
# (DCGM_LIMIT_MAX_PCIREPLAY_RATE in DCGM's health watch).
_CORRECTABLE = 8 / 60 / 16
_FEWEST = 8  # fewer errors give no reliable rate
_ALONE = 500  # errors of one device while most equal devices have hardly any
_MOST_CITED = 6  # functions
_ANY = Limit(fewest=1, per_hour=0)


def errors(snapshot: Snapshot, function: Pci) -> Iterator[Finding]:
    """AER counters: any uncorrected error of the last day or since boot, correctable errors by their rate per lane."""
    for now in snapshot.observed.get(function.key, ()):
        if not now.value or not now.quantity.startswith("aer_"):
            continue
        kind = now.quantity.removeprefix("aer_")
        found = _correctable(snapshot, function, now) if kind == "correctable" else _uncorrected(snapshot, now)
        if found is None:
            continue
        text, rise = found
        yield Finding(
            code="pcie-errors",
            kind="state" if kind == "correctable" else "event",
            severity="critical" if kind == "fatal" else "warning",
            subject=function.key,
            subject_name=function_name(snapshot, function),
            message=f"{function_name(snapshot, function)}: {text} ({now.evidence.text})",
            observed=rise.new if rise else now.value,
            unit="count",
            cause="the link's signal: seating, riser, retimer or cable; then the device",
            location=location(function, snapshot),
            evidence=rise.evidence if rise else (now.evidence,),
        )


def repeated(
    snapshot: Snapshot, lanes: int, now: Observation, equal: Callable[[], Iterable[Observation | None]], what: str
) -> tuple[str, Rise] | None:
    """Text and window if packets were repeated too often for the lanes, or far more often than on equal links.

    Only a high rate costs bandwidth. `what` names the errors in the text. `equal`: as in `far_above`.
    """
    limit = Limit(fewest=_FEWEST, per_hour=_CORRECTABLE * lanes * HOUR, outlier=_ALONE)
    rise = too_many(snapshot, now, limit)
    if rise:
        return f"{rise.new:,.0f} {what} {rise.span}, more than {limit.per_hour / 60:.2g} a minute", rise
    if now.value < limit.outlier:
        return None
    apart = far_above(snapshot, now, list(equal()), limit)
    if apart is None:
        return None
    rise, median = apart
    return f"{rise.new:,.0f} {what} {rise.span}; equal devices have {median:.3g}", rise


def _correctable(snapshot: Snapshot, function: Pci, now: Observation) -> tuple[str, Rise] | None:
    def equal() -> Iterator[Observation]:
        for other in cohort_of(snapshot, function):
            counted = latest_counter(snapshot, other.key, now.quantity) if other.key != function.key else None
            if counted:
                yield counted

    return repeated(snapshot, function.width or 1, now, equal, "correctable errors")


def _uncorrected(snapshot: Snapshot, now: Observation) -> tuple[str, Rise | None] | None:
    """Text and window if there are new errors. If the time of the boot is not known, all errors are new."""
    kind = "fatal" if now.quantity == "aer_fatal" else "uncorrected"
    rise = too_many(snapshot, now, _ANY)
    if rise:
        return f"{_errors(rise.new, kind)} {rise.span}", rise
    return None if any(rises(snapshot, now)) else (f"{_errors(now.value, kind)} since boot", None)


def _errors(count: float, kind: str) -> str:
    return f"{count:,.0f} {kind} error{'' if count == 1 else 's'}"


def has_counters(snapshot: Snapshot, function: Pci) -> bool:
    """Select functions. In dumps, only those with a counter: without one, nothing could show an error."""
    if snapshot.origin != "dumps":
        return True
    return any(one.quantity.startswith("aer_") for one in snapshot.observed.get(function.key, ()))


def shows_status(snapshot: Snapshot, function: Pci) -> bool:
    """Select functions of dumps with status bits of uncorrectable errors."""
    return snapshot.origin == "dumps" and bool(function.uncorrected)


def status(snapshot: Snapshot, function: Pci) -> Iterator[Finding | NotChecked]:
    """Status bits of uncorrectable errors are set. Nothing says when the errors occurred, so they only inform."""
    yield _unknown_time("Pci.aer_nonfatal", function)
    cause = "the link's signal: seating, riser, retimer or cable; then the device"
    yield _bits(snapshot, function, "uncorrectable", function.uncorrected or (), cited(function, "uncorrected"), cause)


def shows_corrected(snapshot: Snapshot, function: Pci) -> bool:
    """Select functions of dumps with status bits of corrected errors alone."""
    return snapshot.origin == "dumps" and bool(function.corrected) and not function.uncorrected


@once_per_snapshot
def _with_corrected(snapshot: Snapshot) -> Sequence[Pci]:
    return [one for one in snapshot.of(Pci).values() if shows_corrected(snapshot, one)]


def corrected(snapshot: Snapshot, function: Pci) -> Iterator[Finding | NotChecked]:
    """One finding for all functions whose links had errors since the bits were cleared, at boot or long ago. If the
    text shows nothing else of the link, a NotChecked, too.
    """
    every = _with_corrected(snapshot)
    if function.width is None:
        yield _unknown_time("Pci.aer_correctable", function)
    if function is every[0]:
        more = f", and those of {len(every) - 1} more functions" if len(every) > 1 else ""
        cites = tuple(cite for one in every[:_MOST_CITED] for cite in cited(one, "corrected"))
        cause = "single errors when the link trained; if the bits come back soon after they were cleared, its signal"
        found = _bits(snapshot, function, "corrected", function.corrected or (), cites, cause)
        remedy = "Clear the bits (setpci), and look again after a job: bits that stay clear need nothing."
        yield replace(found, message=f"{found.message}{more}", remedy=remedy)


def _unknown_time(what: str, function: Pci) -> NotChecked:
    return NotChecked(
        what=what,
        subject=function.key,
        reason=Reason.INCOMPLETE,
        detail="status bits of errors are set, and the text does not say when the errors occurred",
        how="dmesg -T | grep -i aer, and grep . /sys/bus/pci/devices/*/aer_dev_*",
    )


def _bits(
    snapshot: Snapshot, function: Pci, kind: str, names: tuple[str, ...], cites: tuple[Evidence, ...], cause: str
) -> Finding:
    name = "a PCI function" if function.vendor is None else function_name(snapshot, function)
    return Finding(
        code="pcie-errors",
        kind="event",
        severity="info",
        subject=function.key,
        subject_name=name,
        message=f"{name}: status bits of {kind} errors are set since they were last cleared: {', '.join(names)}",
        observed=", ".join(names),
        cause=cause,
        location=location(function, snapshot),
        evidence=cites,
    )


RULES = (
    Rule("pcie-errors", Pci, ("aer_correctable?", "aer_nonfatal?", "aer_fatal?"), errors, has_counters),
    Rule("pcie-errors", Pci, ("uncorrected",), status, shows_status),
    Rule("pcie-errors", Pci, ("corrected",), corrected, shows_corrected),
)
