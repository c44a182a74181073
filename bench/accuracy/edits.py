"""Edits of a healthy node's records to those of a broken node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from msgspec.structs import replace

from linkgauge.models.facts.gpu import Gpu, GpuLink
from linkgauge.models.facts.machine import Pci
from linkgauge.models.facts.records import Evidence, Fact, Observation, Record
from linkgauge.models.inventory.snapshot import Snapshot
from linkgauge.probes.kernel_log.patterns import group_events

Edit: TypeAlias = Callable[[list[Record]], list[Record]]


def set_fields(kind: type[Fact], key: str, **changed: object) -> Edit:
    """Every source gives these values for the fact, each with its own citation.

    If no source has the fact, one is added.
    """
    cites = {name: Evidence("drawn", str(value)) for name, value in changed.items()}

    def edit(records: list[Record]) -> list[Record]:
        edited = [_with(one, changed) if type(one) is kind and one.key == key else one for one in records]
        return [*edited, kind(key=key, cites=cites, **changed)]

    return edit


def _with(fact: Fact, changed: Mapping[str, Any]) -> Fact:
    """The fact with changed values. Fields that it does not have stay empty."""
    own = {name: value for name, value in changed.items() if getattr(fact, name) is not None}
    cites = {name: Evidence(at.source, str(own.get(name, at.text))) for name, at in fact.cites.items()}
    return replace(fact, **own, cites=cites)


def lowered(kind: type[Fact], fact: Fact | None, **changed: object) -> list[Edit]:
    """The fact with these values, for the fields that some source reads."""
    known = {name: value for name, value in changed.items() if fact and getattr(fact, name) is not None}
    return [set_fields(kind, fact.key, **known)] if fact and known else []


def remove_fields(kind: type[Fact], key: str, *names: str) -> Edit:
    """No source gives these fields of the fact."""
    nothing: dict[str, Any] = dict.fromkeys(names)

    def edit(records: list[Record]) -> list[Record]:
        return [replace(one, **nothing) if type(one) is kind and one.key == key else one for one in records]

    return edit


def measured(about: str, quantity: str, value: float, at: float, unit: str = "count", busy: bool | None = None) -> Edit:
    """An observation replaces the former observations of this quantity."""
    new = Observation(
        about=about,
        quantity=quantity,
        unit=unit,
        value=value,
        at=at,
        busy=busy,
        evidence=Evidence("drawn", f"{quantity} {value:g}"),
    )

    def edit(records: list[Record]) -> list[Record]:
        kept = [
            one
            for one in records
            if not (isinstance(one, Observation) and (one.about, one.quantity, one.busy) == (about, quantity, busy))
        ]
        return [*kept, new]

    return edit


def logged(text: str, at: float) -> Edit:
    """The kernel logs a line."""
    return lambda records: [*records, *group_events([(at, text)], "dev/kmsg")]


def without(names: Iterable[str]) -> Edit:
    """Remove all records about these names and what belongs to them."""
    gone = set(names)

    def edit(records: list[Record]) -> list[Record]:
        return [one for one in records if not _is_of(one, gone)]

    return edit


def _is_of(one: Record, gone: set[str]) -> bool:
    if isinstance(one, Observation) and isinstance(one.about, str):
        return one.about.partition("/")[0] in gone
    if not isinstance(one, Fact):
        return False
    ends = {getattr(one, name) for name in one.__struct_fields__ if name in ("a", "b", "address", "gpu", "device")}
    return one.key.partition("/")[0] in gone or any(isinstance(end, str) and end in gone for end in ends)


def together(*edits: Edit) -> Edit:
    """All edits, one after the other."""

    def edit(records: list[Record]) -> list[Record]:
        for one in edits:
            records = one(records)
        return records

    return edit


def names_of(snapshot: Snapshot, address: str) -> list[str]:
    """The names of a PCI function and of its device."""
    device = snapshot.topology.find(address)
    return [address, *(device.aliases if device else ())]


def width(snapshot: Snapshot, address: str, lanes: int) -> Edit:
    """The link above a function is trained at this number of lanes. Both ends and the driver of a GPU report it."""
    port = snapshot.topology.link_below[address].a
    card = address.rpartition(".")[0]
    ends = [port, *(key for key in snapshot.of(Pci) if key.rpartition(".")[0] == card and snapshot.of(Pci)[key].width)]
    gpus = [gpu.key for gpu in snapshot.of(Gpu).values() if gpu.address == address and gpu.pcie_width]
    return together(
        *(set_fields(Pci, end, width=lanes) for end in ends), *(set_fields(Gpu, key, pcie_width=lanes) for key in gpus)
    )


def speed(snapshot: Snapshot, address: str, transfers: float, at: float) -> Edit:
    """The link above a function runs at this speed under load."""
    port = snapshot.topology.link_below[address].a
    ends = [set_fields(Pci, end, speed=transfers) for end in (port, address)]
    gpus = [gpu.key for gpu in snapshot.of(Gpu).values() if gpu.address == address and gpu.pcie_speed]
    seen = measured(address, "link_speed", transfers, at, "transfers_per_second", busy=True)
    return together(*ends, *(set_fields(Gpu, key, pcie_speed=transfers) for key in gpus), seen)


def inactive(snapshot: Snapshot, gpu: str, links: Iterable[str]) -> Edit:
    """NVLinks of a GPU are inactive."""
    down = list(links)
    fact = snapshot.of(Gpu).get(gpu)
    edited = [
        together(remove_fields(GpuLink, link, "remote", "remote_kind"), set_fields(GpuLink, link, active=False))
        for link in down
    ]
    if fact is not None and fact.nvlinks is not None:
        edited.append(set_fields(Gpu, gpu, nvlinks=fact.nvlinks - len(down)))
    return together(*edited)
