"""`amd-smi` list, static, metric, topology and xgmi, as JSON and as text: https://github.com/ROCm/amdsmi, amdsmi_cli.

The text output of the first three has the names of the JSON in capitals. It is parsed into the same structure. `xgmi`
has its own numbers for ports and reports working ports as down. Ports that it does not report as up become a
NotChecked.
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
from ..core.fields import FactCollector
from ..core.json_values import documents, list_of, object_of
from ..core.part import Part
from . import amd_tables
from .amd_links import XGMI, AmdReading, Connection, add_links

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
    """The GPUs, their driver, their links to the host and to each other, and their counters."""
    reading = AmdReading(part)
    end = 0
    for one in documents(part, _JSON):
        if isinstance(one, NotChecked):
            reading.other_records.append(one)
        else:
            _walk(reading, one.value, one.line, 0)
            end = one.end
    _read_text(reading, end)
    for gpu, peers in sorted(reading.peers.items()):
        add_links(reading.found, gpu, peers, reading.addresses)
    yield from reading.found.records()
    yield from reading.other_records


def _walk(reading: AmdReading, value: object, line: int, depth: int) -> None:
    """Find the object of each GPU. Its depth depends on the version of the tool."""
    members = object_of(value)
    if isinstance(gpu := members.get("gpu"), int) and not isinstance(gpu, bool) and 0 <= gpu < 1000:
        _entry(reading, gpu, members, line)
    elif depth < _DEPTH:
        for one in (*list_of(value), *members.values()):
            _walk(reading, one, line, depth + 1)


def _read_text(reading: AmdReading, begin: int) -> None:
    """Read the text after the JSON documents, or the whole text if there are none: GPU entries and tables."""
    part = reading.part
    first = part.text.count("\n", 0, begin)
    lines = part.text[begin:].split("\n")
    gpu, start, entry = -1, 0, dict[str, Any]()
    open_at: list[tuple[int, dict[str, Any]]] = []
    for number, line in enumerate(lines, first):
        gpu_line, found = _GPU.fullmatch(line), _LINE.fullmatch(line)
        if gpu_line:
            _entry(reading, gpu, entry, start)
            gpu, start, entry = int(gpu_line[1]), number, {}
            open_at = [(0, entry)]
        elif found and open_at:
            while len(open_at) > 1 and open_at[-1][0] >= len(found[1]):
                open_at.pop()
            name, text = found[2].lower(), (found[3] or "").strip()
            open_at[-1][1].setdefault(name, text or {})
            if not text and isinstance(below := open_at[-1][1][name], dict):
                open_at.append((len(found[1]), below))
        elif not line.startswith(" "):
            open_at = []
    _entry(reading, gpu, entry, start)
    for gpu, address, peers in amd_tables.connections(part, lines, first):
        reading.addresses.setdefault(gpu, address)
        reading.peers.setdefault(gpu, {}).update(peers)


def _entry(reading: AmdReading, gpu: int, members: Mapping[str, Any], line: int) -> None:
    """Collect the values of one GPU. A partition is not a GPU of its own."""
    if gpu < 0 or _number(members.get("partition_id")) not in (None, 0):
        return
    found, key = reading.found, f"gpu{gpu}"
    bus, pcie, memory = (
        object_of(members.get("bus")),
        object_of(members.get("pcie")),
        object_of(members.get("mem_usage")),
    )
    where = reading.part.cite(line, f"gpu: {gpu}")
    found.add(Gpu, key, where)
    address = members.get("bdf", bus.get("bdf"))
    if isinstance(address, str) and address not in _NOTHING:
        found.take(Gpu, key, where, "address", address, pci_address)
        if known := found.facts[Gpu, key].get("address"):
            reading.addresses.setdefault(gpu, known[0])
    board, asic = object_of(members.get("board")), object_of(members.get("asic"))
    firmware = object_of(members.get("vbios"))
    for name, texts in (
        ("uuid", (members.get("uuid"),)),
        ("name", (board.get("product_name"), asic.get("market_name"))),
        ("vbios", (firmware.get("version"), firmware.get("vbios_version"))),
    ):
        if text := next((text for text in texts if isinstance(text, str) and text.strip() not in _NOTHING), None):
            found.take(Gpu, key, where, name, text, word)
    _link(found, key, where, pcie, ("pcie_width", "width", "current_lanes"), ("pcie_speed", "speed", "current_speed"))
    _link(found, key, where, bus, ("pcie_max_width", "max_pcie_width"), ("pcie_own_max_speed", "max_pcie_speed"))
    vram = _number(object_of(members.get("vram")).get("size")) or _number(memory.get("total_vram"))
    found.add(Gpu, key, where, memory=_size(vram), memory_used=_size(_number(memory.get("used_vram"))))
    node = _number(object_of(members.get("numa")).get("node"))
    found.add(Gpu, key, where, numa=None if node is None else int(node))
    _driver(found, object_of(members.get("driver")), where)
    _counters(reading, key, members, pcie, where)
    _peers(reading, gpu, members, where)


def _size(mebibytes: float | None) -> int | None:
    """The tool's MB are MiB (2^20 bytes)."""
    return None if mebibytes is None else int(mebibytes) * MIB


def _number(value: object, unit: str = "") -> float | None:
    """A number: plain, {"value": 32, "unit": "GT/s"} or "32 GT/s". None if `unit` is given and differs."""
    members = object_of(value)
    text = f"{members.get('value', '')} {members.get('unit', '')}".strip() if members else str(value)
    match = None if isinstance(value, bool) else _NUMBER.fullmatch(text)
    return float(match[1]) if match and (not unit or match[2] == unit) else None


def _link(
    found: FactCollector,
    key: str,
    where: Evidence,
    members: Mapping[str, Any],
    widths: tuple[str, ...],
    speeds: tuple[str, ...],
) -> None:
    """In `widths` and `speeds`, the first item is our field, the others are the names in versions of the tool."""
    lanes = next((one for name in widths[1:] if (one := _number(members.get(name)))), None)
    speed = next((one for name in speeds[1:] if (one := _number(members.get(name), "GT/s"))), None)
    if lanes:
        found.take(Gpu, key, where, widths[0], f"{lanes:.0f}", pcie_width)
    if speed:
        found.take(Gpu, key, where, speeds[0], f"{speed:g} GT/s", pcie_speed)


def _driver(found: FactCollector, members: Mapping[str, Any], where: Evidence) -> None:
    name = next((members[name] for name in ("name", "driver_name") if name in members), "")
    version = next((members[name] for name in ("version", "driver_version") if name in members), "")
    if name == "amdgpu" and isinstance(version, str) and re.fullmatch(r"[0-9][\w.+-]{0,60}", version):
        found.add(Driver, "amdgpu", where, version=version)


def _counters(
    reading: AmdReading, key: str, members: Mapping[str, Any], pcie: Mapping[str, Any], where: Evidence
) -> None:
    errors = object_of(members.get("ecc"))
    for name, quantity, counted in (
        ("ecc_corrected", "ecc_corrected", errors.get("total_correctable_count")),
        ("ecc_uncorrected", "ecc_uncorrected", errors.get("total_uncorrectable_count")),
        ("", "pcie_replay", pcie.get("replay_count")),
    ):
        if (count := _number(counted)) is not None:
            seen = Evidence(where.source, f"{key} {quantity}: {count:.0f}")
            if name:
                reading.found.add(Gpu, key, seen, **{name: int(count)})
            reading.other_records.append(
                Observation(about=key, quantity=quantity, unit="count", value=count, at=reading.part.at, evidence=seen)
            )


def _peers(reading: AmdReading, gpu: int, members: Mapping[str, Any], where: Evidence) -> None:
    """Peers from topology (present and first format) and from xgmi."""
    peers = reading.peers.setdefault(gpu, {})
    for link in map(object_of, list_of(members.get("links"))):
        if isinstance(peer := link.get("gpu"), int) and link.get("link_type") in (XGMI, "PCIE"):
            peers[peer] = _connection(link, where)
    for name, kind in object_of(members.get("link_type")).items():
        if re.fullmatch("gpu_[0-9]{1,3}", name) and kind in (XGMI, "PCIE"):
            old = {"link_status": "link_accessibility", "num_hops": "hops", "bandwidth": "numa_bandwidth"}
            same = {now: object_of(members.get(before)).get(name) for now, before in old.items()}
            weight = object_of(members.get("weight")).get(name)
            peers[int(name[4:])] = _connection({**same, "link_type": kind, "weight": weight}, where)
    _metrics(peers, gpu, object_of(members.get("link_metrics")), where)
    states = members.get("link_status")
    if down := [str(place) for place, state in enumerate(list_of(states)) if re.search("[DX]", str(state))]:
        why = f"amd-smi does not report the xGMI ports {', '.join(down)} of GPU {gpu} as up"
        how = "amd-smi topology; a copy between each pair of GPUs (rocm-bandwidth-test, TransferBench)"
        reading.other_records.append(
            NotChecked(
                what="GpuLink.active", subject=f"gpu{gpu}", reason=Reason.OTHER, path=where.source, detail=why, how=how
            )
        )


def _connection(link: Mapping[str, Any], where: Evidence) -> Connection:
    span = _SPAN.fullmatch(str(link.get("bandwidth")))
    hops, weight = _number(link.get("num_hops")), _number(link.get("weight"))
    return Connection(
        where=where,
        kind=link.get("link_type"),
        hops=None if hops is None else int(hops),
        weight=None if weight is None else int(weight),
        min_bandwidth=int(span[1]) if span else None,
        max_bandwidth=int(span[2]) if span else None,
        access={"ENABLED": True, "DISABLED": False}.get(str(link.get("link_status"))),
    )


def _metrics(peers: dict[int, Connection], gpu: int, members: Mapping[str, Any], where: Evidence) -> None:
    """Add the peers that have a traffic counter. `topology` has more details, so its peers take precedence."""
    rate = _number(members.get("max_bandwidth"), "Gb/s")
    for link in map(object_of, list_of(members.get("links"))) if members.get("link_type") == XGMI else ():
        peer = link.get("gpu")
        if isinstance(peer, int) and peer != gpu and peer not in peers and _number(link.get("read")) is not None:
            peers[peer] = Connection(where, XGMI, hops=1, rate=from_gigabits(rate) if rate else None)
