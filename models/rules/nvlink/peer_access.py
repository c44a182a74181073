"""Peer access: GPUs must be able to access each other's memory if the hardware supports it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct

from ...facts.gpu import NO_ACCESS, Gpu, GpuPair
from ...facts.records import Evidence
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ...report import COHORT, Basis, Finding, Severity
from ..core.claims import Claim
from ..core.gpus import gpu_cohort, gpu_product
from ..core.rule import Rule
from .fabric_manager import explained, has_not_joined
from .interconnect_kind import is_guest, is_part, nvlinks, switched

_SWITCH = ("PIX", "PXB")  # paths that stay below one PCIe switch
_FEWEST = 3  # equal pairs with peer access that make a pair without it an exception
_MOST_NAMED = 4
_PCIE = "over PCIe"
_OF_BAR = (
    "a BAR that is small or above the addresses that the other GPU reaches, the IOMMU, or a kernel without HSA_AMD_P2P"
)
_BAR_FIRST = (
    "Enable large BAR (Resizable BAR) and above-4G decoding in the firmware setup and read the BARs: lspci -vv. Check "
    "the IOMMU: iommu=pt on the kernel's command line. Then read: grep HSA_AMD_P2P /boot/config-$(uname -r)."
)
_REFUSED = "the driver refuses peer access over PCIe: the chipset may not support it, or a setting is wrong"


class _Reason(Struct, frozen=True):
    """Why a pair has no peer access although it should. All pairs with the same reason give one finding."""

    text: str
    status: str
    field: str
    cause: str
    severity: Severity = "critical"
    confidence: Literal["certain", "likely"] = "certain"
    basis: Basis | None = None
    case: str = "over NVLink"
    remedy: str | None = None


def ends(snapshot: Snapshot, pair: GpuPair) -> tuple[Gpu, Gpu] | None:
    """The two GPUs of a pair. None: one is not known, is a slice, or failed."""
    names = (pair.a or pair.key.partition("-")[0], pair.b or pair.key.partition("-")[2])
    one, two = (snapshot.of(Gpu).get(name) for name in names)
    return (one, two) if one and two and not (is_part(one) or is_part(two) or one.failure or two.failure) else None


def is_whole_pair(snapshot: Snapshot, pair: GpuPair) -> bool:
    """Select pairs of two working, undivided GPUs."""
    return ends(snapshot, pair) is not None


def disabled(snapshot: Snapshot, pair: GpuPair) -> Iterator[Finding]:
    """Pairs of GPUs have no peer access although they should. One finding for all pairs with the same reason."""
    reasons = _reasons(snapshot)
    reason = reasons.get(pair.key)
    several = [key for key, other in reasons.items() if other == reason]
    if reason is None or pair.key != several[0]:
        return
    named = ", ".join(several[:_MOST_NAMED]) + (
        f" and {len(several) - _MOST_NAMED} more" * (len(several) > _MOST_NAMED)
    )
    total = len(snapshot.of(GpuPair))
    seen = pair.cites.get(reason.field)
    yield Finding(
        code="p2p-disabled",
        severity=reason.severity,
        confidence=reason.confidence,
        subject=_subject(snapshot, several),
        subject_name=named,
        fact=f"{reason.text}: {len(several)} of {total} pairs of GPUs",
        message=f"{reason.text}: {len(several)} of {total} pairs of GPUs ({named})",
        expected="ok",
        observed=reason.status,
        basis=reason.basis,
        cause=reason.cause,
        case=reason.case,
        remedy=reason.remedy,
        evidence=(seen or Evidence(f"{pair.key} {reason.field}", reason.status),),
    )


def _subject(snapshot: Snapshot, keys: list[str]) -> str:
    """A single pair; else the GPU that all pairs share; else the node."""
    if len(keys) == 1:
        return keys[0]
    shared = set.intersection(*(set(key.split("-")) for key in keys))
    return shared.pop() if len(shared) == 1 else "node"


@once_per_snapshot
def _reasons(snapshot: Snapshot) -> Mapping[str, _Reason]:
    """The reason of each pair without peer access, by pair key."""
    return {pair.key: reason for pair in snapshot.of(GpuPair).values() if (reason := _reason(snapshot, pair))}


def is_refused_for_a_reason(snapshot: Snapshot, pair: GpuPair) -> bool:
    """Whether disabled() reports the pair."""
    return pair.key in _reasons(snapshot)


def _reason(snapshot: Snapshot, pair: GpuPair) -> _Reason | None:
    both = ends(snapshot, pair)
    if both is None:
        return None
    for field in ("read", "write", "nvlink"):
        if getattr(pair, field) == "disabled by registry":
            text = "peer access is disabled by a setting of the driver (registry key)"
            cause = "NVreg_RegistryDwords or another option of the nvidia module, in /etc/modprobe.d"
            return _Reason(text, "disabled by registry", field, cause, case="registry")
    if pair.nvlink not in (None, "ok", "unknown") and _joined(snapshot, *both):
        cause = "the driver could not set the links up: the fabric's partition, or an error in its log"
        return _Reason(f"NVLink joins them and cannot be used ({pair.nvlink})", pair.nvlink, "nvlink", cause)
    for field in ("read", "write"):
        status = getattr(pair, field)
        if status not in (None, "ok", "unknown") and pair.nvlink == "ok" and _joined(snapshot, *both):
            cause = "the driver did not set the access up: an error in its log, or a process that holds a GPU"
            text = f"NVLink joins them and works, and the driver refuses to {field} over it ({status})"
            return _Reason(text, status, field, cause, "warning", "likely", "capability")
    if NO_ACCESS in (pair.read, pair.write) and both[0].name and both[0].name == both[1].name:
        # a GPU beside one in the processor, which is another product, is built without
        text, field = f"two {both[0].name} cannot access each other", "read" if pair.read == NO_ACCESS else "write"
        return _Reason(text, NO_ACCESS, field, _OF_BAR, "warning", "likely", "capability", _PCIE, _BAR_FIRST)
    return _over_pcie(snapshot, pair, *both)


def peer_claims(snapshot: Snapshot) -> Iterator[Claim]:
    """The claims of pairs on bare metal without peer access that disabled() does not report."""
    if is_guest(snapshot):
        return
    for pair in snapshot.of(GpuPair).values():
        both, statuses = ends(snapshot, pair), {pair.read, pair.write} - {None, "ok", "unknown"}
        known = gpu_product(snapshot, both[0]) if both else None
        if statuses and known and known.peers and pair.key not in _reasons(snapshot):
            yield Claim(group="states", subject=pair.key, quantity="peer access", observed=0, doubt=_REFUSED)


def _joined(snapshot: Snapshot, one: Gpu, two: Gpu) -> bool:
    """Whether active NVLinks join the two GPUs, and no other finding explains why they cannot be used."""
    if (
        not one.nvlinks
        or not two.nvlinks
        or explained(snapshot)
        or has_not_joined(snapshot, one)
        or has_not_joined(snapshot, two)
    ):
        return False
    direct = any(link.active and link.remote == two.address for link in nvlinks(snapshot, one).values() if two.address)
    return direct or bool(switched(snapshot, one) and switched(snapshot, two))


def _over_pcie(snapshot: Snapshot, pair: GpuPair, one: Gpu, two: Gpu) -> _Reason | None:
    """The reason for a pair of equal GPUs over PCIe, if the driver supports peer access for the product.

    The driver refuses unknown chipsets, which includes all guests. Below one switch the chipset does not matter
    (p2p_caps.c, chipset_pcie.c of open-gpu-kernel-modules).
    """
    status = pair.read if pair.read not in (None, "ok", "unknown") else pair.write
    if status in (None, "ok", "unknown"):
        return None
    known = gpu_product(snapshot, one)
    if not known or not known.peers or two not in gpu_cohort(snapshot, one):
        return None
    field = "read" if status == pair.read else "write"
    if status == "chipset not supported" and pair.path in _SWITCH and not is_guest(snapshot):
        text = "GPUs below one PCIe switch cannot reach each other (chipset not supported)"
        cause = "the switch, or a setting that hides it from the driver"
        return _Reason(text, status, field, cause, "warning", "likely", "capability", _PCIE)
    alike = [
        other for other in snapshot.of(GpuPair).values() if other.path == pair.path and _equal(snapshot, other, one)
    ]
    able = [other for other in alike if getattr(other, field) == "ok"]
    if pair.path and len(able) >= _FEWEST and 2 * len(able) > len(alike):
        text = f"peer access fails ({status}) where equal pairs on equal paths ({pair.path}) have it"
        return _Reason(text, str(status), field, "one of the GPUs, or its slot", "warning", "likely", COHORT, _PCIE)
    return None


def _equal(snapshot: Snapshot, pair: GpuPair, gpu: Gpu) -> bool:
    both = ends(snapshot, pair)
    return both is not None and all(one in gpu_cohort(snapshot, gpu) for one in both)


RULES = (Rule("p2p-disabled", GpuPair, ("read?", "write?", "nvlink?"), disabled, is_whole_pair),)
