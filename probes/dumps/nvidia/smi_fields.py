"""Fields of a GPU from any output format of nvidia-smi, mapped to models/facts/gpu.py.

The name of a value is the path of its headings in `nvidia-smi -q` ("PCIe Generation/Current"), of its tags in XML
("pcie_gen/current_link_gen"), or its column in --query-gpu ("pcie.link.gen.current"). Meanings:
https://docs.nvidia.com/deploy/nvidia-smi/index.html, and `nvidia-smi --help-query-gpu`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from ....models.facts.gpu import Gpu
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, NotChecked, Observation, Record
from ...parsing.nvml_enums import pci_address
from ...parsing.parsers import count, word
from . import smi_values as values
from .smi_sums import SUMS, margin, reasons, repairs, sums

Read = Callable[[str], Any]

# Texts for an absent value. "Unknown Error" is a failed query, except for the fabric status, where it is a value
# (https://github.com/NVIDIA/NVSentinel/issues/883).
_NOTHING = re.compile(
    r"|\[?(?:N/A|Not Supported|Not Available|Unknown Error|None|Requested functionality has been deprecated)\]?", re.I
)
LOST = re.compile(r"\[?(GPU is lost|GPU requires reset)\]?")
_NO_NAME = re.compile(r"\[?(Unknown Error|Unknown(?= ?$)|ERR!)\]?")  # a line break can end it after "Unknown"
_NONE_MEANS = ("recovery", "virtualization")  # fields with "None" as a value


class Card(Struct):
    """The texts of one GPU by name, each with its citation."""

    key: str = ""
    address: str | None = None
    texts: dict[str, tuple[str, Evidence]] = field(default_factory=dict)
    instances: int = 0  # MIG instances
    indexes: set[str] = field(default_factory=set)  # of these
    processes: int | None = None  # compute processes, if the list is complete


def _row(name: str, read: Read, *called: str) -> tuple[str, Read, tuple[str, ...]]:
    """A field, its parser, and its names in the outputs, separated by "|". The first name with a value counts."""
    return name, read, tuple(one for several in called for one in several.split(" | "))


_POWER = ("GPU Power Readings", "Power Readings", "GPU Ceiling Power Limit")
_POWER_XML = ("gpu_power_readings", "power_readings")


def _of(groups: Iterable[str], *names: str) -> tuple[str, ...]:
    return tuple(f"{group}/{name}" for name in names for group in groups)


_ROWS = (
    _row("name", word, "Product Name | product_name | name | gpu_name"),
    _row("uuid", word, "GPU UUID | gpu/uuid | uuid | gpu_uuid"),
    _row("address", pci_address, "PCI/Bus Id | pci/pci_bus_id | pci.bus_id | gpu_bus_id"),
    _row("board_part", word, "Board Part Number | board_part_number"),
    _row("vbios", word, "VBIOS Version | vbios_version"),
    _row(
        "module_id",
        count,
        "Platform Info/Module Id | GPU Module ID | GPU Module Id | platformInfo/module_id | gpu_module_id | "
        "platform.module_id",
    ),
    _row(
        "virtualization",
        values.virtualization_mode,
        "GPU Virtualization Mode/Virtualization Mode | GPU Virtualization Mode/Virtualization mode | "
        "gpu_virtualization_mode/virtualization_mode",
    ),
    _row("recovery", values.recovery_action, "GPU Recovery Action | gpu_recovery_action"),
    _row(
        "pcie_speed",
        values.link_speed,
        "PCIe Generation/Current | pcie_gen/current_link_gen | pcie.link.gen.current | pcie.link.gen.gpucurrent",
    ),
    _row("pcie_max_speed", values.link_speed, "PCIe Generation/Max | pcie_gen/max_link_gen | pcie.link.gen.max"),
    _row(
        "pcie_own_max_speed",
        values.link_speed,
        "PCIe Generation/Device Max | pcie_gen/max_device_link_gen | pcie.link.gen.gpumax",
    ),
    _row("pcie_width", values.lanes, "Link Width/Current | link_widths/current_link_width | pcie.link.width.current"),
    _row("pcie_max_width", values.lanes, "Link Width/Max | link_widths/max_link_width | pcie.link.width.max"),
    _row("performance_state", values.performance_state, "Performance State | performance_state | pstate"),
    _row("utilization", values.share, "Utilization/Gpu | Utilization/GPU | utilization/gpu_util | utilization.gpu"),
    _row("clock", values.clock, "Clocks/SM | clocks/sm_clock | clocks.current.sm | clocks.sm"),
    _row("clock_max", values.clock, "Max Clocks/SM | max_clocks/sm_clock | clocks.max.sm"),
    _row("memory_clock", values.clock, "Clocks/Memory | clocks/mem_clock | clocks.current.memory | clocks.mem"),
    _row(
        "memory_clock_max",
        values.clock,
        "Max Clocks/Memory | max_clocks/mem_clock | clocks.max.memory | clocks.max.mem",
    ),
    _row(
        "application_clock",
        values.clock,
        "Applications Clocks/Graphics | applications_clocks/graphics_clock | clocks.applications.graphics | "
        "clocks.applications.gr",
    ),
    _row(
        "application_clock_default",
        values.clock,
        "Default Applications Clocks/Graphics | default_applications_clocks/graphics_clock | "
        "clocks.default_applications.graphics | clocks.default_applications.gr",
    ),
    _row("clock_reasons", values.clock_event_reasons, "clocks_event_reasons.active | clocks_throttle_reasons.active"),
    _row(
        "power",
        values.number,
        *_of(_POWER, "Instantaneous Power Draw", "Power Draw", "Average Power Draw"),
        *_of(_POWER_XML, "instant_power_draw", "power_draw", "average_power_draw"),
        "power.draw.instant",
        "power.draw",
    ),
    _row(
        "power_limit",
        values.number,
        *_of(_POWER, "Current Power Limit", "Enforced Power Limit"),
        *_of(_POWER_XML, "current_power_limit", "enforced_power_limit"),
        "enforced.power.limit",
        "power.limit",
    ),
    _row(
        "power_limit_default",
        values.number,
        *_of(_POWER, "Default Power Limit"),
        *_of(_POWER_XML, "default_power_limit"),
        "power.default_limit",
    ),
    _row("temperature", values.number, "Temperature/GPU Current Temp | temperature/gpu_temp | temperature.gpu"),
    _row("memory", values.size, "FB Memory Usage/Total | fb_memory_usage/total | memory.total"),
    _row("memory_used", values.size, "FB Memory Usage/Used | fb_memory_usage/used | memory.used"),
    _row("bar1", values.size, "BAR1 Memory Usage/Total | bar1_memory_usage/total"),
    _row("ecc", values.flag, "ECC Mode/Current | Ecc Mode/Current | ecc_mode/current_ecc | ecc.mode.current"),
    _row("ecc_pending", values.flag, "ECC Mode/Pending | Ecc Mode/Pending | ecc_mode/pending_ecc | ecc.mode.pending"),
    _row(
        "sram_threshold",
        values.flag,
        "Aggregate/SRAM Threshold Exceeded | aggregate/sram_threshold_exceeded | "
        "ecc.errors.uncorrected.aggregate.sram.thresholdExceeded",
    ),
    _row(
        "remapped_correctable",
        count,
        "Remapped Rows/Correctable Error | remapped_rows/remapped_row_corr | remapped_rows.correctable",
    ),
    _row(
        "remapped_uncorrectable",
        count,
        "Remapped Rows/Uncorrectable Error | remapped_rows/remapped_row_unc | remapped_rows.uncorrectable",
    ),
    # GPUs before Ampere retire pages instead of rows.
    _row(
        "remap_pending",
        values.flag,
        "Remapped Rows/Pending | remapped_rows/remapped_row_pending | remapped_rows.pending | "
        "Retired Pages/Pending Page Blacklist | Retired Pages/Pending | retired_pages/pending_retirement | "
        "retired_pages/pending_blacklist | retired_pages.pending",
    ),
    _row(
        "remap_failed",
        values.flag,
        "Remapped Rows/Remapping Failure Occurred | remapped_rows/remapped_row_failure | remapped_rows.failure",
    ),
    _row("unrepairable", values.flag, "Unrepairable Memory | ecc_errors/unrepairable_memory"),
    _row(
        "full_banks",
        values.banks,
        "Bank Remap Availability Histogram/None | row_remapper_histogram/row_remapper_histogram_none",
    ),
    _row("fabric_state", values.fabric_state, "Fabric/State | fabric/state | fabric.state"),
    _row("fabric_status", values.nvml_status, "Fabric/Status | fabric/status | fabric.status"),
    _row("fabric_clique", count, "Fabric/CliqueId | fabric/cliqueId | fabric.cliqueId"),
    _row("fabric_cluster", values.cluster_uuid, "Fabric/ClusterUUID | fabric/clusterUuid | fabric.clusterUuid"),
    _row("mig", values.flag, "MIG Mode/Current | mig_mode/current_mig | mig.mode.current"),
    _row("persistence", values.flag, "Persistence Mode | persistence_mode"),
    _row("compute_mode", values.compute_mode, "Compute Mode | compute_mode"),
)
_REPLAYS = ("PCI/Replays Since Reset", "PCI/Replays since reset", "pci/replay_counter")
_RESETS = (
    ("GPU Reset Status/Drain and Reset Recommended", "gpu_reset_status/drain_and_reset_recommended", "drain and reset"),
    ("GPU Reset Status/Reset Required", "gpu_reset_status/reset_required", "GPU reset"),
)
_RANK = {called: (name, at) for name, _, several in _ROWS for at, called in enumerate(several)}
_READ = {name: read for name, read, _ in _ROWS}
WANTED = frozenset({*_RANK, *_REPLAYS, *SUMS, *(name for *names, _ in _RESETS for name in names)})
_NOW = frozenset({"ecc_corrected", "ecc_uncorrected"})  # live sources also give observations of these


def facts(card: Card, at: float) -> Iterator[Record]:
    """The `Gpu`, a NotChecked per unreadable value, and the counters."""
    fields: dict[str, Any] = {} if card.address is None else {"address": card.address}
    cites: dict[str, Evidence] = {}
    not_checked: list[Record] = []
    for name, (text, where) in _chosen(card).items():
        _take(card.key, name, text, where, fields, cites, not_checked)
    _failure(card, fields, cites)
    found = (sums(card.texts), reasons(card.texts), repairs(card.texts), margin(card.texts), _recovery(card, fields))
    for name, value, where in (one for several in found for one in several):
        fields[name], cites[name] = value, where
    if card.processes is not None:
        fields["processes"] = card.processes
    if (instances := _instances(card, fields.get("mig"))) is not None:
        fields["mig_instances"] = instances
    if set(fields) - {"address"}:
        yield Gpu(key=card.key, cites=cites, **fields)
    yield from not_checked
    yield from _counters(card, fields, cites, at)


def _instances(card: Card, mig: bool | None) -> int | None:
    """The number of MIG instances. None if the list can be incomplete."""
    if not mig:
        return None if mig is None else 0
    listed = not card.indexes or card.indexes == {str(number) for number in range(card.instances)}
    return card.instances if listed and card.address else None


def _chosen(card: Card) -> dict[str, tuple[str, Evidence]]:
    """The text of each field: that of its first name with a value."""
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
    not_checked: list[Record],
) -> None:
    if LOST.fullmatch(text) or (name == "name" and _NO_NAME.fullmatch(text)):
        return  # reported once, as the failure
    try:
        value = _READ[name](text)
    except ValueError as wrong:
        not_checked.append(
            NotChecked(what=f"Gpu.{name}", subject=key, reason=Reason.UNREADABLE, path=where.source, detail=str(wrong))
        )
        return
    if value is not None:
        fields[name], cites[name] = value, where


def _failure(card: Card, fields: dict[str, Any], cites: dict[str, Evidence]) -> None:
    """Set `failure`: a lost GPU has that text instead of its values. A GPU without a name does not answer."""
    for called, (text, where) in card.texts.items():
        gone = LOST.fullmatch(text) or (called in ("Product Name", "product_name", "name") and _NO_NAME.fullmatch(text))
        if gone:
            fields["failure"], cites["failure"] = gone[1], where
            return


def _recovery(card: Card, fields: Mapping[str, Any]) -> Iterator[tuple[str, str, Evidence]]:
    """The recovery action from the two lines of drivers before 555."""
    for *names, action in _RESETS:
        for name in names:
            text, where = card.texts.get(name, ("", None))
            if where and text == "Yes" and "recovery" not in fields:
                yield "recovery", action, where
                return


def _counters(card: Card, fields: Mapping[str, Any], cites: Mapping[str, Evidence], at: float) -> Iterator[Record]:
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
