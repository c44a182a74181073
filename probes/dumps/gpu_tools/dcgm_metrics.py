"""Metrics of dcgm-exporter in Prometheus' text format: https://github.com/NVIDIA/dcgm-exporter, etc/*.csv.

A line has the name of a DCGM field, labels that name the GPU, and a value. A value that DCGM does not know is no number
or a huge one. Xids and failures of remappings are messages of the catalog (models/catalog/messages/agents.toml).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ....models.facts.gpu import Gpu
from ....models.facts.records import Evidence, Observation, Record
from ...parsing.nvml_enums import clock_reasons, hertz, pci_address, pcie_speed
from ...parsing.parsers import count, pcie_width
from ..core.fields import FactCollector
from ..core.part import Part

BEGIN = r"^[ \t]*(?:\# (?:HELP|TYPE) DCGM_FI_|DCGM_FI_[A-Z0-9_]{3,80}\{[^}\n]{0,20}gpu=\")"
_LINE = re.compile(r"[ \t]*DCGM_FI_(?P<field>[A-Z0-9_]{3,80})\{(?P<labels>[^}\n]{1,900})\}[ \t]+(?P<value>\S{1,30})")
_LABEL = re.compile(r'(\w{1,60})="([^"\n]{0,200})"')
_BLANK = 0x7FFFFFF0  # DCGM_INT32_BLANK and the numbers above it (dcgm_structs.h)


def _clock(text: str) -> float:
    return float(hertz(count(text)))


def _flag(text: str) -> bool:
    return count(text) > 0


def _speed(text: str) -> float | None:
    return pcie_speed(count(text))


def _reasons(text: str) -> tuple[str, ...]:
    return clock_reasons(count(text))


def _number(text: str) -> float:
    return float(text)


_FIELDS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "DEV_SM_CLOCK": ("clock", _clock),
    "DEV_MEM_CLOCK": ("memory_clock", _clock),
    "DEV_GPU_TEMP": ("temperature", _number),
    "DEV_POWER_USAGE": ("power", _number),
    "DEV_CLOCK_THROTTLE_REASONS": ("clock_reasons", _reasons),
    "DEV_CLOCKS_EVENT_REASONS": ("clock_reasons", _reasons),
    "DEV_PCIE_LINK_GEN": ("pcie_speed", _speed),
    "DEV_PCIE_LINK_WIDTH": ("pcie_width", pcie_width),
    "DEV_PCIE_MAX_LINK_GEN": ("pcie_max_speed", _speed),
    "DEV_PCIE_MAX_LINK_WIDTH": ("pcie_max_width", pcie_width),
    "DEV_ECC_SBE_VOL_TOTAL": ("ecc_corrected", count),
    "DEV_ECC_DBE_VOL_TOTAL": ("ecc_uncorrected", count),
    "DEV_ECC_SBE_AGG_TOTAL": ("ecc_corrected_lifetime", count),
    "DEV_ECC_DBE_AGG_TOTAL": ("ecc_uncorrected_lifetime", count),
    "DEV_CORRECTABLE_REMAPPED_ROWS": ("remapped_correctable", count),
    "DEV_UNCORRECTABLE_REMAPPED_ROWS": ("remapped_uncorrectable", count),
    "DEV_ROW_REMAP_FAILURE": ("remap_failed", _flag),
    "DEV_ROW_REMAP_PENDING": ("remap_pending", _flag),
}
_COUNTERS = {
    "DEV_PCIE_REPLAY_COUNTER": "pcie_replay",
    "DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": "nvlink_crc",
    "DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL": "nvlink_crc",
    "DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL": "nvlink_replay",
    "DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL": "nvlink_recovery",
}


def read(part: Part) -> Iterator[Record]:
    """A `Gpu` for each GPU of the metrics, and its counters. CRC errors of NVLink are the sum of two fields."""
    found = FactCollector()
    values: dict[tuple[str, str], dict[str, float]] = {}  # by GPU and quantity: of each field, the last value
    cites: dict[tuple[str, str], Evidence] = {}
    for number, line in part.lines():
        metric = _LINE.match(line)
        labels = dict(_LABEL.findall(metric["labels"])) if metric else {}
        if not metric or not labels.get("gpu", "").isdecimal():
            continue
        gpu, cite, text = f"gpu{int(labels['gpu'])}", part.cite(number, line), metric["value"].removesuffix(".0")
        found.add(Gpu, gpu, cite, name=labels.get("modelName") or None, uuid=_uuid(labels.get("UUID", "")))
        if address := labels.get("pci_bus_id"):
            found.take(Gpu, gpu, cite, "address", address, pci_address)
        if not re.fullmatch(r"[0-9]{1,18}(?:\.[0-9]{1,9})?", text) or float(text) >= _BLANK:
            continue
        if field := _FIELDS.get(metric["field"]):
            found.take(Gpu, gpu, cite, field[0], text, field[1])
        elif quantity := _COUNTERS.get(metric["field"]):
            values.setdefault((gpu, quantity), {})[metric["field"]] = float(text)
            cites[gpu, quantity] = cite
    yield from found.records()
    for (gpu, quantity), of_fields in values.items():
        yield Observation(
            about=gpu,
            quantity=quantity,
            unit="count",
            value=sum(of_fields.values()),
            at=part.at,
            evidence=cites[gpu, quantity],
        )


def _uuid(text: str) -> str | None:
    return text if re.fullmatch(r"GPU-[0-9a-fA-F-]{8,40}", text) else None
