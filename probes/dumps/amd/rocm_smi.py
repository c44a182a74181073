"""`rocm-smi`, as JSON (--json) and as text: https://github.com/ROCm/rocm_smi_lib, python_smi_tools/rocm_smi.py.

The options determine the fields. The capital letters in field names differ between versions. In the text format, each
line names its GPU, and the topology is in matrices. The tool does not print the number of xGMI links between two GPUs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from ....models.facts.gpu import Driver, Gpu
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, NotChecked, Observation, Record
from ....models.facts.units import MIB
from ...parsing.nvml_enums import pci_address
from ...parsing.parsers import count, known, pcie_speed, pcie_width, shown, word
from ..core.json_values import documents, object_of
from ..core.part import Part
from .amd_links import XGMI, AmdReading, Connection, add_links

_TITLE = "between two GPUs"
_MATRICES = "(?:Weight|Hops|Link Type|Link type) between two GPUs"
_OBJECT = (
    r'\{\s{0,40}"(?:card[0-9]{1,3}"\s{0,4}:\s{0,4}\{|system"\s{0,4}:\s{0,4}\{\s{0,40}"(?:Driver version|\(Topology\)))'
)
BEGIN = (
    rf"^[ \t]*(?:{_OBJECT}|GPU ?(?:\[[0-9]{{1,3}}\]|[0-9]{{1,3}})[ \t]{{1,20}}: "
    r"|GPU ?\[[0-9]{1,3}\][ \t]{0,8}:[ \t]*(?:RAS INFO|Block[ ]{1,20}Status)"
    rf"|={{4,}}[ ](?:ROCm System Management Interface|ROCm SMI.{{0,40}}|{_MATRICES}|Numa Nodes)[ ]={{4,}}"
    r"|Device[ ]{1,16}(?:Node|\[Model)[ ]|GPU[ ]{1,8}Temp[ ]"
    r"|GPU[0-9]{1,3}(?:[ \t]{1,20}GPU[0-9]{1,3}){0,255}[ \t]*\n[ \t]*GPU[0-9]{1,3}[ \t]{1,20}0(?:[ \t]|$)"
    r"|[0-9]{1,3}[ ]{1,12}(?:[0-9]{1,3}[ ]{1,12}0x[0-9a-f]{2,6},|[0-9]{1,3}\.[0-9]c[ ]{1,2})[^\n]{10,160}%[ \t]*$)"
)
_JSON = re.compile(rf"^[ \t]*{_OBJECT}", re.MULTILINE)
_LINE = re.compile(r"[ \t]*GPU ?\[?([0-9]{1,3})\]?[ \t]{1,20}: ([^:]{1,60}):[ \t]*(\S.{0,200})")
_SYSTEM = re.compile(r"[ \t]*Driver version: (\S.{0,60})")
_HEAD = re.compile(rf"[ \t]*=+ ({_MATRICES}) =+[ \t]*")
_ROW = re.compile(r"[ \t]*GPU([0-9]{1,3})((?:[ \t]+(?:[0-9]{1,4}|[A-Z/]{3,7}))+)[ \t]*")
_CARD = re.compile(r"[ \t]*([0-9]{1,3})[ ]{2}.*%[ \t]*")
_DEGREES = re.compile(r"(?<![\w.])([0-9]{1,3}\.[0-9])[cC](?!\w)")
# A GPU that answers nothing, in the table without options
_MUTE = re.compile(
    r"[ \t]*[0-9]{1,3}[ ]{2}(?:.{0,80}[ ]{2})?N/A[ ]{2,20}.{0,80}\bNone\b.{0,60}\b(?:unknown|N/A)\b"
    r".{0,60}\bUnsupported\b.{0,80}%[ \t]*"
)
# `rocm-smi --showrasinfo`: a title per GPU, and a row per block
_RAS = re.compile(r"[ \t]*GPU ?\[([0-9]{1,3})\][ \t]{0,8}:[ \t]*(?:RAS INFO)?[ \t]*")
_RAS_ROW = re.compile(
    r"(?:[ \t]*GPU ?\[(?P<gpu>[0-9]{1,3})\][ \t]{0,8}:)?[ \t]*(?P<block>[A-Z][A-Z0-9_]{1,15})[ \t]+(?:ENABLED|DISABLED)"
    r"[ \t]+(?P<corrected>[0-9]{1,18})[ \t]+(?P<uncorrected>[0-9]{1,18})[ \t]*"
)
_BLOCKS = frozenset(  # amdgpu_ras.c: ras_block_string
    ("UMC", "SDMA", "GFX", "MMHUB", "ATHUB", "PCIE_BIF", "HDP", "XGMI_WAFL", "DF", "SMN", "SEM", "MP0", "MP1", "FUSE")
    + ("MCA", "VCN", "JPEG", "IH", "MPIO", "MMSCH")
)
_BETWEEN = re.compile(r"\(Topology\) (Weight|Hops|Link type) between DRM devices ([0-9]{1,3}) and ([0-9]{1,3})")
_LINK = re.compile(r"[0-9]{1,2} \(([0-9]{1,2}\.[0-9])GT/s x([0-9]{1,2})\)")
_VERSION = re.compile(r"[0-9][\w.+-]{0,60}")
_NOTHING = ("", "N/A", "None", "unknown", "Not supported")
_NAMED = re.compile(r'"(card[0-9]{1,3}|system)"\s{0,4}:')


def _name(text: str) -> str | None:
    """The product name; None if it is a number, which means that pci.ids does not know the product."""
    return None if text.startswith("0x") else word(text)


def _memory(text: str) -> int:
    """Bytes of memory. The driver reads MiB from the GPU (amdgpu_gmc.c): another number is damaged."""
    if (size := count(text)) % MIB:
        raise ValueError(f"{shown(text)} bytes are no memory of a GPU, which has whole MiB")
    return size


_FIELDS = {
    "pci bus": ("address", pci_address),
    "card series": ("name", _name),
    "vbios version": ("vbios", word),
    "vram total memory (b)": ("memory", _memory),
    "vram total used memory (b)": ("memory_used", count),
    "(topology) numa node": ("numa", known),
}


def read(part: Part) -> Iterator[Record]:
    """The GPUs, their driver, their links to the host and to each other, and their replay counters."""
    reading = AmdReading(part)
    inside: set[int] = set()
    for one in documents(part, _JSON):
        if isinstance(one, NotChecked):
            reading.other_records.append(one)
            continue
        text = part.text[one.begin : one.end]
        inside.update(range(one.line, one.line + text.count("\n") + 1))
        _read_json(reading, object_of(one.value), text, one.line)
    _read_text(reading, inside)
    for gpu, peers in sorted(reading.peers.items()):
        add_links(reading.found, gpu, peers, reading.addresses)
    yield from reading.found.records()
    yield from reading.other_records


def _read_json(reading: AmdReading, whole: Mapping[str, object], text: str, first: int) -> None:
    lines: dict[str, int] = {}
    for number, named in Part("", 1, text).matches(_NAMED):
        lines.setdefault(named[1], first + number)
    for name, members in whole.items():
        card = re.fullmatch("card([0-9]{1,3})", name)
        for field_name, value in object_of(members).items():
            where = reading.part.cite(lines.get(name, first), f"{name}: {field_name}: {value}")
            if card and isinstance(value, (str, int)):
                _field(reading, int(card[1]), field_name, str(value), where)
            elif name == "system" and isinstance(value, (str, int)):
                _system(reading, field_name, str(value), where)


def _system(reading: AmdReading, name: str, value: str, where: Evidence) -> None:
    if name == "Driver version" and _VERSION.fullmatch(value):
        reading.found.add(Driver, "amdgpu", where, version=value)
    elif between := _BETWEEN.fullmatch(name):
        for a, b in ((between[2], between[3]), (between[3], between[2])):
            _connection(reading, between[1], int(a), int(b), value, where)


def _connection(reading: AmdReading, what: str, gpu: int, peer: int, value: str, where: Evidence) -> None:
    peers = reading.peers.setdefault(gpu, {})
    connection = peers.get(peer, Connection(where))
    if what.lower() == "link type" and value in (XGMI, "PCIE"):
        peers[peer] = replace(connection, kind=value)
    elif what in ("Weight", "Hops") and re.fullmatch("[0-9]{1,4}", value):
        peers[peer] = (
            replace(connection, weight=int(value)) if what == "Weight" else replace(connection, hops=int(value))
        )


def _field(reading: AmdReading, gpu: int, name: str, value: str, where: Evidence) -> None:
    """One line of a GPU, or one field of its object."""
    found, key, plain, text = reading.found, f"gpu{gpu}", name.strip().lower(), value.strip()
    found.add(Gpu, key, where)
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
        reading.other_records.append(
            Observation(
                about=key, quantity="pcie_replay", unit="count", value=float(text), at=reading.part.at, evidence=where
            )
        )


def _read_text(reading: AmdReading, inside: set[int]) -> None:
    """Read the lines of GPUs, the matrices of pairs, and the table of `rocm-smi` without options."""
    matrix, owner = "", ""
    errors: dict[tuple[str, str], dict[str, tuple[int, Evidence]]] = {}
    for number, line in reading.part.lines():
        if number in inside:
            continue
        where = reading.part.cite(number, line)
        if head := _HEAD.fullmatch(line):
            matrix = head[1].removesuffix(f" {_TITLE}")
        elif _TITLE in line:
            matrix = ""
            reading.other_records.append(_damaged("GpuLink", where, "the heading of a matrix is damaged"))
        elif matrix and (row := _ROW.fullmatch(line)):
            for peer, cell in enumerate(row[2].split()):
                if peer != int(row[1]):
                    _connection(reading, matrix, int(row[1]), peer, cell, where)
        elif found := _LINE.fullmatch(line):
            _field(reading, int(found[1]), found[2], found[3], where)
        elif system := _SYSTEM.fullmatch(line):
            _system(reading, "Driver version", system[1].strip(), where)
        elif card := _CARD.fullmatch(line):
            failure = "the driver shows none of its values" if _MUTE.fullmatch(line) else None
            degrees = float(warm[1]) if (warm := _DEGREES.search(line)) else None
            reading.found.add(Gpu, f"gpu{int(card[1])}", where, failure=failure, temperature=degrees)
        elif title := _RAS.fullmatch(line):
            owner = f"gpu{int(title[1])}"
        elif ras := _RAS_ROW.fullmatch(line):
            owner = f"gpu{int(ras['gpu'])}" if ras["gpu"] else owner
            if ras["block"] in _BLOCKS:
                _errors(errors, owner or "gpu", ras, where)
            else:
                reading.other_records.append(_damaged("Gpu.ecc", where, f"{ras['block']} is no block of a GPU"))
    for (gpu, name), blocks in errors.items():
        largest = max(blocks.values(), key=lambda block: block[0])
        reading.found.add(Gpu, gpu, largest[1], **{name: sum(count for count, _ in blocks.values())})


def _damaged(what: str, where: Evidence, why: str) -> NotChecked:
    return NotChecked(what=what, subject="node", reason=Reason.UNREADABLE, path=where.source, detail=why)


def _errors(
    errors: dict[tuple[str, str], dict[str, tuple[int, Evidence]]], gpu: str, row: re.Match[str], where: Evidence
) -> None:
    """Keep the errors of a block. Of several rows of a block, the largest count is kept: the count does not fall."""
    for name in ("corrected", "uncorrected"):
        blocks, new = errors.setdefault((gpu, f"ecc_{name}"), {}), int(row[name])
        if row["block"] not in blocks or new > blocks[row["block"]][0]:
            blocks[row["block"]] = new, where
