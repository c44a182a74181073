"""What the management controller (BMC) of a machine reports over Redfish, independently of the kernel."""

from __future__ import annotations

from typing import Literal

from .records import Fact


class BmcLink(Fact, frozen=True, kw_only=True):
    """The PCIe link of a device; the key is the PCI address of its first function."""

    width: int | None = None  # PCIeInterface.LanesInUse
    max_width: int | None = None  # PCIeInterface.MaxLanes, of the device
    slot_width: int | None = None  # PCIeSlots.Slots[].Lanes, of the slot that holds it
    # Speeds in transfers per second and lane, which Redfish writes as a generation: "Gen5".
    speed: float | None = None  # PCIeInterface.PCIeType; lower while the link rests
    max_speed: float | None = None  # PCIeInterface.MaxPCIeType, of the device
    slot_speed: float | None = None  # PCIeSlots.Slots[].PCIeType, of the slot that holds it


class BmcPart(Fact, frozen=True, kw_only=True):
    """A power supply or a fan. The key is its path in Redfish."""

    kind: Literal["power supply", "fan"] | None = None
    name: str | None = None
    health: str | None = None  # "OK", "Warning", "Critical"
