"""Contents of files in /sys and /proc: "grep . PATH...", "PATH: value", or a cat command with its output."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from ....models.catalog.settings import Row, settings
from ....models.facts.machine import Net, Pci, Port, Setting
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

_ADDRESS = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_PATH = rf"/(?:sys|proc)(?:/(?:{_ADDRESS}|pci[0-9a-f]{{4,8}}:[0-9a-f]{{2}}|[\w.,+@-]{{1,80}})){{2,16}}"
_PROMPT = r"(?:\S{0,60}[$#] )?(?:sudo )?(?:cat|head|more) "
BEGIN = (
    rf"^[ \t]*(?:(?:{_PROMPT}|==> )?{_PATH}(?::[^\n]|[ \t]+\S|[ \t]*\n)"
    r"|looking at (?:parent )?device '/devices/"
    rf"|(?:==> )?(?:\.{{1,2}}/){{0,6}}(?:{_ADDRESS}/(?:(?:current|max)_link_\w{{5}}|numa_node)"
    r"|[\w.-]{1,40}/ports/\d{1,3}/(?:state|phys_state|rate|link_layer|(?:hw_)?counters/\w{1,60})"
    r"|[a-z][\w.-]{1,15}/(?:speed|mtu|carrier))(?:[: \t=]+[0-9U]| <==))"
)
_NAMES = "(?:current|max)_link_(?:speed|width)"
ANY_LINE = rf"^[ \t]*(?:\./)?{_NAMES}[ \t]*[:=]?[ \t]*[0-9U]"  # without the path of the function
# Paths relative to /sys/bus/pci/devices, /sys/class/infiniband and /sys/class/net, of grep, head and loops.
_ATTRIBUTE = rf"(?:{_NAMES}|class|vendor|device|subsystem_\w{{1,20}}|numa_node)"
_PORT_FILE = r"[\w.-]{1,40}/ports/\d{1,3}/(?:state|phys_state|rate|link_layer|(?:hw_)?counters/\w{1,60})"
_BEFORE = r"[ \t]*(?:==> )?(?:\./|(?:\.\./){1,6})?"
_RELATIVE = tuple(
    (re.compile(rf"{_BEFORE}({form})(?=[: \t=])"), folder)
    for form, folder in (
        (rf"{_ADDRESS}/{_ATTRIBUTE}", "/sys/bus/pci/devices/"),
        (_PORT_FILE, "/sys/class/infiniband/"),
        (r"[a-z][\w.-]{1,15}/(?:speed|mtu|carrier)", "/sys/class/net/"),
    )
)
_UDEV_DEVICE = re.compile(r"[ \t]*looking at (?:parent )?device '(/devices/[^'\n]{1,300})':")
_UDEV_ATTRIBUTE = re.compile(r"[ \t]*ATTRS?\{(\w{1,60})\}==\"([^\"\n]{0,200})\"")
_ORPHAN = re.compile(
    rf"^[ \t]*(?:\./)?(?P<name>{_NAMES})[ \t]*[:=]?[ \t]*(?P<value>[0-9U][^\n]*?)[ \t]*$", re.MULTILINE
)
_MARKED = re.compile(rf"^[ \t]*==> ({_PATH}) <==[ \t]*$", re.MULTILINE)  # head and tail of several files
_LINE = re.compile(rf"^[ \t]*(?P<cat>{_PROMPT})?(?P<path>{_PATH})(?P<rest>:[^\n]*|[ \t]+[^\n]*|)\n?", re.MULTILINE)
_NEXT = re.compile(r"[^\n]*")
_PATH_ALONE = re.compile(rf"[ \t]*(?:{_PROMPT})?{_PATH}")
_COUNTER = re.compile(r"/sys/class/infiniband/([\w.-]+)/ports/([0-9]{1,3})/(?:hw_)?counters/(\w+)")
_FUNCTION = re.compile(rf"/sys/(?:bus/pci/devices|devices)/(?:.*/)?({_ADDRESS})/(\w+)")
_PORT = re.compile(r"/sys/class/infiniband/([\w.-]+)/ports/([0-9]{1,3})/(\w+)")
_NET = re.compile(r"/sys/class/net/([\w.-]+)/(\w+)")
_RATE = re.compile(r"([0-9.]{1,8}) Gb/sec(?: \((.*)\))?")
_NUMBERED = re.compile(r"[0-9]+: (\S.*)")
_PLACEHOLDER = re.compile(r"\{\w+\}")


def _absolute(line: str) -> str:
    """A line with a path relative to the folder of the class, or an attribute of udevadm, with its whole path."""
    for form, folder in _RELATIVE:
        if found := form.match(line):
            return f"{'==> ' if '==> ' in found[0] else ''}{folder}{line[found.start(1) :]}"
    return line


def _of_udevadm(lines: Iterable[str]) -> Iterator[str]:
    """The lines of `udevadm info -a` as "PATH: value"."""
    device = ""
    for line in lines:
        if found := _UDEV_DEVICE.match(line):
            device = found[1]
        attribute = _UDEV_ATTRIBUTE.match(line) if device else None
        yield f"/sys{device}/{attribute[1]}: {attribute[2]}" if attribute else line


def read(part: Part) -> Iterator[Record]:
    """PCI functions, ports, network devices and settings with the values in the text."""
    facts = _Facts()
    lines = map(_absolute, _of_udevadm(part.text.split("\n")))
    part = replace(part, text=_MARKED.sub(r"cat \1", "\n".join(lines)))
    yield from _orphans(part, facts)
    for line, found in part.matches(_LINE):
        path, rest = found["path"], found["rest"]
        number = line
        if counter := _COUNTER.fullmatch(path):
            yield from _counted(part, counter, rest.lstrip(":= \t").rstrip(), part.cite(line, found[0]))
            continue
        if found["cat"] or not rest.strip():
            answer = _NEXT.match(part.text, found.end())
            rest, number = (answer[0] if answer else ""), line + 1
            if not rest or path in rest or _PATH_ALONE.match(rest):  # "cat: PATH: No such file or directory"
                continue
        value = rest.lstrip(":= \t").rstrip()
        if value and "No such file" not in value and "Permission denied" not in value:
            shown_line = f"{path}: {value}"
            yield from facts.add(path, value, part.cite(number, shown_line))
    yield from facts.all()


def _orphans(part: Part, facts: _Facts) -> Iterator[Record]:
    """Attributes of a function whose path is missing. The key of the function is the line; a name that comes again is
    of the next function.
    """
    address, names = "", set[str]()
    for line, found in part.matches(_ORPHAN):
        if not address or found["name"] in names:
            address, names = part.where(line), set()
        names.add(found["name"])
        yield from facts.attribute(Pci, address, found["name"], found["value"], part.cite(line, found[0]))


def _counted(part: Part, counter: re.Match[str], text: str, where: Evidence) -> Iterator[Observation]:
    """A counter of a port."""
    if re.fullmatch("[0-9]{1,20}", text):
        about = f"{counter[1]}/{int(counter[2])}"
        yield Observation(about=about, quantity=counter[3], unit="count", value=float(text), at=part.at, evidence=where)


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
}


@dataclass(slots=True)
class _Facts:
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
    name = next((name for name, row in _rows().items() if any(_is(path, place) for place in row.paths)), "")
    return (Setting, name, "value", {}) if name else (Pci, "", "", {})


def _is(path: str, place: str) -> bool:
    return fnmatchcase(path[1:], _PLACEHOLDER.sub("*", place))


@cache
def _rows() -> Mapping[str, Row]:
    """Settings whose value is in one line of a file."""
    return {name: row for name, row in settings().items() if row.read in ("word", "bracket", "number") and row.paths}
