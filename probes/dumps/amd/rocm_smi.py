"""`rocm-smi`, as JSON (--json) and as text: https://github.com/ROCm/rocm_smi_lib, python_smi_tools/rocm_smi.py.

What is told depends on the options; names of fields differ between versions in their capitals. In the text each line
says which GPU it is of, and the topology stands in matrices. How many xGMI links join two GPUs it does not say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ....models.facts.gpu import Driver, Gpu
from ....models.facts.records import Evidence, NotChecked, Observation, Record
from ...parsing.nvml_enums import pci_address
from ...parsing.parsers import count, known, pcie_speed, pcie_width, word
from ..core.json_values import documents, object_of
from ..core.part import Part
from .amd_links import XGMI, AmdReading, Reach, say

_MATRICES = "(?:Weight|Hops|Link Type|Link type) between two GPUs"
_OBJECT = (
    r'\{\s{0,40}"(?:card[0-9]{1,3}"\s{0,4}:\s{0,4}\{|system"\s{0,4}:\s{0,4}\{\s{0,40}"(?:Driver version|\(Topology\)))'
)
BEGIN = (
    rf"^[ \t]*(?:{_OBJECT}|GPU ?(?:\[[0-9]{{1,3}}\]|[0-9]{{1,3}})[ \t]{{1,20}}: "
    rf"|={{4,}}[ ](?:ROCm System Management Interface|ROCm SMI.{{0,40}}|{_MATRICES}|Numa Nodes)[ ]={{4,}}"
    r"|Device[ ]{2,}(?:Node|\[Model)[ ]|GPU[ ]{2,8}Temp[ ]"
    r"|GPU[0-9]{1,3}(?:[ \t]{1,20}GPU[0-9]{1,3}){0,255}[ \t]*\n[ \t]*GPU[0-9]{1,3}[ \t]{1,20}0(?:[ \t]|$)"
    r"|[0-9]{1,3}[ ]{2,12}(?:[0-9]{1,3}[ ]{2,12}0x[0-9a-f]{2,6},|[0-9]{1,3}\.[0-9]c[ ]{2})[^\n]{10,160}%[ \t]*$)"
)
_JSON = re.compile(rf"^[ \t]*{_OBJECT}", re.MULTILINE)
_LINE = re.compile(r"[ \t]*GPU ?\[?([0-9]{1,3})\]?[ \t]{1,20}: ([^:]{1,60}):[ \t]*(\S.{0,200})")
_SYSTEM = re.compile(r"[ \t]*Driver version: (\S.{0,60})")
_HEAD = re.compile(rf"[ \t]*=+ ({_MATRICES}) =+[ \t]*")
_ROW = re.compile(r"[ \t]*GPU([0-9]{1,3})((?:[ \t]+(?:[0-9]{1,4}|[A-Z/]{3,7}))+)[ \t]*")
_CARD = re.compile(r"[ \t]*([0-9]{1,3})[ ]{2}.*%[ \t]*")
_BETWEEN = re.compile(r"\(Topology\) (Weight|Hops|Link type) between DRM devices ([0-9]{1,3}) and ([0-9]{1,3})")
_LINK = re.compile(r"[0-9]{1,2} \(([0-9]{1,2}\.[0-9])GT/s x([0-9]{1,2})\)")
_VERSION = re.compile(r"[0-9][\w.+-]{0,60}")
_NOTHING = ("", "N/A", "None", "unknown", "Not supported")
_NAMED = re.compile(r'"(card[0-9]{1,3}|system)"\s{0,4}:')


def _name(text: str) -> str | None:
    """Where pci.ids does not know the product, it is a number."""
    return None if text.startswith("0x") else word(text)


_FIELDS = {
    "pci bus": ("address", pci_address),
    "card series": ("name", _name),
    "vbios version": ("vbios", word),
    "vram total memory (b)": ("memory", count),
    "vram total used memory (b)": ("memory_used", count),
    "(topology) numa node": ("numa", known),
}


def read(part: Part) -> Iterator[Record]:
    """The GPUs, their driver, their links to the host and to each other, and how often packets were repeated."""
    reading = AmdReading(part)
    inside: set[int] = set()
    for one in documents(part, _JSON):
        if isinstance(one, NotChecked):
            reading.rest.append(one)
            continue
        text = part.text[one.begin : one.end]
        inside.update(range(one.line, one.line + text.count("\n") + 1))
        _read_json(reading, object_of(one.value), text, one.line)
    _read_text(reading, inside)
    for gpu, peers in sorted(reading.peers.items()):
        say(reading.found, gpu, peers, reading.addresses)
    yield from reading.found.said()
    yield from reading.rest


def _read_json(reading: AmdReading, whole: Mapping[str, object], text: str, first: int) -> None:
    lines: dict[str, int] = {}
    for number, named in Part("", 1, text).matches(_NAMED):
        lines.setdefault(named[1], first + number)
    for name, told in whole.items():
        card = re.fullmatch("card([0-9]{1,3})", name)
        for field_name, value in object_of(told).items():
            where = reading.part.cite(lines.get(name, first), f"{name}: {field_name}: {value}")
            if card and isinstance(value, (str, int)):
                _field(reading, int(card[1]), field_name, str(value), where)
            elif name == "system" and isinstance(value, (str, int)):
                _system(reading, field_name, str(value), where)


def _system(reading: AmdReading, name: str, value: str, where: Evidence) -> None:
    if name == "Driver version" and _VERSION.fullmatch(value):
        reading.found.say(Driver, "amdgpu", where, version=value)
    elif between := _BETWEEN.fullmatch(name):
        for a, b in ((between[2], between[3]), (between[3], between[2])):
            _reach(reading, between[1], int(a), int(b), value, where)


def _reach(reading: AmdReading, what: str, gpu: int, peer: int, value: str, where: Evidence) -> None:
    peers = reading.peers.setdefault(gpu, {})
    reach = peers.get(peer, Reach(where))
    if what.lower() == "link type" and value in (XGMI, "PCIE"):
        peers[peer] = replace(reach, kind=value)
    elif what in ("Weight", "Hops") and re.fullmatch("[0-9]{1,4}", value):
        peers[peer] = replace(reach, weight=int(value)) if what == "Weight" else replace(reach, hops=int(value))


def _field(reading: AmdReading, gpu: int, name: str, value: str, where: Evidence) -> None:
    """A line of a GPU, or a field of its object."""
    found, key, plain, text = reading.found, f"gpu{gpu}", name.strip().lower(), value.strip()
    found.say(Gpu, key, where)
    if text in _NOTHING:
        return
    if plain in _FIELDS:
        field_name, parse = _FIELDS[plain]
        found.take(Gpu, key, where, field_name, text, parse)
        if field_name == "address" and (address := found.facts[Gpu, key].get("address")):
            reading.addresses.setdefault(gpu, address[0])
    elif plain == "pcie clock level" and (link := _LINK.fullmatch(text)):
        found.take(Gpu, key, where, "pcie_speed", f"{link[1]} GT/s", pcie_speed)
        found.take(Gpu, key, where, "pcie_width", link[2], pcie_width)
    elif plain == "pcie replay count" and re.fullmatch("[0-9]{1,18}", text):
        reading.rest.append(
            Observation(
                about=key, quantity="pcie_replay", unit="count", value=float(text), at=reading.part.at, evidence=where
            )
        )


def _read_text(reading: AmdReading, inside: set[int]) -> None:
    """Lines of GPUs, matrices of pairs, and the table that rocm-smi prints by itself."""
    matrix = ""
    for number, line in reading.part.lines():
        if number in inside:
            continue
        where = reading.part.cite(number, line)
        if head := _HEAD.fullmatch(line):
            matrix = head[1].removesuffix(" between two GPUs")
        elif matrix and (row := _ROW.fullmatch(line)):
            for peer, cell in enumerate(row[2].split()):
                if peer != int(row[1]):
                    _reach(reading, matrix, int(row[1]), peer, cell, where)
        elif told := _LINE.fullmatch(line):
            _field(reading, int(told[1]), told[2], told[3], where)
        elif system := _SYSTEM.fullmatch(line):
            _system(reading, "Driver version", system[1].strip(), where)
        elif card := _CARD.fullmatch(line):
            reading.found.say(Gpu, f"gpu{int(card[1])}", where)
