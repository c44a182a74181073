"""Names and locations of devices in findings, evidence of fields, and gaps that a rule reports."""

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


def function_name(snapshot: Snapshot, function: Pci) -> str:
    """The name of a PCI function in messages: "GPU gpu3 (NVIDIA Corporation GH100 [H100 SXM5 80GB])"."""
    device = snapshot.topology.find(function.key)
    aliases = " ".join(device.aliases) if device else ""
    kind = _KINDS.get(kind_of(function), "device")
    if device and device.kind.endswith("-port"):
        kind = device.kind.replace("-", " ").replace("stream port", "stream switch port")
    name = f" ({function.name})" if function.name else ""
    return f"{kind} {aliases or function.key}{name}"


def location(function: Pci, snapshot: Snapshot | None = None) -> dict[str, str | int | None]:
    """Where a technician finds the device: slot and label. Empty if not known.

    With `snapshot`, also the module number of a GPU on the baseboard. PCIe cards report 0 or 1. 0 is left out.
    """
    found: dict[str, str | int | None] = {}
    if function.slot or function.label:
        found = {"slot": function.slot, "label": function.label}
    gpus = snapshot.of(Gpu).values() if snapshot else ()
    places = [gpu.module_id for gpu in gpus if gpu.address == function.key and gpu.module_id]
    return {**found, "module_id": places[0]} if places else found


def cited(fact: Fact, *fields: str) -> tuple[Evidence, ...]:
    """The evidence of the fields, if the fact has it."""
    return tuple(fact.cites[name] for name in fields if name in fact.cites)


def missed(snapshot: Snapshot, what: str, subject: str) -> bool:
    """Whether a source has reported that it could not read `what` of `subject`."""
    return any((known.what, known.subject) == (what, subject) for known in snapshot.not_checked)


def gap(
    snapshot: Snapshot, what: str, subject: str, reason: Reason, detail: str, how: str | None = None
) -> Iterator[NotChecked]:
    """A NotChecked, unless a source has already reported that it could not read `what` of `subject`."""
    if not missed(snapshot, what, subject):
        yield NotChecked(what=what, subject=subject, reason=reason, detail=detail, how=how)


def titled(port: Fact) -> str:
    """The port in a message; a text without its name calls it "port"."""
    return f"the {port.key}" if port.key == "port" else f"port {port.key}"
