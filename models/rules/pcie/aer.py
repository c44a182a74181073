"""Error counters of PCIe links (Advanced Error Reporting)."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.machine import Node, Pci
from ...facts.records import Observation
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.rule import Rule
from ..core.wording import function_name, location

# Correctable errors per lane and second that need a check: 8 a minute on the 16 lanes of a GPU
# (DCGM_LIMIT_MAX_PCIREPLAY_RATE in DCGM's health watch).
_CORRECTABLE = 8 / 60 / 16
_FEWEST = 8  # fewer errors give no reliable rate


def errors(snapshot: Snapshot, function: Pci) -> Iterator[Finding]:
    """AER counters: any uncorrected error of the last hour or since boot, correctable errors by their rate per lane."""
    for now in snapshot.observed.get(function.key, ()):
        if not now.value or not now.quantity.startswith("aer_"):
            continue
        earlier = [one for one in snapshot.earlier.get((now.about, now.quantity), ()) if one.at < now.at]
        kind = now.quantity.removeprefix("aer_")
        lanes = function.width or 1
        found = _uncorrected(now, earlier) if kind != "correctable" else correctable(snapshot, lanes, now, earlier)
        if found is None:
            continue
        text, before = found
        yield Finding(
            code="pcie-errors",
            kind="state" if kind == "correctable" else "event",
            severity="critical" if kind == "fatal" else "warning",
            subject=function.key,
            subject_name=function_name(snapshot, function),
            message=f"{function_name(snapshot, function)}: {text}",
            observed=now.value - (before.value if before else 0),
            unit="count",
            cause="the link's signal: seating, riser, retimer or cable; then the device",
            location=location(function, snapshot),
            evidence=(before.evidence, now.evidence) if before else (now.evidence,),
        )


def correctable(
    snapshot: Snapshot, lanes: int, now: Observation, earlier: list[Observation], what: str = "correctable errors"
) -> tuple[str, Observation | None] | None:
    """Text and earlier observation if the rate since the last reading, or since boot, is too high.

    The link repeats the packets of these errors, so only a high rate costs bandwidth. `what` names them in the text.
    """
    before = earlier[-1] if earlier and earlier[-1].value <= now.value else None  # a reset clears them
    start = before.at if before else snapshot.of(Node)["node"].booted
    limit = _CORRECTABLE * lanes
    new = now.value - (before.value if before else 0)
    if start is None or start >= now.at or new < _FEWEST or new / (now.at - start) <= limit:
        return None
    span = f"in {now.at - start:.0f} s" if before else f"in the {(now.at - start) / 3600:.0f} hours since boot"
    detail = f" ({now.evidence.text})" if now.quantity.startswith("aer_") else ""
    return f"{new:.0f} {what} {span}, more than {60 * limit:.2g} a minute{detail}", before


def _uncorrected(now: Observation, earlier: list[Observation]) -> tuple[str, Observation | None] | None:
    """Text and earlier observation if there are new errors.

    The comparison is with the oldest reading of the last hour, or the last reading before it, or zero at boot.
    """
    same = [one for one in earlier if one.value <= now.value]  # a reset clears them
    before = next((one for one in same if one.at >= now.at - 3600), same[-1] if same else None)
    new = now.value - (before.value if before else 0)
    if new <= 0:
        return None
    kind = "fatal" if now.quantity == "aer_fatal" else "uncorrected"
    since = f"in the last {now.at - before.at:.0f} s" if before else "since boot"
    return f"{new:.0f} {kind} errors {since} ({now.evidence.text})", before


RULES = (Rule("pcie-errors", Pci, ("aer_correctable?", "aer_nonfatal?", "aer_fatal?"), errors),)
