"""Output of lstopo on a terminal, with and without -v: a tree with indentation (lstopo-text.c of hwloc).

Without -v, bridges have no address, so the parent of a function is unknown. The reader skips memory sizes, because they
are rounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field

from ....models.facts.gpu import Gpu
from ....models.facts.machine import Disk, HostBridge, Net, Numa, Package, Pci, Rdma
from ....models.facts.records import Evidence, Record
from ..core.part import Part

BEGIN = (
    r"^Machine (?:L#0 )?\([^\n()]{1,400}(?:total|[KMG]B|\")[^\n]*\)[ \t]*$|^[ ]{2,8}(?:Package|Socket) L#[0-9]{1,4}\b"
)
ANY_LINE = (
    r"^[ ]{0,80}(?:PCI (?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] \(|PCI L#\d{1,5} \(busid="
    r"|HostBridge L#\d{1,5} \(buses=|NUMANode L#\d{1,4} \(P#)"
)
_LINE = re.compile(
    r"^( *)(Package|Socket|NUMANode|Group[01]?|Die|HostBridge|PCIBridge|PCI|Net(?:work)?|OpenFabrics|Block|GPU)\b"
    r"([^\n]*)$"
)
_PU = re.compile(r"\bPU L#(\d{1,5}) \(P#(\d{1,5})\)")
_PHYSICAL = re.compile(r"P#(\d{1,5})")
_SHORT = re.compile(r" ((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) \(([^()]+)\)")
_LONG = re.compile(
    r"busid=([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) id=([0-9a-f]{4}):([0-9a-f]{4}) class=([0-9a-f]{4})"
)
_ROOT = re.compile(r"buses=([0-9a-f]{4,8}):\[([0-9a-f]{2})-")
_NAME = re.compile(r'"([A-Za-z0-9][\w.@-]{0,63})"[ \t]*$')
_MODEL = re.compile(r'CPUModel="([^"\n]{1,100})"')
# hwloc_pci_class_string of hwloc.
_CLASSES = {
    "SCSI": 0x0100,
    "IDE": 0x0101,
    "RAID": 0x0104,
    "SATA": 0x0106,
    "SAS": 0x0107,
    "NVMExp": 0x0108,
    "Ethernet": 0x0200,
    "InfiniBand": 0x0207,
    "Fabric": 0x0208,
    "Network": 0x0280,
    "VGA": 0x0300,
    "3D": 0x0302,
    "Display": 0x0380,
    "Co-Processor": 0x0B40,
    "ProcessingAccel": 0x1200,
}
_CONTAINERS = ("Package", "Socket", "Group", "Group0", "Group1", "Die")
_LONGEST = 2000  # characters of a line


class _Place(Struct):
    """An open object. Lines with a deeper indentation are inside it."""

    indent: int
    kind: str
    key: str = ""
    fields: dict[str, Any] = field(default_factory=dict)
    cites: dict[str, Evidence] = field(default_factory=dict)
    cpus: list[int] = field(default_factory=list)
    numas: list[int] = field(default_factory=list)  # the NUMA nodes inside it
    whole: bool = True  # no line with processors is missing


def read(part: Part) -> Iterator[Record]:
    """Packages and NUMA nodes with their CPUs (if the text contains all of them), PCI functions, and devices."""
    above: list[_Place] = [_Place(-1, "Machine")]
    counted = 0  # the logical number of the next processor
    for number, line in part.lines():
        if len(line) > _LONGEST:
            continue
        indent = len(line) - len(line.lstrip(" "))
        if line.strip():
            while above[-1].indent >= indent:
                yield from _finished(above.pop())
        if found := _LINE.match(line):
            place = _Place(indent, found[2])
            yield from _read(place, found[3], part.cite(number, line), above)
            above.append(place)
        for logical, cpu in _PU.findall(line) if not found else ():
            if int(logical) != counted:  # lines are missing
                for place in above[1:]:
                    place.whole = False
            counted = int(logical) + 1
            for place in above:
                place.cpus.append(int(cpu))
    for place in above:
        place.cpus = []  # the truncated part can contain more CPUs
    for place in reversed(above):
        yield from _finished(place)


def _read(place: _Place, rest: str, cite: Evidence, above: list[_Place]) -> Iterator[Record]:
    """Read an object's line. A package is yielded later, once its CPUs are known."""
    physical = _PHYSICAL.search(rest)
    place.cites["cpus"] = cite
    if place.kind in ("Package", "Socket"):
        index = physical or re.match(r" L#(\d{1,4})", rest)
        place.key = f"package{int(index[1])}" if index else ""
        if model := _MODEL.search(rest):
            place.fields["model"], place.cites["model"] = model[1], cite
    elif place.kind == "NUMANode" and physical:
        logical = re.match(r" L#(\d{1,4})", rest)
        if logical and int(logical[1]) != len(above[0].numas):  # lines of other nodes are missing
            above[0].whole = False
        place.key = f"numa{int(physical[1])}"
        for other in above:
            other.numas.append(int(physical[1]))
    elif place.kind in ("HostBridge", "PCIBridge", "PCI"):
        yield from _function(place, rest, cite, above)
    elif name := _NAME.search(rest):
        yield from _device(place.kind, name[1], _address(above), cite)


def _finished(place: _Place) -> Iterator[Record]:
    """The facts of a complete object: the CPUs of a package, and those of a single NUMA node inside it.

    Before hwloc 2, CPUs are inside their NUMA node. Since hwloc 2 they are beside it. If one place has several NUMA
    nodes, some of them can be without CPUs.
    """
    cpus = (tuple(sorted(set(place.cpus))) if place.whole else ()) or None
    if place.kind in ("Package", "Socket") and place.key:
        cites = {name: cite for name, cite in place.cites.items() if name != "cpus" or cpus}
        yield Package(key=place.key, cpus=cpus, cites=cites, **place.fields)
    elif place.kind == "NUMANode" and place.key:
        yield Numa(key=place.key, cpus=cpus, cites=place.cites if cpus else {})
    if place.kind in _CONTAINERS and cpus and len(place.numas) == 1:
        yield Numa(key=f"numa{place.numas[0]}", cpus=cpus, cites={"cpus": place.cites["cpus"]})


def _function(place: _Place, rest: str, cite: Evidence, above: list[_Place]) -> Iterator[Record]:
    """A PCI function or root. Its NUMA node is the single one in the same package or group, if there is exactly one."""
    numas = next((other.numas for other in reversed(above) if other.numas), [])
    numa = numas[0] if len(numas) == 1 and above[0].whole else None
    outer = above[-1] if above[-1].kind in ("HostBridge", "PCIBridge") else None
    parent = outer.key or None if outer else None
    if found := _LONG.search(rest):
        place.key = found[1]
        fields = {"vendor": int(found[2], 16), "device": int(found[3], 16), "pci_class": int(found[4], 16) << 8}
    elif found := _SHORT.match(rest):
        place.key = found[1] if found[1].count(":") == 2 else f"0000:{found[1]}"
        code = _CLASSES.get(found[2])
        fields = {} if code is None else {"pci_class": code << 8}
    elif found := _ROOT.search(rest):
        place.key = f"pci{found[1]}:{found[2]}"
        yield HostBridge(key=place.key, numa=numa, cites={} if numa is None else {"numa": cite})
        return
    else:
        return
    known: dict[str, Any] = {**fields, "parent": parent, "numa": numa}
    known = {name: value for name, value in known.items() if value is not None}
    yield Pci(key=place.key, cites=dict.fromkeys(known, cite), **known)


def _address(above: list[_Place]) -> str | None:
    """The PCI address of the function above a device."""
    return above[-1].key if above[-1].kind == "PCI" and above[-1].key else None


def _device(kind: str, name: str, address: str | None, cite: Evidence) -> Iterator[Record]:
    """A device that a driver created for a function."""
    cites = {"address": cite} if address else {}
    if kind in ("Net", "Network"):
        yield Net(key=name, address=address, cites=cites)
    elif kind == "OpenFabrics" and not name.startswith("dax"):
        yield Rdma(key=name, address=address, cites=cites)
    elif kind == "Block" and address:
        yield Disk(key=name, address=address, cites=cites)
    elif kind == "GPU" and (found := re.fullmatch("nvml([0-9]{1,3})", name)):
        yield Gpu(key=f"gpu{int(found[1])}", address=address, cites=cites)
