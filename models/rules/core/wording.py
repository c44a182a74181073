"""How findings speak of things, and gaps that a rule found."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.gpu import Gpu
from ...facts.machine import Pci
from ...facts.pci_classes import kind_of
from ...facts.reason import Reason
from ...facts.records import Evidence, Fact, NotChecked
from ...inventory.snapshot import Snapshot

_KINDS = {
    "gpu": "GPU",
    "nic": "NIC",
    "nvme": "NVMe disk",
    "nvswitch": "NVSwitch",
    "bridge": "bridge",
    "storage": "disk",
}


def named(snapshot: Snapshot, function: Pci) -> str:
    """A function as people speak of it: "GPU gpu3 (NVIDIA Corporation GH100 [H100 SXM5 80GB])"."""
    device = snapshot.topology.find(function.key)
    aliases = " ".join(device.aliases) if device else ""
    kind = _KINDS.get(kind_of(function), "device")
    if device and device.kind.endswith("-port"):
        kind = device.kind.replace("-", " ").replace("stream port", "stream switch port")
    name = f" ({function.name})" if function.name else ""
    return f"{kind} {aliases or function.key}{name}"


def location(function: Pci, snapshot: Snapshot | None = None) -> dict[str, str | int | None]:
    """What a technician looks for; empty where nobody says. With `case`, of a GPU its place on the baseboard too.

    PCIe cards call theirs 0 or 1, which says nothing.
    """
    found: dict[str, str | int | None] = {}
    if function.slot or function.label:
        found = {"slot": function.slot, "label": function.label}
    gpus = snapshot.of(Gpu).values() if snapshot else ()
    places = [gpu.module_id for gpu in gpus if gpu.address == function.key and gpu.module_id]
    return {**found, "module_id": places[0]} if places else found


def cited(fact: Fact, *fields: str) -> tuple[Evidence, ...]:
    """Where the fields stood, of those of which that is known."""
    return tuple(fact.cites[name] for name in fields if name in fact.cites)


def missed(snapshot: Snapshot, what: str, subject: str) -> bool:
    """Whether a source has said that it could not read that."""
    return any((known.what, known.subject) == (what, subject) for known in snapshot.not_checked)


def gap(
    snapshot: Snapshot, what: str, subject: str, reason: Reason, detail: str, how: str | None = None
) -> Iterator[NotChecked]:
    """A NotChecked, unless a source has said already that it could not read that."""
    if not missed(snapshot, what, subject):
        yield NotChecked(what=what, subject=subject, reason=reason, detail=detail, how=how)
