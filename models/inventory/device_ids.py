"""Identity of a device beyond its node, for other programs: UUID, position, firmware version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from ..facts.gpu import Gpu
from ..facts.machine import Nvme, Pci, Rdma
from ..facts.merge import Facts, of
from ..graph.topology import Device


def identified(devices: Iterable[Device], facts: Facts) -> Iterator[Device]:
    """The devices with the values that drivers and firmware report for them."""
    functions = of(facts, Pci)
    known: dict[str, dict[str, Any]] = {}
    for gpu in of(facts, Gpu).values():
        address = gpu.address if gpu.address and gpu.address in functions else gpu.key
        place = gpu.module_id or None  # PCIe cards report 0
        known[address] = {"uuid": gpu.uuid, "module_id": place, "firmware": gpu.vbios}
    parts: tuple[Rdma | Nvme, ...] = (*of(facts, Rdma).values(), *of(facts, Nvme).values())
    for part in parts:
        if part.address and part.firmware:
            known.setdefault(part.address, {})["firmware"] = part.firmware
    for device in devices:
        function = functions.get(device.id)
        slot = function.slot or function.label if function else None
        values = {**known.get(device.id, {}), "slot": slot}
        yield replace(device, **values) if any(values.values()) else device
