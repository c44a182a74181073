"""How well a report is supported: hardware that no source covers, and values without independent evidence."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import get_args

from ..facts.gpu import Driver, Gpu
from ..facts.pci_classes import NVIDIA
from ..facts.reason import Reason
from ..facts.records import NotChecked
from ..facts.registry import kind_name
from ..inventory.snapshot import Snapshot
from ..report import Corroboration, Coverage, CoverageGroup, Uncorroborated
from ..rules import CLAIMS
from ..rules.core.claims import Claim
from ..rules.gpu.missing import whole

_TRUST: tuple[Corroboration, ...] = get_args(Corroboration)  # most trusted first
_SHOWN = 4  # values that a gap names


def coverage(snapshot: Snapshot) -> Coverage:
    """Count links, counts and states by their weakest evidence, and list those with a value that has none."""
    weakest: dict[tuple[CoverageGroup, str], int] = {}  # index in _TRUST
    bare: dict[tuple[CoverageGroup, str], list[Claim]] = defaultdict(list)
    for claims in CLAIMS:
        for claim in claims(snapshot):
            thing, by = (claim.group, claim.subject), _by(claim)
            weakest[thing] = max(weakest.get(thing, 0), _TRUST.index(by) if by else 0)
            if by is None:
                bare[thing].append(claim)
    counts: dict[CoverageGroup, Counter[Corroboration]] = defaultdict(Counter)
    without: list[Uncorroborated] = []
    for thing, trust in weakest.items():
        group, subject = thing
        if several := bare.get(thing):
            why = next((claim.doubt for claim in several if claim.doubt), _alone(snapshot))
            without.append(Uncorroborated(subject, group, tuple(claim.quantity for claim in several), why))
        else:
            counts[group][_TRUST[trust]] += 1
    return Coverage({group: dict(sorted(by.items())) for group, by in counts.items()}, tuple(without))


def _by(claim: Claim) -> Corroboration | None:
    supported = claim.corroborated
    if supported:
        return supported.by
    return claim.supports[0].by if claim.contradicted else None


def uncovered(snapshot: Snapshot) -> Iterator[NotChecked]:
    """GPU drivers that no source reads, and device counts without an expected value. Dumps are not checked for this."""
    gpus = snapshot.functions("gpu")
    if snapshot.origin == "dumps" or not gpus:
        return
    bound = [gpu for gpu in gpus if gpu.vendor == NVIDIA and gpu.driver == "nvidia"]
    refused = any(lost.what in ("Gpu", "Driver") for lost in snapshot.not_checked)
    if bound and not (snapshot.of(Gpu) or "nvidia" in snapshot.of(Driver) or refused):
        why = "no source reads the GPUs' driver: NVLink, memory errors, clocks and processes were not checked"
        yield NotChecked(
            what="Gpu", subject="node", reason=Reason.DRIVER, detail=why, how="nvidia-smi -q; nvidia-smi nvlink -s"
        )
    unread = any(lost.what in ("Node.product", "Node.vendor") for lost in snapshot.not_checked)
    if len(gpus) > 1 and whole(snapshot) is None and not unread:
        why = f"{len(gpus)} were seen, and {_silent(snapshot)} how many there should be"
        yield NotChecked(
            what="number of GPUs",
            subject="node",
            reason=Reason.NO_EXPECTATION,
            detail=why,
            how="describe the machine in the site file",
        )


def _alone(snapshot: Snapshot) -> str:
    known = snapshot.machine
    first = f"the machine type {known.name} has no value for it" if known else "no machine type"
    return f"{first}, no three equal devices in equal positions, no earlier state"


def _silent(snapshot: Snapshot) -> str:
    known = snapshot.machine
    if known is None:
        return "no machine type says"
    if known.gpus is None:
        return f"the machine type {known.name} does not say"
    return f"only the name of the GPUs matches the machine type {known.name}, so it does not say"


def unjudged_text(snapshot: Snapshot) -> NotChecked:
    """The gap of a text with known lines in which no check had what it needs: the values that it has."""
    facts = ((kind, fact) for kind, some in snapshot.facts.items() for fact in some.values())
    cited = sorted({f"{kind_name(kind)}.{name}" for kind, fact in facts for name in fact.cites})
    cited += sorted({one.quantity for one in snapshot.observations})
    more = f" and {len(cited) - _SHOWN} more" if len(cited) > _SHOWN else ""
    has = f"has {', '.join(cited[:_SHOWN])}{more} only, and no check needs just that" if cited else "has no whole value"
    return NotChecked(
        what="dump",
        subject="node",
        reason=Reason.INCOMPLETE,
        detail=f"the lines are of a known tool, and what was read of them {has}",
        how="copy the whole output, with its heading and its command",
    )
