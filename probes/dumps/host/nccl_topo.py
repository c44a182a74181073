"""Topologies as NCCL and RCCL write and read them (NCCL_TOPO_DUMP_FILE, NCCL_TOPO_FILE), and as clouds ship them.

Source of the form: NVIDIA/nccl src/graph/xml.cc and topo.cc at v2.30.7, ROCm/rccl of the same names.

Such a file tells structure, not state. A `link_speed` is the most that a link can do; in dumps of older versions it is
what a GPU's ran at, maybe at rest, and in files that were typed in by hand it is a guess: nothing here is a trained
speed. It is that of the link, not of the device, and so is kept at the port above.

NCCL leaves ports out: a switch is one <pci>, its upstream port, and what is below its downstream ports is below that.
Between each <pci> and what is above it stands a port here, "0000:17:00/port", which has no address of its own; then the
tree has the shape of any other, and uplinks are shared. Host bridges are left out too: all that is directly below a
<cpu>, which is a NUMA node, is below one bridge, "numa0/pci". How many packages there are is not told: all NUMA nodes
belong to one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ....models.facts.gpu import Gpu, GpuLink
from ....models.facts.machine import HostBridge, Net, Numa, Package, Pci, Port, Rdma
from ....models.facts.pci_classes import AMD, NVIDIA, card_of
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, Fact, NotChecked, Record
from ....models.facts.registry import kind_name
from ...parsing.parsers import count, decimal, shown
from ..core.part import Part
from ..core.xml_elements import Element, elements
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
_REMOTE = {"0x068000": "switch", "0x068001": "cpu", "0x03": "gpu", "0x12": "gpu"}  # how a tclass begins
# Generations by compute capability: data sheets of P100, V100, A100, RTX A6000, H100, B200 and B300.
_NVLINK_OF_SM = {60: 1, 70: 2, 80: 3, 86: 3, 90: 4, 100: 5, 103: 5}
_MOST_LINKS = 64  # of one GPU
_BELOW = {  # what each stands in
    "pci": ("cpu", "pci"),
    "gpu": ("pci",),
    "nvlink": ("gpu",),
    "xgmi": ("gpu",),
    "c2c": ("gpu",),
    "nic": ("cpu", "pci"),
    "net": ("nic", "cpu", "pci"),
}
_GUESSED = 10_000  # Mb/s: what NCCL's sockets say of a network device whose speed they cannot read (net_socket.cc)


def read(part: Part) -> Iterator[Record]:
    """NUMA nodes, the PCI tree, GPUs and their links, and network devices; of a file that was cut, what came before."""
    reading = _Reading(part.file)
    whole, end, behind = part.text.partition("</system>")
    for one in elements(part.file, whole + end, part.first):
        yield from [one] if isinstance(one, NotChecked) else reading.element(one)
    if behind.strip():
        line = part.where(whole.count("\n")).rpartition(":")[2]
        yield NotChecked(
            what="dump",
            subject=part.file,
            reason=Reason.UNREADABLE,
            detail=f"line {line}: what stands behind </system> was not read",
        )


@dataclass(slots=True)
class _Reading:
    """What the elements so far were. What is below something that could not be placed is left out with it."""

    name: str
    places: dict[Element, str] = field(default_factory=dict)  # the key of the fact that each element became
    numa: dict[str, int | None] = field(default_factory=dict)  # the NUMA node of each bridge and function
    said: set[str] = field(default_factory=set)  # keys of bridges, functions, ports and GPUs
    links: dict[str, int] = field(default_factory=dict)  # how many each GPU has so far
    host: str | None = None
    version: str = "1"

    def element(self, one: Element) -> Iterator[Record]:
        """The facts that an element holds."""
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
        known = one.tag in ("system", "cpu") or (one.above is not None and one.above in self.places)
        if read and known:
            try:
                _placed(one)
                yield from read(one)
            except ValueError as wrong:
                why = f"<{one.tag}>: {wrong}; it and what is below it is left out"
                yield NotChecked(
                    what="dump", subject=self.name, reason=Reason.UNREADABLE, path=one.where.source, detail=why
                )

    def _system(self, one: Element) -> Iterator[Record]:
        self.version = one.said.get("version", "1")
        return iter(())

    def _cpu(self, one: Element) -> Iterator[Record]:
        """A NUMA node and its bridge. NVIDIA's rack-scale machines put the trays of a whole rack into one file."""
        host = one.said.get("host_hash", "")
        self.host = host if self.host is None else self.host
        if host != self.host:
            raise ValueError(f"a <cpu> of another host ({shown(host)}) than the first")
        number = decimal(one.said.get("numaid", "-1"))
        bridge = "pci" if number < 0 else f"numa{number}/pci"
        self.places[one], self.numa[bridge] = bridge, None if number < 0 else number
        yield from _fact(Package, "package0", one, vendor=("vendor", printable))
        if number >= 0:
            shifted = one.said.get("affinity_offset", "0") != "0"  # the mask does not begin at CPU 0
            yield from _fact(Numa, f"numa{number}", one, cpus=("" if shifted else "affinity", cpu_mask))
        if bridge not in self.said:
            self.said.add(bridge)
            yield HostBridge(key=bridge, numa=self.numa[bridge], cites={"numa": one.where})

    def _pci(self, one: Element) -> Iterator[Record]:
        """A function, and the port above it that the file leaves out."""
        above = self.places[_above(one)]
        address = pci_address(one.said.get("busid", ""))
        if address in self.said:
            raise ValueError(f"a second <pci> of {address}")
        self.places[one], self.numa[address] = address, self.numa[above]
        port = f"{card_of(address)}/port"
        if port not in self.said:
            yield from _fact(
                Pci,
                port,
                one,
                {"parent": above, "pci_class": BRIDGE, "numa": self.numa[above]},
                max_speed=("link_speed", link_speed),
                max_width=("link_width", link_width),
            )
        self.said |= {address, port}
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
        """Of a GPU that stands there without: RCCL's files have another version than NCCL's."""
        gpu = one.said.get("class", "").startswith(("0x03", "0x12"))
        if not gpu or "vendor" in one.said:
            return None
        return AMD if self.version == "2" else NVIDIA

    def _gpu(self, one: Element) -> Iterator[Record]:
        address = self.places[_above(one)]
        key = f"gpu{count(one.said.get('dev', ''))}"
        if key in self.said:  # a rank more on the same GPU, or a part of it
            return
        self.said.add(key)
        self.places[one] = key
        yield Gpu(key=key, address=address, cites={"address": one.where})

    def _link(self, one: Element) -> Iterator[Record]:
        """NVLink or xGMI: as many links as `count` says. NCCL leaves out those that are down."""
        gpu = self.places[_above(one)]
        target, tclass = one.said.get("target", ""), one.said.get("tclass", "")
        kind = next((kind for begun, kind in _REMOTE.items() if tclass.startswith(begun)), None)
        remote = None if target.lower().startswith("fffffff:") else pci_address(target)
        if kind == "switch" and remote and remote not in self.said:
            self.said.add(remote)
            yield Pci(key=remote, pci_class=NVSWITCH, vendor=NVIDIA, cites={"pci_class": one.where})
        version = _NVLINK_OF_SM.get(_sm(_above(one))) if one.tag == "nvlink" else None
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
        """To the processor: `bw` is that of one link in MB/s."""
        gpu = self.places[_above(one)]
        rate = ("bw", lambda text: count(text) * 1e6 or None)
        yield from _fact(Gpu, gpu, one, {"c2c_links": _links(one)}, c2c_rate=rate)

    def _nic(self, one: Element) -> Iterator[Record]:
        self.places[one] = self.places[_above(one)]
        return iter(())

    def _net(self, one: Element) -> Iterator[Record]:
        """A port of an RDMA device; or a network device that sockets use, which is port 0."""
        place, name = self.places[_above(one)], printable(one.said.get("name", ""))
        if name is None:
            raise ValueError("a <net> without a name")
        address = {"address": None if place.endswith("pci") else place}
        number = count(one.said.get("port", "1"))
        if number == 0:
            yield from _fact(Net, name, one, address, speed=("speed", lambda text: port_rate(text, _GUESSED)))
            return
        yield from _fact(Rdma, name, one, address)
        if "port" in one.said:
            yield from _fact(Port, f"{name}/{number}", one, {"device": name}, rate=("speed", port_rate))


def _placed(one: Element) -> None:
    if one.above is not None and one.above.tag not in _BELOW.get(one.tag, (one.above.tag,)):
        raise ValueError(f"it is in a <{one.above.tag}>")


def _above(one: Element) -> Element:
    assert one.above is not None
    return one.above


def _fact(
    kind: type[Fact],
    key: str,
    one: Element,
    known: Mapping[str, Any] | None = None,
    **takes: tuple[str, Callable[[str], Any]],
) -> Iterator[Record]:
    """A fact with some fields `known`, and some that stand in attributes; a NotChecked for each that cannot be read."""
    fields = {name: value for name, value in (known or {}).items() if value is not None}
    cites: dict[str, Evidence] = dict.fromkeys(fields, one.where)
    for name, (attribute, parse) in takes.items():
        try:
            value = parse(one.said[attribute]) if attribute in one.said else None
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
    """The compute capability of a GPU; RCCL has a number of units there, which is larger than any."""
    text = gpu.said.get("sm", "")
    return int(text) if re.fullmatch(r"[0-9]{2,3}", text) and "gcn" not in gpu.said else 0


def _links(one: Element) -> int:
    number = count(one.said.get("count", ""))
    if number > _MOST_LINKS:
        raise ValueError(f"a GPU has no {number} links")
    return number
