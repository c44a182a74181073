"""Facts in the files of /sys and /proc that a text lists. sysfs_listing.py reads the shapes of such lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from msgspec import Struct, field

from ....models.catalog.settings import Row, settings
from ....models.facts.machine import HostBridge, Net, Nvme, Pci, Port, Rdma, Setting
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, Fact, NotChecked, Observation, Record
from ....models.facts.registry import kind_name
from ....models.facts.units import from_gigabits, from_megabits
from ...parsing.parsers import (
    count,
    flag,
    hexadecimal,
    is_lost,
    known,
    pcie_speed,
    pcie_width,
    shown,
    word,
)
from ...system.settings import value_in
from ..core.part import Part
from .sysfs_listing import ADDRESS, COMMAND, COMMAND_ALONE, LINK, NAMES, PATH, PORT_FILE, PROMPT, RDMA_ROW, files

BEGIN = (
    rf"^[ \t]*(?:(?:{PROMPT}|==> )?{PATH}(?::[^\n]|[ \t]+\S|[ \t]*\n)"
    rf"|{COMMAND}|{RDMA_ROW}|(?:l[rwx-]{{9}}[^\n]{{0,80}}[ \t])?[\w./:@+-]{{1,120}}[ \t]{{1,4}}(?:->[ \t])?{LINK}"
    r"|looking at (?:parent )?device '/devices/"
    rf"|(?:==> )?(?:\.{{1,2}}/){{0,6}}(?:{ADDRESS}/(?:(?:current|max)_link_\w{{5}}|numa_node)"
    rf"|{PORT_FILE}|nvme\d{{1,3}}/state(?=:[a-z])"
    r"|[a-z][\w.-]{1,15}/(?:speed|mtu|carrier))(?:[: \t=]+[0-9U]|:[a-z]| <==))"
)
ANY_LINE = rf"^[ \t]*(?:\./)?{NAMES}[ \t]{{0,40}}[:=]?[ \t]{{0,40}}[0-9U]"  # without the path of the function
_ORPHAN = re.compile(
    rf"^[ \t]{{0,40}}(?:\./)?(?P<name>{NAMES})[ \t]{{0,40}}[:=]?[ \t]{{0,40}}"
    r"(?P<value>[0-9U][^\n]{0,80}?)[ \t]{0,40}$",
    re.MULTILINE,
)
_EDAC = re.compile(r"/sys/devices/system/edac/mc/(mc[0-9]{1,3})/([cu]e_count)")
_COUNTER = re.compile(r"/sys/class/infiniband/([\w.-]+)/ports/([0-9]{1,3})/(?:hw_)?counters/(\w+)")
_FUNCTION = re.compile(rf"/sys/(?:bus/pci/devices|devices)/(?:.*/)?({ADDRESS})/(\w+)")
_ADAPTER = re.compile(r"/sys/class/infiniband/([\w.-]+)/hca_type")
_PORT = re.compile(r"/sys/class/infiniband/([\w.-]+)/ports/([0-9]{1,3})/(\w+)")
_NET = re.compile(r"/sys/class/net/([\w.-]+)/(\w+)")
_NET_COUNTER = re.compile(r"/sys/class/net/([\w.-]+)/(?:statistics/)?(\w+)")
_NET_COUNTERS = ("carrier_changes", "rx_errors", "tx_errors", "rx_crc_errors", "rx_bytes", "tx_bytes")
_NVME = re.compile(r"/sys/(?:class/nvme|block|devices/.*/nvme)/(nvme[0-9]{1,3})(?:n[0-9]{1,3}/device)?/(\w+)")
_OF_DEVICE = re.compile(r"/sys/class/(net|infiniband|drm|nvme)/([\w.-]+)/device/(\w+)")
_BRIDGE = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}")
_CLASSES: Mapping[str, type[Fact]] = {"net": Net, "infiniband": Rdma, "nvme": Nvme}
_RATE = re.compile(r"([0-9.]{1,8}) Gb/sec(?: \((.*)\))?")
_NUMBERED = re.compile(r"[0-9]+: (\S.*)")
_PLACEHOLDER = re.compile(r"\{\w+\}")


def read(part: Part) -> Iterator[Record]:
    """PCI functions, ports, network devices, drives and settings with the values in the text."""
    facts = _Facts()
    found, lines = list(files(part)), part.text.split("\n")
    yield from _orphans(part, facts, {one.number for one in found})
    for one in found:
        cite = part.cite(one.number, f"{one.path}: {one.text}")
        if one.link:
            facts.link(one.path, one.text, part.cite(one.number, lines[one.number]))
        elif counter := _COUNTER.fullmatch(one.path):
            about = f"{counter[1]}/{int(counter[2])}"
            facts.counts(Port, about)
            yield from _counted(part, about, counter[3], one.text, part.cite(one.number, lines[one.number]))
        elif counter := _EDAC.fullmatch(one.path) or _net_counter(one.path):
            if not _EDAC.fullmatch(one.path):
                facts.counts(Net, counter[1])
            yield from _counted(part, counter[1], counter[2], one.text, cite)
        elif adapter := _ADAPTER.fullmatch(one.path):
            yield Rdma(key=adapter[1], hca_type=word(one.text), cites={"hca_type": cite})
        else:
            yield from facts.add(one.path, one.text, cite)
    yield from facts.all()
    if not found and not facts.fields and not all(COMMAND_ALONE.match(line) for line in lines if line.strip()):
        why, how = "no line names the file of a value", "grep -r . FOLDER, which prints the paths"
        path = f"{part.where(0)}-{part.last}"
        yield NotChecked(what="files", subject="node", reason=Reason.UNREADABLE, path=path, detail=why, how=how)


def _net_counter(path: str) -> re.Match[str] | None:
    found = _NET_COUNTER.fullmatch(path)
    return found if found and found[2] in _NET_COUNTERS else None


def _orphans(part: Part, facts: _Facts, placed: Collection[int]) -> Iterator[Record]:
    """Attributes of a function whose path is missing. The key of the function is the line; a name that comes again is
    of the next function.
    """
    address, names = "", set[str]()
    for line, found in part.matches(_ORPHAN):
        if line in placed:
            continue
        if not address or found["name"] in names:
            address, names = part.where(line), set()
        names.add(found["name"])
        yield from facts.attribute(Pci, address, found["name"], found["value"], part.cite(line, found[0]))


def _counted(part: Part, about: str, quantity: str, text: str, where: Evidence) -> Iterator[Observation]:
    """A counter of a port or of a network device."""
    if re.fullmatch("[0-9]{1,20}", text):
        yield Observation(about=about, quantity=quantity, unit="count", value=float(text), at=part.at, evidence=where)


def _gigabits(text: str) -> float | None:
    """The rate of "400 Gb/sec (4X NDR)"; None for 0."""
    if not (found := _RATE.fullmatch(text)):
        raise ValueError(f"{shown(text)} is not a rate")
    return from_gigabits(float(found[1])) or None


def _lanes(text: str) -> str | None:
    return found[2] if (found := _RATE.fullmatch(text)) else None


def _named(text: str) -> str | None:
    """The name in "4: ACTIVE"."""
    if not (found := _NUMBERED.fullmatch(text)):
        raise ValueError(f"{shown(text)} is not a number and its name")
    return found[1]


def _layer(text: str) -> str | None:
    """The link layer in libibverbs' words: the kernel's "Unknown" (EFA) is "Unspecified" there."""
    return "Unspecified" if text == "Unknown" else word(text)


def _megabits(text: str) -> float | None:
    speed = known(text)
    return from_megabits(speed) if speed else None


def _operates(text: str) -> bool | None:
    """True for "up". "down" can be a device that is switched off."""
    return {"up": True, "lowerlayerdown": False}.get(text)


_Parse = Callable[[str], Any]
_PCI: Mapping[str, tuple[tuple[str, _Parse], ...]] = {
    "class": (("pci_class", hexadecimal),),
    "vendor": (("vendor", hexadecimal),),
    "device": (("device", hexadecimal),),
    "subsystem_vendor": (("subvendor", hexadecimal),),
    "subsystem_device": (("subdevice", hexadecimal),),
    "current_link_speed": (("speed", pcie_speed),),
    "current_link_width": (("width", pcie_width),),
    "max_link_speed": (("max_speed", pcie_speed),),
    "max_link_width": (("max_width", pcie_width),),
    "numa_node": (("numa", known),),
}
_PORTS: Mapping[str, tuple[tuple[str, _Parse], ...]] = {
    "state": (("state", _named),),
    "phys_state": (("physical_state", _named),),
    "rate": (("rate", _gigabits), ("lanes", _lanes)),
    "link_layer": (("link_layer", _layer),),
}
_NETS: Mapping[str, tuple[tuple[str, _Parse], ...]] = {
    "speed": (("speed", _megabits),),
    "mtu": (("mtu", count),),
    "carrier": (("carrier", flag),),
    "operstate": (("carrier", _operates),),
}
_DRIVES: Mapping[str, tuple[tuple[str, _Parse], ...]] = {
    "state": (("state", word),),
    "model": (("model", word),),
    "firmware_rev": (("firmware", word),),
}


class _Facts(Struct):
    """The fields so far, by kind and key of the fact."""

    fields: dict[tuple[type[Fact], str], dict[str, Any]] = field(default_factory=dict)
    cites: dict[tuple[type[Fact], str], dict[str, Evidence]] = field(default_factory=dict)
    links: dict[str, dict[str, str]] = field(default_factory=dict)  # link attributes of each function, as text

    def add(self, path: str, text: str, cite: Evidence) -> Iterator[Record]:
        """Add the value of a file. Yields a NotChecked if it is invalid."""
        kind, key, name, readers = _place(path)
        yield from self.attribute(kind, key, name, text, cite, path, readers)

    def attribute(
        self,
        kind: type[Fact],
        key: str,
        name: str,
        text: str,
        cite: Evidence,
        path: str = "",
        readers: Mapping[str, tuple[tuple[str, _Parse], ...]] | None = None,
    ) -> Iterator[Record]:
        """Add the value of an attribute. Without `readers`, it is one of a function."""
        try:
            if kind is Setting:
                self._setting(key, path, text, cite)
            for field_, parse in (_PCI if readers is None else readers).get(name, ()):
                if (value := parse(text)) is not None:
                    self._set(kind, key, field_, value, cite)
            if name in ("current_link_speed", "current_link_width"):
                self._link(key, name, text, cite)
        except ValueError as wrong:
            yield NotChecked(
                what=f"{kind_name(kind)}.{name}",
                subject=key,
                reason=Reason.UNREADABLE,
                path=cite.source,
                detail=f"{path or name}: {wrong}",
            )

    def all(self) -> Iterator[Record]:
        """The facts."""
        for (kind, key), fields in self.fields.items():
            if kind is Port:
                fields["device"] = key.partition("/")[0]
            if kind is Setting:
                fields = {"value": ", ".join(fields["value"])}
            yield kind(key=key, cites=self.cites[kind, key], **fields)

    def link(self, path: str, target: str, cite: Evidence) -> None:
        """Add the bridges above a device, and its driver's device, from the target of a link in /sys."""
        above, parts = "", target.partition("devices/")[2].split("/")
        for part in parts:
            if _BRIDGE.fullmatch(part):
                self.counts(HostBridge, part)
            elif not re.fullmatch(ADDRESS, part):
                break
            elif above:
                self._set(Pci, part, "parent", above, cite)
            above = part
        kind, name = _CLASSES.get(parts[-2] if len(parts) > 1 else ""), parts[-1]
        if kind and re.fullmatch(ADDRESS, above) and path.rpartition("/")[2] == name:
            self._set(kind, name, "address", above, cite)

    def counts(self, kind: type[Fact], key: str) -> None:
        """Add a port whose counters the text lists, also if it lists nothing else of it."""
        self.fields.setdefault((kind, key), {})
        self.cites.setdefault((kind, key), {})

    def _set(self, kind: type[Fact], key: str, name: str, value: Any, cite: Evidence) -> None:
        """Set a field. The first value counts."""
        if name not in (fields := self.fields.setdefault((kind, key), {})):
            fields[name] = value
            self.cites.setdefault((kind, key), {})[name] = cite

    def _setting(self, key: str, path: str, text: str, cite: Evidence) -> None:
        """Add a value of a setting. Parts with different values give several values."""
        value, _ = value_in(_rows()[key], text)
        self._set(Setting, key, "value", [], cite)
        values = self.fields[Setting, key]["value"]
        if value not in values:
            values.append(value)

    def _link(self, key: str, name: str, text: str, cite: Evidence) -> None:
        """Set `lost` once both texts are known: a function that does not answer has invalid values in both."""
        texts = self.links.setdefault(key, {})
        texts[name] = text
        if len(texts) == 2:
            lost = is_lost(texts["current_link_speed"], texts["current_link_width"])
            self._set(Pci, key, "lost", lost, cite)
            if lost:
                self.cites[Pci, key]["width"] = cite


def _place(path: str) -> tuple[type[Fact], str, str, Mapping[str, tuple[tuple[str, _Parse], ...]]]:
    """The kind and key of the fact for a path, the file name, and the parsers for such files."""
    if found := _FUNCTION.fullmatch(path):
        return Pci, found[1], found[2], _PCI
    if found := _PORT.fullmatch(path):
        return Port, f"{found[1]}/{int(found[2])}", found[3], _PORTS
    if found := _NET.fullmatch(path):
        return Net, found[1], found[2], _NETS
    if found := _NVME.fullmatch(path):
        return Nvme, found[1], found[2], _DRIVES
    if (found := _OF_DEVICE.fullmatch(path)) and found[3] in _PCI:
        return Pci, f"{found[1]}/{found[2]}", found[3], _PCI
    name = next((name for name, row in _rows().items() if any(_is(path, place) for place in row.paths)), "")
    return (Setting, name, "value", {}) if name else (Pci, "", "", {})


def _is(path: str, place: str) -> bool:
    return fnmatchcase(path[1:], _PLACEHOLDER.sub("*", place))


@cache
def _rows() -> Mapping[str, Row]:
    """Settings whose value is in one line of a file."""
    return {name: row for name, row in settings().items() if row.read in ("word", "bracket", "number") and row.paths}
