"""Topologies that lstopo wrote as XML (hwloc 1 to 3): packages, NUMA nodes, the PCI tree, and the devices of drivers.

Source of the format: hwloc's hwloc2.dtd and topology-xml.c. The reader skips pci_link_speed: it is one number for speed
and width, and the link may have been idle.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field

from ....models.facts.gpu import Gpu
from ....models.facts.machine import Disk, HostBridge, Net, Node, Numa, Package, Pci, Rdma
from ....models.facts.pci_classes import NVIDIA
from ....models.facts.records import Evidence, Fact, NotChecked, Record
from ..core.part import Part
from ..core.pci_words import identity
from ..core.xml_elements import Element, elements, whole
from .hwloc_links import Device, generation_of, links

BEGIN = r"^[ \t]*<topology(?: version=\"[0-9.]{1,8}\")?>"
ANY_LINE = r"^[ \t]*<object type=\"(?:Bridge|PCIDev|NUMANode|Package|Group|OSDev)\""
_ABOVE = ('topology version="2.0"', 'object type="Machine"')  # around a fragment
NVSWITCH = 0x068000
_MOST = 50_000  # elements: enough for 2,000 processors with their caches
_ADDRESS = re.compile(r"([0-9a-f]{4,8}):[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_ROOT = re.compile(r"([0-9a-f]{4,8}):\[([0-9a-f]{2})-[0-9a-f]{2}\]")
_TYPE = re.compile(r"([0-9a-f]{4}) \[([0-9a-f]{4}):([0-9a-f]{4})\](?: \[([0-9a-f]{4}):([0-9a-f]{4})\])?")
_NODE = {
    "HostName": "hostname",
    "OSRelease": "kernel",
    "DMISysVendor": "vendor",
    "DMIProductName": "product",
    "DMIBoardName": "board",
    "DMIBIOSVersion": "bios",
    "DMIChassisAssetTag": "asset_tag",
}
# vendors whose products have good names in pci.ids
_MAKERS = {0x10DE: "NVIDIA Corporation", 0x15B3: "Mellanox Technologies"}
_NET, _RDMA, _BLOCK = 16, 32, 1  # hwloc_obj_osdev_type_t of hwloc 3: a bit mask
_OLDER = {"0": _BLOCK, "2": _NET, "3": _RDMA}  # a plain number until hwloc 2


def read(part: Part) -> Iterator[Record]:
    """The facts in the order of the file. If the file is truncated, those before the end."""
    reading = _Reading()
    before, end, _ = part.text.partition("</topology>")
    text = before + end if re.search(BEGIN, part.text, re.MULTILINE) else whole(before, _ABOVE)
    refused: list[NotChecked] = []
    for one in elements(part, text, _MOST):
        if isinstance(one, NotChecked):
            refused.append(one)
        else:
            reading.element(one)
    yield from reading.facts()
    yield from links(part, *reading.devices())
    yield from refused


class _Entry(Struct):
    """An incomplete fact."""

    kind: type[Fact]
    fields: dict[str, Any]
    cites: dict[str, Evidence]


class _Reading(Struct):
    """The facts so far, by XML element. An <info> element adds to the fact of its parent element."""

    new: bool = True  # hwloc 3
    entries: dict[Element, _Entry] = field(default_factory=dict)
    keys: dict[Element, str] = field(default_factory=dict)
    places: dict[Element | None, Element] = field(default_factory=dict)  # the first NUMA node below each parent
    node: dict[str, tuple[str, Evidence]] = field(default_factory=dict)

    def element(self, one: Element) -> None:
        """Add the facts of one element."""
        if one.tag == "topology":
            self.new = one.attributes.get("version", "1").startswith("3")
        elif one.tag == "info":
            self._info(one)
        elif one.tag == "object":
            kind = one.attributes.get("type", "")
            number = one.attributes.get("os_index", "")
            if kind in ("Package", "Socket") and _is_number(number):
                self._add(one, Package, f"package{int(number)}", {"cpus": _mask(one.attributes.get("cpuset", ""))})
            elif kind == "NUMANode" and _is_number(number):
                memory = one.attributes.get("local_memory", "")
                size = int(memory) if _is_number(memory) else None
                self._add(one, Numa, f"numa{int(number)}", {"memory": size, "cpus": self._cpus(one)})
            elif kind in ("Bridge", "PCIDev"):
                self._pci(one)
            elif kind == "OSDev":
                self._device(one)

    def facts(self) -> Iterator[Record]:
        """All facts; the Node is the last."""
        for one, entry in self.entries.items():
            yield entry.kind(key=self.keys[one], cites=entry.cites, **entry.fields)
        if self.node:
            cites = {name: cite for name, (_, cite) in self.node.items()}
            texts: dict[str, Any] = {name: value for name, (value, _) in self.node.items()}
            yield Node(key="node", cites=cites, **texts)

    def devices(self) -> tuple[dict[str, Device], int | None]:
        """GPUs and functions by their index in matrices, and the NVLink generation of the GPUs."""
        found: dict[str, Device] = {}
        numbers: dict[str, tuple[int | None, int | None]] = {}
        gpus: set[str] = set()
        for one, entry in self.entries.items():
            key, index = self.keys[one], one.attributes.get("gp_index", "")
            if entry.kind is Gpu and entry.fields.get("address"):
                found[index] = "gpu", key, entry.fields["address"]
                gpus.add(entry.fields["address"])
            elif entry.kind is Pci:
                found.setdefault(index, ("switch", key, key))
                numbers[key] = entry.fields.get("vendor"), entry.fields.get("device")
        return found, generation_of({numbers[address] for address in gpus if address in numbers})

    def _add(self, one: Element, kind: type[Fact], key: str, fields: dict[str, Any]) -> None:
        known = {name: value for name, value in fields.items() if value is not None}
        self.entries[one] = _Entry(kind, known, dict.fromkeys(known, one.where))
        self.keys[one] = key

    def _cpus(self, one: Element) -> tuple[int, ...] | None:
        """CPUs of a NUMA node.

        None if several nodes share a parent: in the kernel's view some of them have no CPUs (HBM, CXL).
        """
        other = self.places.setdefault(one.parent, one)
        if other is one:
            return _mask(one.attributes.get("cpuset", ""))
        self.entries[other].fields.pop("cpus", None)
        self.entries[other].cites.pop("cpus", None)
        return None

    def _pci(self, one: Element) -> None:
        """Add a function, or a host bridge, which has no address."""
        address, numa = one.attributes.get("pci_busid", ""), _numa(one)
        above = self._bridge_above(one)
        if _ADDRESS.fullmatch(address):
            numbers: dict[str, Any] = {}
            if found := _TYPE.match(one.attributes.get("pci_type", "")):
                code, *rest = (int(number, 16) if number else None for number in found.groups())
                names = ("vendor", "device", "subvendor", "subdevice")
                numbers = {"pci_class": (code or 0) << 8, **dict(zip(names, rest, strict=True))}
                if code == rest[0] == 0:  # hwloc could not read the numbers
                    numbers = {}
                elif numbers["subvendor"] == 0:  # bridges have no subsystem ids
                    numbers["subvendor"] = numbers["subdevice"] = None
            if not numbers and one.attributes.get("subtype") == "NVSwitch":
                numbers = {"pci_class": NVSWITCH, "vendor": NVIDIA}
            self._add(one, Pci, address, {"parent": above, "numa": numa, **numbers})
        elif root := _ROOT.fullmatch(one.attributes.get("bridge_pci", "")):
            self._add(one, HostBridge, f"pci{root[1]}:{root[2]}", {"parent": above, "numa": numa})

    def _bridge_above(self, one: Element) -> str | None:
        """The key of the nearest bridge above the element."""
        while one.parent is not None:
            one = one.parent
            if one in self.entries and self.entries[one].kind in (Pci, HostBridge):
                return self.keys[one]
        return None

    def _device(self, one: Element) -> None:
        """Add a device that a driver created for a function."""
        name, kind = one.attributes.get("name", ""), one.attributes.get("osdev_type", "")
        address = self._bridge_above(one)
        if not re.fullmatch(r"[A-Za-z0-9][\w.@-]{0,63}", name) or (address or "").startswith("pci"):
            return
        bits = int(kind) if self.new and _is_number(kind) else _OLDER.get(kind, 0)
        if bits & _RDMA:
            self._add(one, Rdma, name, {"address": address})
        elif bits & _NET:
            self._add(one, Net, name, {"address": address})
        elif one.attributes.get("subtype") == "CXLMem":  # memory modules, also persistent ones
            return
        elif bits & _BLOCK and address and not name.startswith("nvml"):
            self._add(one, Disk, name, {"address": address})
        elif found := re.fullmatch("nvml([0-9]{1,3})", name):
            self._add(one, Gpu, f"gpu{int(found[1])}", {"address": address})

    def _info(self, one: Element) -> None:
        name, value, above = one.attributes.get("name", ""), one.attributes.get("value", "").strip(), one.parent
        if not value or not value.isprintable() or above is None:
            return
        if name in _NODE and (above.tag == "topology" or above.attributes.get("type") in ("Machine", "System")):
            self.node.setdefault(_NODE[name], (value, one.where))
        elif above in self.entries:
            entry = self.entries[above]
            if name == "CPUModel" and entry.kind is Package:
                entry.fields["model"], entry.cites["model"] = value, one.where
            elif name == "CPUVendor" and entry.kind is Package:
                entry.fields["vendor"], entry.cites["vendor"] = value, one.where
            elif name == "PCISlot" and entry.kind is Pci:
                entry.fields["slot"], entry.cites["slot"] = value, one.where
            elif name == "PCIDevice" and entry.kind is Pci:
                maker = _MAKERS.get(entry.fields.get("vendor", 0), "")
                if product := identity(f"{maker} {value}")[2]:
                    entry.fields["name"], entry.cites["name"] = product, one.where


def _is_number(text: str) -> bool:
    return re.fullmatch("[0-9]{1,18}", text) is not None


def _numa(one: Element) -> int | None:
    """The NUMA node of the nearest ancestor with a nodeset. None if that has several nodes."""
    above = one.parent
    while above is not None and not above.attributes.get("nodeset"):
        above = above.parent
    nodes = _mask(above.attributes["nodeset"]) if above is not None else None
    return nodes[0] if nodes and len(nodes) == 1 else None


def _mask(text: str) -> tuple[int, ...] | None:
    """The bits of a mask such as "0x000000ff,0xffffffff".

    Groups have 32 bits; the last group has the lowest bits. None if the text is not a mask or is too long.
    """
    if not re.fullmatch(r"0x[0-9a-f]{1,8}(?:,(?:0x[0-9a-f]{1,8})?){0,255}", text):
        return None
    groups = [int(group, 16) if group else 0 for group in reversed(text.split(","))]
    return tuple(32 * n + bit for n, group in enumerate(groups) for bit in range(32) if group >> bit & 1)
