"""Evidence for the number and the rate of active NVLinks and similar links, and the rule for links below their rate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from ...facts.gpu import Gpu, GpuLink, GpuPair
from ...facts.records import Evidence
from ...facts.units import as_gigabytes
from ...inventory.cohorts import strict_majority
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ...report import COHORT, Finding
from ..core.claims import EVIDENCE, Claim, Support
from ..core.gpus import gpu_cohort, gpu_evidence, gpu_name, gpu_product, gpus_by_name, place_of, subject_of
from ..core.rule import Rule
from .inactive_links import may_have, normal
from .interconnect_kind import is_alone, is_part

COUNT, RATE, XGMI = "active NVLinks", "rate of {} links", "active xGMI links"
_NAMES = {"nvlink": "NVLink", "c2c": "NVLink-C2C", "xgmi": "xGMI"}
_SAME = 0.9  # a driver reports the data rate or the signalling rate; they differ by 3 to 6 % (H100, B200)
_NO_LINK = "no NVLink is active: the card has no bridge, or all links of its bridge are down"


def nvlink_claims(snapshot: Snapshot) -> Iterator[Claim]:
    """The claims of all GPUs."""
    for gpu in snapshot.of(Gpu).values():
        if not is_part(gpu):
            yield from _count(snapshot, gpu)
            yield from _xgmi(snapshot, gpu)
            yield from (claim for kind in _NAMES if (claim := _rate_claims(snapshot).get((gpu.key, kind))))


@once_per_snapshot
def _rate_claims(snapshot: Snapshot) -> Mapping[tuple[str, str], Claim]:
    """The claims of the rates, by GPU and kind of link."""
    found: dict[tuple[str, str], Claim] = {}
    for cohort in gpus_by_name(snapshot).values():
        for kind in _NAMES:
            rates = {gpu.key: _rates(snapshot, gpu, kind) for gpu in cohort}
            every = [rate for several in rates.values() for rate in several.values()]
            # AMD's tools for links do not name the GPUs; all GPUs with xGMI of a machine are equal
            most = strict_majority(every) if cohort[0].name or kind == "xgmi" else None
            source = (
                f"{every.count(most)} of {len(every)} links of equal GPUs have {as_gigabytes(most)}" if most else ""
            )
            equal = [Support("cohort", _SAME * most, source)] if most else []
            found |= {
                (gpu.key, kind): _rate(snapshot, gpu, kind, rates[gpu.key], equal) for gpu in cohort if rates[gpu.key]
            }
    return found


def _count(snapshot: Snapshot, gpu: Gpu) -> Iterator[Claim]:
    """The number of active NVLinks. A GPU without an NVLink port has no claim, and one without peers needs no link."""
    ports = gpu.nvlinks or gpu.nvlinks_present or ((known := gpu_product(snapshot, gpu)) and known.links)
    if gpu.nvlinks is None or not ports or not may_have(snapshot, gpu) or (not gpu.nvlinks and is_alone(snapshot)):
        return
    wanted = normal(snapshot, gpu)
    supports = (Support(EVIDENCE[wanted.basis], wanted.count, wanted.source),) if wanted else ()
    yield Claim(
        group="links",
        subject=subject_of(gpu),
        quantity=COUNT,
        observed=gpu.nvlinks,
        supports=supports,
        doubt=None if gpu.nvlinks else _NO_LINK,
    )


def _xgmi(snapshot: Snapshot, gpu: Gpu) -> Iterator[Claim]:
    """The number of active xGMI links, which depends on the number of GPUs: only equal GPUs of the node show it."""
    counts = _xgmi_counts(snapshot)
    if gpu.key not in counts:
        return
    equal = [counts[one.key] for one in gpu_cohort(snapshot, gpu) if one.key in counts]
    most = strict_majority(equal)
    source = f"{equal.count(most)} of {len(equal)} equal GPUs have {most}" if most else ""
    yield Claim(
        group="links",
        subject=subject_of(gpu),
        quantity=XGMI,
        observed=counts[gpu.key],
        supports=(Support("cohort", most, source),) if most else (),
    )


@once_per_snapshot
def _xgmi_counts(snapshot: Snapshot) -> Mapping[str, int]:
    """The number of active xGMI links of each GPU. In a text without links, the number of GPUs that it reaches over
    xGMI. Empty if no GPU has such a link.
    """
    found: dict[str, int] = defaultdict(int)
    for key, link in snapshot.of(GpuLink).items():
        if link.kind == "xgmi" and link.active is not None:
            found[key.partition("/")[0]] += link.active
    has_links = bool(found)
    for pair in snapshot.of(GpuPair).values():  # a GPU without links, and a matrix of kinds alone
        for end in (pair.a, pair.b) if pair.kind else ():
            found[str(end)] += pair.kind == "xgmi" and not has_links
    if not any(found.values()):
        return {}
    return {key: count for key, count in found.items() if key in snapshot.of(Gpu)}


def fewer(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding]:
    """A GPU has fewer active xGMI links than most equal GPUs."""
    for claim in _xgmi(snapshot, gpu):
        if against := claim.contradicted:
            links = [one for one in snapshot.of(GpuLink).values() if one.key.startswith(f"{gpu.key}/")]
            down = [link for link in links if link.kind == "xgmi" and link.active is False]
            named = ", ".join(link.key.partition("/")[2] for link in down)
            yield Finding(
                code="nvlink-inactive",
                severity="critical",
                confidence="likely",
                subject=claim.subject,
                subject_name=gpu_name(snapshot, gpu),
                message=f"{gpu_name(snapshot, gpu)} has {claim.observed:.0f} active xGMI links"
                f" ({named} inactive); {against.source}"
                if links
                else f"{gpu_name(snapshot, gpu)} reaches {claim.observed:.0f} GPUs over xGMI; {against.source}",
                expected=against.least,
                observed=claim.observed,
                unit="links",
                basis=COHORT,
                expected_source=against.source,
                cause="a link that did not train: the GPU, the board, or the other end",
                location=place_of(snapshot, gpu),
                evidence=tuple(link.cites["active"] for link in down if "active" in link.cites),
            )


def has_xgmi(snapshot: Snapshot, gpu: Gpu) -> bool:
    """Select GPUs with xGMI links whose state was read."""
    return gpu.key in _xgmi_counts(snapshot)


def _rates(snapshot: Snapshot, gpu: Gpu, kind: str) -> dict[str, float]:
    """The rates of the active links, by the key of the link. NVML also has one rate for all NVLinks."""
    rates = _active(snapshot).get((gpu.key, kind), {})
    total = {"nvlink": gpu.nvlink_rate if gpu.nvlinks else None, "c2c": gpu.c2c_rate if gpu.c2c_links else None}
    return rates | ({gpu.key: common} if (common := total.get(kind)) else {})


@once_per_snapshot
def _active(snapshot: Snapshot) -> Mapping[tuple[str, str], dict[str, float]]:
    """The rates of the active links of each GPU and kind, by the key of the link."""
    found: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for key, link in snapshot.of(GpuLink).items():
        if link.kind and link.active and link.speed:
            found[key.partition("/")[0], link.kind][key] = link.speed
    return found


def _rate(snapshot: Snapshot, gpu: Gpu, kind: str, rates: Mapping[str, float], equal: list[Support]) -> Claim:
    """The lowest rate of the active links."""
    known, supports = gpu_product(snapshot, gpu), equal
    if known and known.link_kind == kind and known.link_rate:
        supports = [Support("product", _SAME * known.link_rate, f"{known.name} ({known.source})"), *equal]
    return Claim(
        group="links",
        subject=subject_of(gpu),
        quantity=RATE.format(_NAMES[kind]),
        observed=min(rates.values()),
        supports=tuple(sorted(supports, key=lambda one: -one.least)),
    )


def slower(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding]:
    """Active links are slower than the product's links, or than most links of equal GPUs."""
    for kind, name in _NAMES.items():
        claim = _rate_claims(snapshot).get((gpu.key, kind))
        if claim is None or (against := claim.contradicted) is None:
            continue
        slow = [key for key, rate in _rates(snapshot, gpu, kind).items() if rate < against.least]
        links = [key.partition("/")[2] for key in slow if "/" in key]
        usual = against.least / _SAME
        yield Finding(
            code="nvlink-slow",
            severity="warning",
            confidence="likely" if against.by == "cohort" else "certain",
            subject=subject_of(gpu),
            subject_name=gpu_name(snapshot, gpu),
            message=f"{gpu_name(snapshot, gpu)}: {', '.join(links) or 'its links'} ({name}) at "
            f"{as_gigabytes(claim.observed)} each way, not {as_gigabytes(usual)}; {against.source}",
            expected=usual,
            observed=claim.observed,
            unit="bytes_per_second",
            basis=COHORT if against.by == "cohort" else "capability",
            expected_source=against.source,
            cause="a link that trained at a lower rate: the GPU, the board or bridge, or the other end",
            location=place_of(snapshot, gpu),
            evidence=_evidence(snapshot, gpu, slow),
        )


def _evidence(snapshot: Snapshot, gpu: Gpu, keys: list[str]) -> tuple[Evidence, ...]:
    cites = [snapshot.of(GpuLink)[key].cites for key in keys if key in snapshot.of(GpuLink)]
    return (*(one["speed"] for one in cites if "speed" in one), *gpu_evidence(gpu, "nvlink_rate"))


def has_rate(snapshot: Snapshot, gpu: Gpu) -> bool:
    """Select GPUs with an active link whose rate was read. In dumps, only those whose rate can be compared."""
    if is_part(gpu) or not any(_rates(snapshot, gpu, kind) for kind in _NAMES):
        return False
    claims = [claim for kind in _NAMES if (claim := _rate_claims(snapshot).get((gpu.key, kind)))]
    return snapshot.origin != "dumps" or any(claim.supports for claim in claims)


RULES = (
    Rule("nvlink-slow", Gpu, (), slower, has_rate),
    Rule("nvlink-inactive", Gpu, ("GpuLink",), fewer, has_xgmi),
)
