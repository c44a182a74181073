"""`amd-smi` list, static, metric, topology and xgmi, as JSON and as text: https://github.com/ROCm/amdsmi, amdsmi_cli.

The text of the first three has the names of the JSON in capitals, and is read as if it were one. `xgmi` tells ports by
their own numbers, and calls ports down that work: what is not up there is kept as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ....models.facts.gpu import Driver, Gpu
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, NotChecked, Observation, Record
from ....models.facts.units import MIB, from_gigabits
from ...parsing.nvml_enums import pci_address
from ...parsing.parsers import pcie_speed, pcie_width, word
from ..core.fields import Fields
from ..core.json_values import documents, list_of, object_of
from ..core.part import Part
from . import amd_tables
from .amd_links import XGMI, AmdReading, Reach, say

_ENTRY = r'\[\s{0,40}(?:\[\s{0,40})?\{\s{0,40}"gpu"\s{0,4}:\s{0,4}[0-9]'
_OBJECT = rf'(?:{_ENTRY}|\{{\s{{0,40}}"[a-z_]{{3,24}}"\s{{0,4}}:\s{{0,40}}{_ENTRY})'
BEGIN = rf"^[ \t]*(?:{_OBJECT}|GPU: [0-9]{{1,3}}[ \t]{{0,40}}\n[ ]{{2,8}}[A-Z_]{{3,20}}:|{amd_tables.HEADS}:[ \t]*$)"
_JSON = re.compile(rf"^[ \t]*{_OBJECT}", re.MULTILINE)
_GPU = re.compile(r"[ \t]*GPU: ([0-9]{1,3})[ \t]*")
_LINE = re.compile(r"( {2,40})([A-Z0-9_]{2,40}):(?: (.{0,400}))?")
_NUMBER = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?) ?([A-Za-z/]{0,6})")
_SPAN = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
_NOTHING = ("", "N/A", "None")
_DEPTH = 4


def read(part: Part) -> Iterator[Record]:
    """The GPUs, their driver, their links to the host and to each other, and what they counted."""
    reading = AmdReading(part)
    end = 0
    for one in documents(part, _JSON):
        if isinstance(one, NotChecked):
            reading.rest.append(one)
        else:
            _walk(reading, one.value, one.line, 0)
            end = one.end
    _read_text(reading, end)
    for gpu, peers in sorted(reading.peers.items()):
        say(reading.found, gpu, peers, reading.addresses)
    yield from reading.found.said()
    yield from reading.rest


def _walk(reading: AmdReading, value: object, line: int, depth: int) -> None:
    """Each object of a GPU, wherever the version of the tool has put it."""
    told = object_of(value)
    if isinstance(gpu := told.get("gpu"), int) and not isinstance(gpu, bool) and 0 <= gpu < 1000:
        _entry(reading, gpu, told, line)
    elif depth < _DEPTH:
        for one in (*list_of(value), *told.values()):
            _walk(reading, one, line, depth + 1)


def _read_text(reading: AmdReading, begin: int) -> None:
    """What stands behind the JSON texts, or alone: entries of GPUs, and tables."""
    part = reading.part
    first = part.text.count("\n", 0, begin)
    lines = part.text[begin:].split("\n")
    gpu, start, entry = -1, 0, dict[str, Any]()
    open_at: list[tuple[int, dict[str, Any]]] = []
    for number, line in enumerate(lines, first):
        begun, told = _GPU.fullmatch(line), _LINE.fullmatch(line)
        if begun:
            _entry(reading, gpu, entry, start)
            gpu, start, entry = int(begun[1]), number, {}
            open_at = [(0, entry)]
        elif told and open_at:
            while len(open_at) > 1 and open_at[-1][0] >= len(told[1]):
                open_at.pop()
            name, text = told[2].lower(), (told[3] or "").strip()
            open_at[-1][1].setdefault(name, text or {})
            if not text and isinstance(below := open_at[-1][1][name], dict):
                open_at.append((len(told[1]), below))
        elif not line.startswith(" "):
            open_at = []
    _entry(reading, gpu, entry, start)
    for gpu, address, peers in amd_tables.reaches(part, lines, first):
        reading.addresses.setdefault(gpu, address)
        reading.peers.setdefault(gpu, {}).update(peers)


def _entry(reading: AmdReading, gpu: int, told: Mapping[str, Any], line: int) -> None:
    """What is said of a GPU. A partition of one is none of its own."""
    if gpu < 0 or _number(told.get("partition_id")) not in (None, 0):
        return
    found, key = reading.found, f"gpu{gpu}"
    bus, pcie, memory = object_of(told.get("bus")), object_of(told.get("pcie")), object_of(told.get("mem_usage"))
    where = reading.part.cite(line, f"gpu: {gpu}")
    found.say(Gpu, key, where)
    address = told.get("bdf", bus.get("bdf"))
    if isinstance(address, str) and address not in _NOTHING:
        found.take(Gpu, key, where, "address", address, pci_address)
        if known := found.facts[Gpu, key].get("address"):
            reading.addresses.setdefault(gpu, known[0])
    board, asic = object_of(told.get("board")), object_of(told.get("asic"))
    firmware = object_of(told.get("vbios"))
    for name, texts in (
        ("uuid", (told.get("uuid"),)),
        ("name", (board.get("product_name"), asic.get("market_name"))),
        ("vbios", (firmware.get("version"), firmware.get("vbios_version"))),
    ):
        if text := next((text for text in texts if isinstance(text, str) and text.strip() not in _NOTHING), None):
            found.take(Gpu, key, where, name, text, word)
    _link(found, key, where, pcie, ("pcie_width", "width", "current_lanes"), ("pcie_speed", "speed", "current_speed"))
    _link(found, key, where, bus, ("pcie_max_width", "max_pcie_width"), ("pcie_own_max_speed", "max_pcie_speed"))
    vram = _number(object_of(told.get("vram")).get("size")) or _number(memory.get("total_vram"))
    found.say(Gpu, key, where, memory=_size(vram), memory_used=_size(_number(memory.get("used_vram"))))
    node = _number(object_of(told.get("numa")).get("node"))
    found.say(Gpu, key, where, numa=None if node is None else int(node))
    _driver(found, object_of(told.get("driver")), where)
    _counters(reading, key, told, pcie, where)
    _peers(reading, gpu, told, where)


def _size(mebibytes: float | None) -> int | None:
    """What the tool calls MB are 2^20 bytes."""
    return None if mebibytes is None else int(mebibytes) * MIB


def _number(value: object, unit: str = "") -> float | None:
    """A number, alone or as {"value": 32, "unit": "GT/s"} or "32 GT/s"; with a unit, in that unit alone."""
    told = object_of(value)
    text = f"{told.get('value', '')} {told.get('unit', '')}".strip() if told else str(value)
    match = None if isinstance(value, bool) else _NUMBER.fullmatch(text)
    return float(match[1]) if match and (not unit or match[2] == unit) else None


def _link(
    found: Fields, key: str, where: Evidence, told: Mapping[str, Any], widths: tuple[str, ...], speeds: tuple[str, ...]
) -> None:
    """The first of each is the field, the others what versions of the tool call it."""
    lanes = next((one for name in widths[1:] if (one := _number(told.get(name)))), None)
    speed = next((one for name in speeds[1:] if (one := _number(told.get(name), "GT/s"))), None)
    if lanes:
        found.take(Gpu, key, where, widths[0], f"{lanes:.0f}", pcie_width)
    if speed:
        found.take(Gpu, key, where, speeds[0], f"{speed:g} GT/s", pcie_speed)


def _driver(found: Fields, told: Mapping[str, Any], where: Evidence) -> None:
    name = next((told[name] for name in ("name", "driver_name") if name in told), "")
    version = next((told[name] for name in ("version", "driver_version") if name in told), "")
    if name == "amdgpu" and isinstance(version, str) and re.fullmatch(r"[0-9][\w.+-]{0,60}", version):
        found.say(Driver, "amdgpu", where, version=version)


def _counters(reading: AmdReading, key: str, told: Mapping[str, Any], pcie: Mapping[str, Any], where: Evidence) -> None:
    errors = object_of(told.get("ecc"))
    for name, quantity, counted in (
        ("ecc_corrected", "ecc_corrected", errors.get("total_correctable_count")),
        ("ecc_uncorrected", "ecc_uncorrected", errors.get("total_uncorrectable_count")),
        ("", "pcie_replay", pcie.get("replay_count")),
    ):
        if (count := _number(counted)) is not None:
            seen = Evidence(where.source, f"{key} {quantity}: {count:.0f}")
            if name:
                reading.found.say(Gpu, key, seen, **{name: int(count)})
            reading.rest.append(
                Observation(about=key, quantity=quantity, unit="count", value=count, at=reading.part.at, evidence=seen)
            )


def _peers(reading: AmdReading, gpu: int, told: Mapping[str, Any], where: Evidence) -> None:
    """Of topology, in its present and its first form, and of xgmi."""
    peers = reading.peers.setdefault(gpu, {})
    for link in map(object_of, list_of(told.get("links"))):
        if isinstance(peer := link.get("gpu"), int) and link.get("link_type") in (XGMI, "PCIE"):
            peers[peer] = _reach(link, where)
    for name, kind in object_of(told.get("link_type")).items():
        if re.fullmatch("gpu_[0-9]{1,3}", name) and kind in (XGMI, "PCIE"):
            old = {"link_status": "link_accessibility", "num_hops": "hops", "bandwidth": "numa_bandwidth"}
            same = {now: object_of(told.get(before)).get(name) for now, before in old.items()}
            weight = object_of(told.get("weight")).get(name)
            peers[int(name[4:])] = _reach({**same, "link_type": kind, "weight": weight}, where)
    _metrics(peers, gpu, object_of(told.get("link_metrics")), where)
    states = told.get("link_status")
    if down := [str(place) for place, state in enumerate(list_of(states)) if re.search("[DX]", str(state))]:
        why = f"amd-smi does not show as up the xGMI ports {', '.join(down)} of GPU {gpu}"
        how = "amd-smi topology; a copy between each two GPUs (rocm-bandwidth-test, TransferBench)"
        reading.rest.append(
            NotChecked(
                what="GpuLink.active", subject=f"gpu{gpu}", reason=Reason.OTHER, path=where.source, detail=why, how=how
            )
        )


def _reach(link: Mapping[str, Any], where: Evidence) -> Reach:
    span = _SPAN.fullmatch(str(link.get("bandwidth")))
    hops, weight = _number(link.get("num_hops")), _number(link.get("weight"))
    return Reach(
        where=where,
        kind=link.get("link_type"),
        hops=None if hops is None else int(hops),
        weight=None if weight is None else int(weight),
        one=int(span[1]) if span else None,
        all_of_them=int(span[2]) if span else None,
        access={"ENABLED": True, "DISABLED": False}.get(str(link.get("link_status"))),
    )


def _metrics(peers: dict[int, Reach], gpu: int, told: Mapping[str, Any], where: Evidence) -> None:
    """Those peers to which bytes are counted are joined; `topology` knows more of them."""
    rate = _number(told.get("max_bandwidth"), "Gb/s")
    for link in map(object_of, list_of(told.get("links"))) if told.get("link_type") == XGMI else ():
        peer = link.get("gpu")
        if isinstance(peer, int) and peer != gpu and peer not in peers and _number(link.get("read")) is not None:
            peers[peer] = Reach(where, XGMI, hops=1, rate=from_gigabits(rate) if rate else None)
