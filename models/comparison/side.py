"""One side of a comparison: the devices, settings and services of a node, with their values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct

from ..facts.gpu import Gpu
from ..facts.machine import Pci
from ..facts.records import Fact
from ..graph.topology import Device, Topology
from ..inventory.snapshot import Snapshot
from ..report import Report
from ..rules.pcie.pcie import rests
from .fields import COMPARED, Field

Value: TypeAlias = "float | str | bool | tuple[str, ...]"

# A report does not say whether other links rest: those of idle GPUs have a lower speed (rules/pcie/pcie.py, `rests`).
NEVER_REST = frozenset({"nic", "nvme", "storage", "port", "netdev"})
TRAINED = Field("trained rate", "links", "bytes_per_second")
NVLINKS = Field("active NVLinks", "links", "links")
_FIRMWARE = Field("firmware", "versions")


class Item(Struct, frozen=True):
    """A device, setting or service."""

    kind: str  # of the topology ("gpu", "nic"), else the name of the fact ("Setting")
    name: str
    values: Mapping[Field, Value]
    product: str = ""
    uuid: str | None = None
    place: str | None = None  # slot or module


class Side(Struct, frozen=True):
    """A node at one time. `complete`: the facts were read; a report has neither settings nor most versions."""

    report: Report
    items: Mapping[str, Item]  # by id of the topology, else by kind and key
    complete: bool


def of_report(report: Report) -> Side:
    """What a report says about its node."""
    return Side(report, items_of(report.topology), complete=False)


def items_of(topology: Topology) -> Mapping[str, Item]:
    """The devices of a topology, by id."""
    values = _values_of(topology)
    return {one.id: _item(one, values[one.id]) for one in topology.devices}


def of_snapshot(snapshot: Snapshot, report: Report) -> Side:
    """What was read of a node."""
    values: dict[str, dict[Field, Value]] = defaultdict(dict, _values_of(snapshot.topology))
    others: dict[str, Item] = {}
    for fact, fields in _facts(snapshot):
        device = snapshot.topology.find(fact.key)
        key = device.id if device else f"{type(fact).__name__} {fact.key}"
        if not device:
            others[key] = Item(type(fact).__name__, fact.key, values[key])
        values[key].update(_known(snapshot, fact, fields))
        if isinstance(fact, Gpu) and fact.vbios is not None:
            values[key].pop(_FIRMWARE, None)  # the VBIOS is the firmware of a GPU
    devices = {one.id: _item(one, values[one.id]) for one in snapshot.topology.devices}
    return Side(report, {**devices, **others}, complete=True)


def _facts(snapshot: Snapshot) -> Iterator[tuple[Fact, Mapping[str, Field]]]:
    for kind, fields in COMPARED.items():
        for fact in snapshot.of(kind).values():
            yield fact, fields


def _known(snapshot: Snapshot, fact: Fact, fields: Mapping[str, Field]) -> Iterator[tuple[Field, Value]]:
    """The fields that are known. The speed of a link that may rest says nothing."""
    resting = isinstance(fact, Pci) and rests(snapshot, fact)
    for name, field in fields.items():
        value = getattr(fact, name)
        if value is not None and not (name == "speed" and resting):
            yield field, value


def _item(device: Device, values: Mapping[Field, Value]) -> Item:
    place = device.slot or (None if device.module_id is None else f"module {device.module_id}")
    name = device.aliases[0] if device.aliases else device.id
    return Item(device.kind, name, values, device.name, device.uuid, place)


def _values_of(topology: Topology) -> Mapping[str, dict[Field, Value]]:
    """The values that the topology has, by device."""
    values: dict[str, dict[Field, Value]] = {one.id: {} for one in topology.devices}
    for device in topology.devices:
        if device.firmware:
            values[device.id][_FIRMWARE] = device.firmware
    for link in topology.links:
        if link.trained is not None and link.b in values and topology.kind(link.b) in NEVER_REST:
            values[link.b][TRAINED] = link.trained
        if link.kind == "nvlink" and link.trained is not None and link.a in values:
            values[link.a][NVLINKS] = int(values[link.a].get(NVLINKS, 0)) + (link.trained > 0)  # type: ignore[arg-type]
    return values
