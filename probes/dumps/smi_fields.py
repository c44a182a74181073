"""What nvidia-smi says of a GPU, in the words of models/gpu_facts.py, from any form that it prints.

A value is found by what it is called: of `nvidia-smi -q` by the headings above it ("PCIe Generation/Current"), of XML
by the tags ("pcie_gen/current_link_gen"), of --query-gpu by the column ("pcie.link.gen.current"). What they mean:
https://docs.nvidia.com/deploy/nvidia-smi/index.html, and `nvidia-smi --help-query-gpu`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...models.gpu_facts import Gpu
from ...models.said import Evidence, NotChecked, Observation, Said
from ...models.units import MIB
from ..nvml_words import clock_reasons, hertz, pci_address, pcie_speed
from ..parsers import count, hexadecimal, pcie_width, shown, word
from .smi_sums import SUMS, reasons, sums

Read = Callable[[str], Any]

# What stands where there is nothing to say; "Unknown Error" is a question that failed, and of a fabric its status
# (https://github.com/NVIDIA/NVSentinel/issues/883).
_NOTHING = re.compile(
    r"|\[?(?:N/A|Not Supported|Not Available|Unknown Error|None|Requested functionality has been deprecated)\]?", re.I
)
_LOST = re.compile(r"\[?(GPU is lost|GPU requires reset)\]?")
_NO_NAME = re.compile(r"\[?(Unknown Error|ERR!)\]?")
_YES, _NO = ("yes", "enabled", "active", "on", "true", "1"), ("no", "disabled", "not active", "off", "false", "0")
_NONE_MEANS = ("recovery", "virtualization")  # fields whose "None" is an answer

_COMPUTE = {
    "default": "default",
    "prohibited": "prohibited",
    "exclusiveprocess": "exclusive process",
    "eprocess": "exclusive process",
    "exclusivethread": "exclusive process",  # as which it works since CUDA 8
}
_RECOVERY = {
    "none": "none",
    "reset": "GPU reset",
    "gpureset": "GPU reset",
    "reboot": "node reboot",
    "nodereboot": "node reboot",
    "drainp2p": "drain P2P",
    "drainandreset": "drain and reset",
    "recoverimexdomain": "recover IMEX domain",
    "busreset": "bus reset",
    "systemreboot": "system reboot",
}
_VIRTUAL = {
    "none": "none",
    "passthrough": "passthrough",
    "vgpu": "vGPU",
    "hostvgpu": "host vGPU",
    "hostvsga": "host vSGA",
}
_FABRIC = {"notstarted": "not started", "inprogress": "in progress", "completed": "completed"}


@dataclass(slots=True)
class Card:
    """What was read of one GPU: the texts by their names, and where each stood."""

    key: str = ""
    address: str | None = None
    texts: dict[str, tuple[str, Evidence]] = field(default_factory=dict)
    instances: int = 0  # of MIG
    processes: int | None = None  # that compute, where all were listed


def flag(text: str) -> bool:
    """ "Enabled", "Yes", "Active" or their opposites."""
    plain = text.strip("[] ").lower()
    if plain not in (*_YES, *_NO):
        raise ValueError(f"{shown(text)} is neither yes nor no")
    return plain in _YES


def number(text: str) -> float:
    """ "588.39 W", "59 C", "1980 MHz", "81559 MiB", "16x" without its unit."""
    found = re.fullmatch(r"(-?[0-9]{1,12}(?:\.[0-9]{1,6})?) ?(?:[A-Za-z%]{0,4})", text)
    if not found:
        raise ValueError(f"{shown(text)} is not a number")
    return float(found[1])


def _size(text: str) -> int:
    return int(number(text)) * MIB


def _clock(text: str) -> float:
    return hertz(int(number(text)))


def _lanes(text: str) -> int | None:
    return pcie_width(text.rstrip("x"))


def _speed(text: str) -> float | None:
    return pcie_speed(count(text))


def _bits(text: str) -> tuple[str, ...]:
    return clock_reasons(hexadecimal(text))


def _pstate(text: str) -> int:
    found = re.fullmatch(r"P([0-9]|1[0-5])", text)
    if not found:
        raise ValueError(f"{shown(text)} is not a performance state")
    return int(found[1])


def _cluster(text: str) -> str | None:
    """A UUID; None where it is all zeros."""
    return word(text) if text.strip("0-") else None


def _meaning(words: Mapping[str, str]) -> Read:
    def read(text: str) -> str:
        plain = re.sub(r"[^a-z0-9]", "", text.lower())
        if plain not in words:
            raise ValueError(f"{shown(text)} is none of {', '.join(words)}")
        return words[plain]

    return read


def _row(name: str, read: Read, *called: str) -> tuple[str, Read, tuple[str, ...]]:
    """A field, how it is read, and what it is called: the first that says something counts."""
    return name, read, called


_POWER = ("GPU Power Readings", "Power Readings", "GPU Ceiling Power Limit")
_POWER_XML = ("gpu_power_readings", "power_readings")


def _of(groups: Iterable[str], *names: str) -> tuple[str, ...]:
    return tuple(f"{group}/{name}" for name in names for group in groups)


_ROWS = (
    _row("name", word, "Product Name", "product_name", "name", "gpu_name"),
    _row("uuid", word, "GPU UUID", "gpu/uuid", "uuid", "gpu_uuid"),
    _row("address", pci_address, "PCI/Bus Id", "pci/pci_bus_id", "pci.bus_id", "gpu_bus_id"),
    _row("board_part", word, "Board Part Number", "board_part_number"),
    _row("vbios", word, "VBIOS Version", "vbios_version"),
    _row(
        "module_id",
        count,
        "Platform Info/Module Id",
        "GPU Module ID",
        "GPU Module Id",
        "platformInfo/module_id",
        "gpu_module_id",
        "platform.module_id",
    ),
    _row(
        "virtualization",
        _meaning(_VIRTUAL),
        "GPU Virtualization Mode/Virtualization Mode",
        "GPU Virtualization Mode/Virtualization mode",
        "gpu_virtualization_mode/virtualization_mode",
    ),
    _row("recovery", _meaning(_RECOVERY), "GPU Recovery Action", "gpu_recovery_action"),
    _row(
        "pcie_speed",
        _speed,
        "PCIe Generation/Current",
        "pcie_gen/current_link_gen",
        "pcie.link.gen.current",
        "pcie.link.gen.gpucurrent",
    ),
    _row("pcie_max_speed", _speed, "PCIe Generation/Max", "pcie_gen/max_link_gen", "pcie.link.gen.max"),
    _row(
        "pcie_own_max_speed",
        _speed,
        "PCIe Generation/Device Max",
        "pcie_gen/max_device_link_gen",
        "pcie.link.gen.gpumax",
    ),
    _row("pcie_width", _lanes, "Link Width/Current", "link_widths/current_link_width", "pcie.link.width.current"),
    _row("pcie_max_width", _lanes, "Link Width/Max", "link_widths/max_link_width", "pcie.link.width.max"),
    _row("performance_state", _pstate, "Performance State", "performance_state", "pstate"),
    _row("clock", _clock, "Clocks/SM", "clocks/sm_clock", "clocks.current.sm", "clocks.sm"),
    _row("clock_max", _clock, "Max Clocks/SM", "max_clocks/sm_clock", "clocks.max.sm"),
    _row("memory_clock", _clock, "Clocks/Memory", "clocks/mem_clock", "clocks.current.memory", "clocks.mem"),
    _row(
        "memory_clock_max", _clock, "Max Clocks/Memory", "max_clocks/mem_clock", "clocks.max.memory", "clocks.max.mem"
    ),
    _row(
        "application_clock",
        _clock,
        "Applications Clocks/Graphics",
        "applications_clocks/graphics_clock",
        "clocks.applications.graphics",
        "clocks.applications.gr",
    ),
    _row(
        "application_clock_default",
        _clock,
        "Default Applications Clocks/Graphics",
        "default_applications_clocks/graphics_clock",
        "clocks.default_applications.graphics",
        "clocks.default_applications.gr",
    ),
    _row("clock_reasons", _bits, "clocks_event_reasons.active", "clocks_throttle_reasons.active"),
    _row(
        "power",
        number,
        *_of(_POWER, "Instantaneous Power Draw", "Power Draw", "Average Power Draw"),
        *_of(_POWER_XML, "instant_power_draw", "power_draw", "average_power_draw"),
        "power.draw.instant",
        "power.draw",
    ),
    _row(
        "power_limit",
        number,
        *_of(_POWER, "Current Power Limit", "Enforced Power Limit"),
        *_of(_POWER_XML, "current_power_limit", "enforced_power_limit"),
        "enforced.power.limit",
        "power.limit",
    ),
    _row(
        "power_limit_default",
        number,
        *_of(_POWER, "Default Power Limit"),
        *_of(_POWER_XML, "default_power_limit"),
        "power.default_limit",
    ),
    _row("temperature", number, "Temperature/GPU Current Temp", "temperature/gpu_temp", "temperature.gpu"),
    _row("memory", _size, "FB Memory Usage/Total", "fb_memory_usage/total", "memory.total"),
    _row("memory_used", _size, "FB Memory Usage/Used", "fb_memory_usage/used", "memory.used"),
    _row("bar1", _size, "BAR1 Memory Usage/Total", "bar1_memory_usage/total"),
    _row("ecc", flag, "ECC Mode/Current", "Ecc Mode/Current", "ecc_mode/current_ecc", "ecc.mode.current"),
    _row("ecc_pending", flag, "ECC Mode/Pending", "Ecc Mode/Pending", "ecc_mode/pending_ecc", "ecc.mode.pending"),
    _row(
        "sram_threshold",
        flag,
        "Aggregate/SRAM Threshold Exceeded",
        "aggregate/sram_threshold_exceeded",
        "ecc.errors.uncorrected.aggregate.sram.thresholdExceeded",
    ),
    _row(
        "remapped_correctable",
        count,
        "Remapped Rows/Correctable Error",
        "remapped_rows/remapped_row_corr",
        "remapped_rows.correctable",
    ),
    _row(
        "remapped_uncorrectable",
        count,
        "Remapped Rows/Uncorrectable Error",
        "remapped_rows/remapped_row_unc",
        "remapped_rows.uncorrectable",
    ),
    _row(
        "remap_pending",
        flag,
        "Remapped Rows/Pending",
        "remapped_rows/remapped_row_pending",
        "remapped_rows.pending",
        "Retired Pages/Pending Page Blacklist",
        "Retired Pages/Pending",
        "retired_pages/pending_retirement",
        "retired_pages/pending_blacklist",
        "retired_pages.pending",
    ),  # GPUs before Ampere retire pages
    _row(
        "remap_failed",
        flag,
        "Remapped Rows/Remapping Failure Occurred",
        "remapped_rows/remapped_row_failure",
        "remapped_rows.failure",
    ),
    _row("fabric_state", _meaning(_FABRIC), "Fabric/State", "fabric/state", "fabric.state"),
    _row("fabric_status", word, "Fabric/Status", "fabric/status", "fabric.status"),
    _row("fabric_clique", count, "Fabric/CliqueId", "fabric/cliqueId", "fabric.cliqueId"),
    _row("fabric_cluster", _cluster, "Fabric/ClusterUUID", "fabric/clusterUuid", "fabric.clusterUuid"),
    _row("mig", flag, "MIG Mode/Current", "mig_mode/current_mig", "mig.mode.current"),
    _row("persistence", flag, "Persistence Mode", "persistence_mode"),
    _row("compute_mode", _meaning(_COMPUTE), "Compute Mode", "compute_mode"),
)
_REPLAYS = ("PCI/Replays Since Reset", "PCI/Replays since reset", "pci/replay_counter")
_RESETS = (
    ("GPU Reset Status/Drain and Reset Recommended", "gpu_reset_status/drain_and_reset_recommended", "drain and reset"),
    ("GPU Reset Status/Reset Required", "gpu_reset_status/reset_required", "GPU reset"),
)
_RANK = {called: (name, at) for name, _, several in _ROWS for at, called in enumerate(several)}
_READ = {name: read for name, read, _ in _ROWS}
WANTED = frozenset({*_RANK, *_REPLAYS, *SUMS, *(name for *names, _ in _RESETS for name in names)})
_NOW = frozenset({"ecc_corrected", "ecc_uncorrected"})  # live sources observe them too


def facts(card: Card, at: float) -> Iterator[Said]:
    """The `Gpu`, a NotChecked for each value that cannot be read, and its counters."""
    fields: dict[str, Any] = {} if card.address is None else {"address": card.address}
    cites: dict[str, Evidence] = {}
    lost: list[Said] = []
    for name, (text, where) in _chosen(card).items():
        _take(card.key, name, text, where, fields, cites, lost)
    _failure(card, fields, cites)
    for name, value, where in (*sums(card.texts), *reasons(card.texts), *_recovery(card, fields)):
        fields[name], cites[name] = value, where
    if card.processes is not None:
        fields["processes"] = card.processes
    if fields.get("mig") is not None:
        fields["mig_instances"] = card.instances if fields["mig"] else 0
    if set(fields) - {"address"}:
        yield Gpu(key=card.key, cites=cites, **fields)
    yield from lost
    yield from _counters(card, fields, cites, at)


def _chosen(card: Card) -> dict[str, tuple[str, Evidence]]:
    """The text for each field: the first of its names that says something."""
    best: dict[str, int] = {}
    found: dict[str, tuple[str, Evidence]] = {}
    for called, (text, where) in card.texts.items():
        name, rank = _RANK.get(called, ("", 0))
        answer = name == "fabric_status" if text == "Unknown Error" else text == "None" and name in _NONE_MEANS
        nothing = _NOTHING.fullmatch(text) and not answer
        if name and not nothing and rank < best.get(name, len(_RANK)):
            best[name], found[name] = rank, (text, where)
    return {name: found[name] for name in _READ if name in found}


def _take(
    key: str,
    name: str,
    text: str,
    where: Evidence,
    fields: dict[str, Any],
    cites: dict[str, Evidence],
    lost: list[Said],
) -> None:
    if _LOST.fullmatch(text) or (name == "name" and _NO_NAME.fullmatch(text)):
        return  # said once, as the failure
    try:
        value = _READ[name](text)
    except ValueError as wrong:
        lost.append(NotChecked(what=f"Gpu.{name}", subject=key, why=f"{where.source}: {wrong}"))
        return
    if value is not None:
        fields[name], cites[name] = value, where


def _failure(card: Card, fields: dict[str, Any], cites: dict[str, Evidence]) -> None:
    """A GPU that is lost says so instead of its values; one that has no name answers nothing."""
    for called, (text, where) in card.texts.items():
        gone = _LOST.fullmatch(text) or (
            called in ("Product Name", "product_name", "name") and _NO_NAME.fullmatch(text)
        )
        if gone:
            fields["failure"], cites["failure"] = gone[1], where
            return


def _recovery(card: Card, fields: Mapping[str, Any]) -> Iterator[tuple[str, str, Evidence]]:
    """Drivers before 555 say it in two lines."""
    for *names, action in _RESETS:
        for name in names:
            text, where = card.texts.get(name, ("", None))
            if where and text == "Yes" and "recovery" not in fields:
                yield "recovery", action, where
                return


def _counters(card: Card, fields: Mapping[str, Any], cites: Mapping[str, Evidence], at: float) -> Iterator[Said]:
    for name in sorted(_NOW & fields.keys()):
        yield Observation(
            about=card.key, quantity=name, unit="count", value=float(fields[name]), at=at, evidence=cites[name]
        )
    for name in _REPLAYS:
        text, where = card.texts.get(name, ("", None))
        if where and re.fullmatch(r"[0-9]{1,18}", text):
            yield Observation(
                about=card.key, quantity="pcie_replay", unit="count", value=float(text), at=at, evidence=where
            )
