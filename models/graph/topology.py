"""What is there and how it is joined. It knows rates of links, but not what is wrong with them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

# Traffic of others goes through these. GPUs, NICs and disks only send and receive.
FORWARDS = frozenset(
    {"root-port", "upstream-port", "downstream-port", "bridge", "host-bridge", "host", "numa", "package", "fabric"}
)
FABRIC = "nvfabric"  # the NVSwitches that GPUs reach over NVLink, in this machine or in the rack
# Links between parts of one device: a card's second function reaches the slot through its first.
INSIDE = frozenset({"function", "port", "disk", "member"})


@dataclass(frozen=True, slots=True)
class Device:
    """A thing that links join. Its id is the kernel's name: a PCI address, "numa0", "pci0000:17", "mlx5_0/1"."""

    id: str
    kind: str  # one of FORWARDS, or gpu, nic, nvme, storage, nvswitch, display, pci, port, netdev, disk, array ...
    name: str = ""
    numa_node: int | None = None
    aliases: tuple[str, ...] = ()  # "gpu3" and "mlx5_0" are other names of PCI functions
    uuid: str | None = None  # of a GPU, as its driver has it
    slot: str | None = None  # as the firmware of the machine calls it
    module_id: int | None = None  # of a GPU: its place on the baseboard
    firmware: str | None = None  # its version; a GPU's VBIOS


@dataclass(frozen=True, slots=True)
class Link:
    """One physical link, or a way inside a chip (then it has no rate). Rates in bytes per second from a to b.

    The memory of a device is a link from it to itself, of the kind "memory".
    """

    id: str
    a: str
    b: str
    kind: str  # pcie, nvlink, xgmi, c2c, memory, interconnect, internal, or one of INSIDE
    rated: float | None = None  # what both ends can do
    trained: float | None = None  # what it runs at, as far as that was read
    rated_back: float | None = None  # from b to a, where that differs
    grade: str = ""  # "pcie5x16", "nvlink4", "hbm": links of one grade are as good as each other (catalog/links.toml)


@dataclass(frozen=True, slots=True)
class Hop:
    """One step in one direction; parallel links between the same two ends are one hop and add up."""

    sender: str
    receiver: str
    links: tuple[Link, ...]

    def __hash__(self) -> int:
        """Of the ends alone: a topology has one hop between them, and its 18 links take long to hash."""
        return hash((self.sender, self.receiver))


@dataclass(frozen=True)
class Topology:
    """Devices and links. `find` takes any name of a device; `hops` is the graph."""

    devices: tuple[Device, ...] = ()
    links: tuple[Link, ...] = ()

    @cached_property
    def by_name(self) -> Mapping[str, Device]:
        """Devices by id and by alias."""
        names = {alias: device for device in self.devices for alias in device.aliases}
        return {**names, **{device.id: device for device in self.devices}}

    @cached_property
    def searches(self) -> dict[Hashable, Any]:
        """The searches for ways that were begun (routes.py), by what they are for."""
        return {}

    def find(self, name: str) -> Device | None:
        """The device of that id or alias."""
        return self.by_name.get(name)

    def kind(self, name: str) -> str:
        """The kind of the device of that name; of one that dumps do not tell of what its name says: "gpu" of gpu3."""
        device = self.find(name)
        return device.kind if device else name.rstrip("0123456789")

    @cached_property
    def hops(self) -> Mapping[str, tuple[Hop, ...]]:
        """The hops that leave each device, by its id, in the order of the links; those between GPUs first.

        Of ways of equally many hops the first is taken: GPUs on one root bus of a guest copy over NVLink too.

        NVLinks to any NVSwitch are hops to the one fabric. A GPU spreads its bytes over all switches, each of which has
        a few of its links and reaches every other GPU: a route through a single switch would carry a fraction of what
        the GPU sends. The links themselves end where they end: those to one switch that is down are seen.
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
        """The memory of each device that has one of a known rate, by the device's id."""
        return {
            link.a: Hop(link.a, link.a, (link,)) for link in self.links if link.kind == "memory" and link.a == link.b
        }

    @cached_property
    def link_below(self) -> Mapping[str, Link]:
        """The PCIe link that ends in each function, by the function's address."""
        return {link.b: link for link in self.links if link.kind == "pcie"}


def _between_others(hop: Hop) -> bool:
    return hop.links[0].kind not in ("nvlink", "xgmi")
