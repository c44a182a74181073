"""Devices and the links between them. The topology holds rates of links, but no findings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct

# These devices pass on traffic of others. GPUs, NICs and disks only send and receive.
FORWARDS = frozenset(
    {"root-port", "upstream-port", "downstream-port", "bridge", "host-bridge", "host", "numa", "package", "fabric"}
)
FABRIC = "nvfabric"  # all NVSwitches that the GPUs reach over NVLink, in this machine or in the rack
# Links between parts of one device: the second function of a card reaches the slot through its first.
INSIDE = frozenset({"function", "port", "disk", "member"})


class Device(Struct, frozen=True):
    """A device that links connect. The id is the kernel's name: a PCI address, "numa0", "pci0000:17", "mlx5_0/1"."""

    id: str
    kind: str  # one of FORWARDS, or gpu, nic, nvme, storage, nvswitch, display, pci, port, netdev, disk, array ...
    name: str = ""
    numa_node: int | None = None
    aliases: tuple[str, ...] = ()  # "gpu3" and "mlx5_0" are other names of PCI functions
    uuid: str | None = None  # of a GPU, from its driver
    slot: str | None = None  # name of the slot in the machine's firmware
    module_id: int | None = None  # of a GPU: its position on the baseboard
    firmware: str | None = None  # version; for a GPU its VBIOS
    # Of a PCI function: numbers that name it where no name is known.
    vendor: int | None = None
    device: int | None = None
    pci_class: int | None = None  # 24 bits: 0x030200


class Link(Struct, frozen=True):
    """One physical link, or a connection inside a chip (without a rate). Rates in bytes per second from a to b.

    The memory of a device is a link of kind "memory" from the device to itself.
    """

    id: str
    a: str
    b: str
    kind: str  # pcie, nvlink, xgmi, c2c, memory, interconnect, internal, or one of INSIDE
    rated: float | None = None  # what both ends can do
    trained: float | None = None  # the current rate, if it was read
    rated_back: float | None = None  # from b to a, if different
    grade: str = ""  # "pcie5x16", "nvlink4", "hbm": links of one grade reach equal rates (catalog/links.toml)


class Hop(Struct, frozen=True):
    """One step in one direction. Parallel links between the same two devices form one hop; their rates add up."""

    sender: str
    receiver: str
    links: tuple[Link, ...]

    def __hash__(self) -> int:
        """Hash of the ends only: a topology has one hop between two ends, and hashing its 18 links is slow."""
        return hash((self.sender, self.receiver))


class Topology(Struct, frozen=True, dict=True):
    """Devices and links. `find` accepts any name of a device; `hops` is the graph."""

    devices: tuple[Device, ...] = ()
    links: tuple[Link, ...] = ()

    @cached_property
    def by_name(self) -> Mapping[str, Device]:
        """Devices by id and by alias."""
        names = {alias: device for device in self.devices for alias in device.aliases}
        return {**names, **{device.id: device for device in self.devices}}

    @cached_property
    def searches(self) -> dict[Hashable, Any]:
        """The cached route searches (routes.py), by source, medium and rate."""
        return {}

    def find(self, name: str) -> Device | None:
        """The device with that id or alias."""
        return self.by_name.get(name)

    def kind(self, name: str) -> str:
        """The kind of the device with that name. Without such a device (dumps), the name without its number: "gpu" for
        gpu3, "mlx5" for mlx5_3, and "port" for mlx5_3/1.
        """
        device = self.find(name)
        return device.kind if device else "port" if "/" in name else name.rstrip("0123456789").rstrip("_")

    @cached_property
    def hops(self) -> Mapping[str, tuple[Hop, ...]]:
        """The hops that leave each device, by device id. Hops between GPUs come first, the others in the order of the
        links.

        Of several routes with equally many hops a search takes the first, so GPUs on one root bus of a guest copy over
        NVLink.

        NVLinks to any NVSwitch are hops to one fabric device. A GPU spreads its bytes over all switches. Each switch
        has a few links of the GPU and reaches every other GPU, so a route through a single switch would carry a
        fraction of the rate. The links themselves keep their switch, so links to a switch that is down remain visible.
        """
        bundles: dict[tuple[str, str], list[Link]] = defaultdict(list)
        for link in self.links:
            if link.a == link.b:
                continue
            switched = link.kind == "nvlink" and FABRIC in self.by_name and self._is_switch(link.b)
            end = FABRIC if switched else link.b
            bundles[link.a, end].append(link)
            bundles[end, link.a].append(link)
        leaving: dict[str, list[Hop]] = defaultdict(list)
        for (sender, receiver), links in bundles.items():
            leaving[sender].append(Hop(sender, receiver, tuple(links)))
        return {sender: tuple(sorted(hops, key=_between_others)) for sender, hops in leaving.items()}

    def _is_switch(self, name: str) -> bool:
        return name in self.by_name and self.by_name[name].kind == "nvswitch"

    @cached_property
    def memory(self) -> Mapping[str, Hop]:
        """The memory hop of each device with a memory link, by device id."""
        return {
            link.a: Hop(link.a, link.a, (link,)) for link in self.links if link.kind == "memory" and link.a == link.b
        }

    @cached_property
    def link_below(self) -> Mapping[str, Link]:
        """The PCIe link above each function, by the function's address."""
        return {link.b: link for link in self.links if link.kind == "pcie"}


def _between_others(hop: Hop) -> bool:
    return hop.links[0].kind not in ("nvlink", "xgmi")
