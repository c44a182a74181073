"""Topology files of NCCL and RCCL (NCCL_TOPO_DUMP_FILE, NCCL_TOPO_FILE), including those that clouds ship.

Source of the format: NVIDIA/nccl src/graph/xml.cc and topo.cc at v2.30.7, and the same files of ROCm/rccl.

The files describe structure, not state. A `link_speed` is the maximum of a link. In dumps of older versions it is the
current speed of the GPU's link, which may be idle. In files written by hand it is a guess. So it is never a trained
speed. It belongs to the link, not to the device, so the reader stores it at the port above the device.

NCCL leaves out ports. It writes a switch as one <pci>, the upstream port, and puts the devices below the downstream
ports directly into this <pci>. The reader inserts a port without a PCI address of its own, "0000:17:00/port", between
each <pci> and its parent. The tree then has ports like the trees of other sources, and devices share uplinks. NCCL also
leaves out host bridges. A <cpu> is a NUMA node; the reader puts everything directly in it below one bridge,
"numa0/pci". The number of packages is unknown, so all NUMA nodes belong to one package.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from ....models.facts.gpu import Gpu, GpuLink
from ....models.facts.machine import HostBridge, Net, Numa, Package, Pci, Port, Rdma
from ....models.facts.pci_classes import AMD, NVIDIA, card_of
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, Fact, NotChecked, Record
from ....models.facts.registry import kind_name
from ...parsing.parsers import count, decimal, shown
from ..core.part import Part
from ..core.xml_elements import Element, elements, whole
from .nccl_values import (
    cpu_mask,
    link_speed,
    link_width,
    pci_address,
    pci_class,
    pci_id,
    port_rate,
    printable,
)

BRIDGE, NVSWITCH = 0x060400, 0x068000
BEGIN = r"^[ \t]*<system\s[^<>\n]*\bversion\s*="
ANY_LINE = r"^[ \t]*<(?:pci busid=\"|gpu dev=\"\d{1,3}\" sm=|cpu (?:host_hash|numaid)=\")"
_ABOVE = ('system version="1"', 'cpu numaid="-1"')  # around a fragment: its NUMA node is not known
_REMOTE = {"0x068000": "switch", "0x068001": "cpu", "0x03": "gpu", "0x12": "gpu"}  # by the beginning of a tclass
# NVLink generations by compute capability: data sheets of P100, V100, A100, RTX A6000, H100, B200 and B300.
_NVLINK_OF_SM = {60: 1, 70: 2, 80: 3, 86: 3, 90: 4, 100: 5, 103: 5}
_MOST_LINKS = 64  # per GPU
_BELOW = {  # permitted parent elements
    "pci": ("cpu", "pci"),
    "gpu": ("pci",),
    "nvlink": ("gpu",),
    "xgmi": ("gpu",),
    "c2c": ("gpu",),
    "nic": ("cpu", "pci"),
    "net": ("nic", "cpu", "pci"),
}
_GUESSED = 10_000  # Mb/s: NCCL's default for a network device whose speed it cannot read (net_socket.cc)


def read(part: Part) -> Iterator[Record]:
    """NUMA nodes, the PCI tree, GPUs and their links, and network devices.

    If the file is truncated, those before the end.
    """
    reading = _Reading(part.file)
    before, end, behind = part.text.partition("</system>")
    text = before + end if re.search(BEGIN, part.text, re.MULTILINE) else whole(_complete(before), _ABOVE)
    for one in elements(part, text):
        yield from [one] if isinstance(one, NotChecked) else reading.element(one)
    if behind.strip():
        line = part.where(before.count("\n")).rpartition(":")[2]
        yield NotChecked(
            what="dump",
            subject=part.file,
            reason=Reason.UNREADABLE,
            detail=f"line {line}: the text after </system> was not read",
        )


def _complete(text: str) -> str:
    """The fragment up to a last GPU that does not end in it: the number of its links is not known."""
    begin = text.rfind("<gpu ")
    rest = text[begin:]
    return text if begin < 0 or "</gpu>" in rest or rest.partition(">")[0].endswith("/") else text[:begin]


class _Reading(Struct):
    """The state while reading elements. Elements below a rejected element are left out."""

    name: str
    places: dict[Element, str] = field(default_factory=dict)  # the fact key of each element
    numa: dict[str, int | None] = field(default_factory=dict)  # the NUMA node of each bridge and function
    bridges: dict[str, str] = field(default_factory=dict)  # what is above each; some files repeat it per port
    known_keys: set[str] = field(default_factory=set)  # keys of bridges, functions, ports and GPUs
    links: dict[str, int] = field(default_factory=dict)  # number of links of each GPU so far
    host: str | None = None
    version: str = "1"

    def element(self, one: Element) -> Iterator[Record]:
        """The facts of one element."""
        readers: Mapping[str, Callable[[Element], Iterator[Record]]] = {
            "system": self._system,
            "cpu": self._cpu,
            "pci": self._pci,
            "gpu": self._gpu,
            "nvlink": self._link,
            "xgmi": self._link,
            "c2c": self._c2c,
            "nic": self._nic,
            "net": self._net,
        }
        read = readers.get(one.tag)
        known = one.tag in ("system", "cpu") or (one.parent is not None and one.parent in self.places)
        if read and known:
            try:
                _check_parent(one)
                yield from read(one)
            except ValueError as wrong:
                why = f"<{one.tag}>: {wrong}; it and the elements below it are left out"
                yield NotChecked(
                    what="dump", subject=self.name, reason=Reason.INCOMPLETE, path=one.where.source, detail=why
                )

    def _system(self, one: Element) -> Iterator[Record]:
        self.version = one.attributes.get("version", "1")
        return iter(())

    def _cpu(self, one: Element) -> Iterator[Record]:
        """A NUMA node and its bridge. NVIDIA's rack-scale machines write the trays of a whole rack into one file."""
        host = one.attributes.get("host_hash", "")
        self.host = host if self.host is None else self.host
        if host != self.host:
            raise ValueError(f"a <cpu> of another host ({shown(host)}) than the first")
        number = decimal(one.attributes.get("numaid", "-1"))
        bridge = "pci" if number < 0 else f"numa{number}/pci"
        self.places[one], self.numa[bridge] = bridge, None if number < 0 else number
        yield from _fact(Package, "package0", one, vendor=("vendor", printable))
        if number >= 0:
            shifted = one.attributes.get("affinity_offset", "0") != "0"  # the mask does not begin at CPU 0
            yield from _fact(Numa, f"numa{number}", one, cpus=("" if shifted else "affinity", cpu_mask))
        if bridge not in self.known_keys:
            self.known_keys.add(bridge)
            yield HostBridge(key=bridge, numa=self.numa[bridge], cites={"numa": one.where})

    def _pci(self, one: Element) -> Iterator[Record]:
        """A function, and the port above it that the file leaves out."""
        above = self.places[_parent(one)]
        address = pci_address(one.attributes.get("busid", ""))
        is_bridge = one.attributes.get("class", "").startswith("0x0604")
        if address in self.known_keys:
            if self.bridges.get(address) != above or not is_bridge:
                raise ValueError(f"a second <pci> of {address}")
            self.places[one] = address
            return
        self.places[one], self.numa[address] = address, self.numa[above]
        self.bridges |= {address: above} if is_bridge else {}
        port = f"{card_of(address)}/port"
        if port not in self.known_keys:
            yield from _fact(
                Pci,
                port,
                one,
                {"parent": above, "pci_class": BRIDGE, "numa": self.numa[above]},
                max_speed=("link_speed", link_speed),
                max_width=("link_width", link_width),
            )
        self.known_keys |= {address, port}
        known = {"parent": port, "numa": self.numa[above], "vendor": self._maker(one)}
        yield from _fact(
            Pci,
            address,
            one,
            known,
            pci_class=("class", pci_class),
            vendor=("vendor", pci_id),
            device=("device", pci_id),
            subvendor=("subsystem_vendor", pci_id),
            subdevice=("subsystem_device", pci_id),
        )

    def _maker(self, one: Element) -> int | None:
        """The vendor of a GPU without a vendor attribute. Files of RCCL have a different version than those of NCCL."""
        gpu = one.attributes.get("class", "").startswith(("0x03", "0x12"))
        if not gpu or "vendor" in one.attributes:
            return None
        return AMD if self.version == "2" else NVIDIA

    def _gpu(self, one: Element) -> Iterator[Record]:
        address = self.places[_parent(one)]
        key = f"gpu{count(one.attributes.get('dev', ''))}"
        if key in self.known_keys:  # another rank on the same GPU or on a part of it
            return
        self.known_keys.add(key)
        self.places[one] = key
        yield Gpu(key=key, address=address, cites={"address": one.where})

    def _link(self, one: Element) -> Iterator[Record]:
        """NVLink or xGMI: `count` links. NCCL leaves out inactive links."""
        gpu = self.places[_parent(one)]
        target, tclass = one.attributes.get("target", ""), one.attributes.get("tclass", "")
        kind = next((kind for begun, kind in _REMOTE.items() if tclass.startswith(begun)), None)
        remote = None if target.lower().startswith("fffffff:") else pci_address(target)
        if kind == "switch" and remote and remote not in self.known_keys:
            self.known_keys.add(remote)
            yield Pci(key=remote, pci_class=NVSWITCH, vendor=NVIDIA, cites={"pci_class": one.where})
        version = _NVLINK_OF_SM.get(_sm(_parent(one))) if one.tag == "nvlink" else None
        first, more = self.links.get(gpu, 0), _links(one)
        if first + more > _MOST_LINKS:
            raise ValueError(f"a GPU has no {first + more} links")
        self.links[gpu] = first + more
        for number in range(first, first + more):
            yield GpuLink(
                key=f"{gpu}/{one.tag}{number}",
                gpu=gpu,
                kind=one.tag,
                remote=remote,
                remote_kind=kind or (None if remote else "switch"),
                version=version,
                cites={"remote": one.where},
            )

    def _c2c(self, one: Element) -> Iterator[Record]:
        """Links to the processor. `bw` is the rate of one link in MB/s."""
        gpu = self.places[_parent(one)]
        rate = ("bw", lambda text: count(text) * 1e6 or None)
        yield from _fact(Gpu, gpu, one, {"c2c_links": _links(one)}, c2c_rate=rate)

    def _nic(self, one: Element) -> Iterator[Record]:
        self.places[one] = self.places[_parent(one)]
        return iter(())

    def _net(self, one: Element) -> Iterator[Record]:
        """A port of an RDMA device, or (port 0) a network device that NCCL uses through sockets."""
        place, name = self.places[_parent(one)], printable(one.attributes.get("name", ""))
        if name is None:
            raise ValueError("a <net> without a name")
        address = {"address": None if place.endswith("pci") else place}
        number = count(one.attributes.get("port", "1"))
        if number == 0:
            yield from _fact(Net, name, one, address, speed=("speed", lambda text: port_rate(text, _GUESSED)))
            return
        yield from _fact(Rdma, name, one, address)
        if "port" in one.attributes:
            yield from _fact(Port, f"{name}/{number}", one, {"device": name}, rate=("speed", port_rate))


def _check_parent(one: Element) -> None:
    if one.parent is not None and one.parent.tag not in _BELOW.get(one.tag, (one.parent.tag,)):
        raise ValueError(f"it is in a <{one.parent.tag}>")


def _parent(one: Element) -> Element:
    assert one.parent is not None
    return one.parent


def _fact(
    kind: type[Fact],
    key: str,
    one: Element,
    known: Mapping[str, Any] | None = None,
    **takes: tuple[str, Callable[[str], Any]],
) -> Iterator[Record]:
    """A fact with the fields in `known` and the fields from attributes. A NotChecked for each unreadable attribute."""
    fields = {name: value for name, value in (known or {}).items() if value is not None}
    cites: dict[str, Evidence] = dict.fromkeys(fields, one.where)
    for name, (attribute, parse) in takes.items():
        try:
            value = parse(one.attributes[attribute]) if attribute in one.attributes else None
        except ValueError as wrong:
            why = f"{attribute}: {wrong}"
            yield NotChecked(
                what=f"{kind_name(kind)}.{name}",
                subject=key,
                reason=Reason.UNREADABLE,
                path=one.where.source,
                detail=why,
            )
            continue
        if value is not None:
            fields[name], cites[name] = value, one.where
    yield kind(key=key, cites=cites, **fields)


def _sm(gpu: Element) -> int:
    """The compute capability of a GPU. RCCL stores a number of compute units there, which is larger."""
    text = gpu.attributes.get("sm", "")
    return int(text) if re.fullmatch(r"[0-9]{2,3}", text) and "gcn" not in gpu.attributes else 0


def _links(one: Element) -> int:
    number = count(one.attributes.get("count", ""))
    if number > _MOST_LINKS:
        raise ValueError(f"a GPU has no {number} links")
    return number
