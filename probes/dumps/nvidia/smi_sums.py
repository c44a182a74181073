"""GPU fields that nvidia-smi splits into several values: memory errors, clock reasons, fabric health.

The reader gives such a field only if all its values are present, because a truncated text would give a sum that is too
small.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ....models.facts.records import Evidence

Texts = Mapping[str, tuple[str, Evidence]]
Field = tuple[str, object, Evidence]

_SINCE = {"": ("Volatile", "volatile"), "_lifetime": ("Aggregate", "aggregate")}
# Since Turing, errors are counted by location. An output has some of these lines or all lines of a group.
_WHERE = {
    "ecc_corrected": (("SRAM Correctable", "sram_correctable"), ("DRAM Correctable", "dram_correctable")),
    "ecc_uncorrected": (
        (
            "SRAM Uncorrectable",
            "sram_uncorrectable",
            "SRAM Uncorrectable Parity",
            "SRAM Uncorrectable SEC-DED",
            "sram_uncorrectable_parity",
            "sram_uncorrectable_secded",
        ),
        ("DRAM Uncorrectable", "dram_uncorrectable"),
    ),
}
_SPLIT = re.compile("Parity|SEC-DED|parity|secded")
_TOTALS = {"ecc_corrected": ("Single Bit", "single_bit"), "ecc_uncorrected": ("Double Bit", "double_bit")}
_COLUMNS = {"ecc_corrected": "ecc.errors.corrected", "ecc_uncorrected": "ecc.errors.uncorrected"}

# In the order of NVML's bits (probes/parsing/nvml_enums.py). The last one is missing before driver 418.
_REASONS = (
    ("idle", "Idle", "gpu_idle"),
    ("application clocks", "Applications Clocks Setting", "applications_clocks_setting"),
    ("software power cap", "SW Power Cap", "sw_power_cap"),
    ("hardware slowdown", "HW Slowdown", "hw_slowdown"),
    ("sync boost", "Sync Boost", "sync_boost"),
    ("software thermal slowdown", "SW Thermal Slowdown", "sw_thermal_slowdown"),
    ("hardware thermal slowdown", "HW Thermal Slowdown", "hw_thermal_slowdown"),
    ("hardware power brake", "HW Power Brake Slowdown", "hw_power_brake_slowdown"),
    ("display clocks", "Display Clock Setting", "display_clocks_setting"),
)
_MUST = {"idle", "software power cap", "hardware slowdown", "software thermal slowdown", "hardware thermal slowdown"}
_HARDWARE = {"hardware slowdown", "hardware thermal slowdown", "hardware power brake"}  # each is sufficient alone
_SLOWDOWNS = {*_HARDWARE, "software thermal slowdown"}
_SURE = {"hardware thermal slowdown", "hardware power brake"}  # a fault whatever the other reasons are
_FAULTS = (
    ("degraded bandwidth", "Bandwidth", "bandwidth", "degraded"),
    ("route recovery", "Route Recovery in progress", "route_recovery_in_progress", "true"),
    ("route unhealthy", "Route Unhealthy", "route_unhealthy", "true"),
    ("access timeout recovery", "Access Timeout Recovery", "access_timeout_recovery", "true"),
    ("summary: unhealthy", "Summary", "summary", "unhealthy"),
    ("summary: limited capacity", "Summary", "summary", "limited capacity"),
)
# NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_*: incorrect system GUID, no partition, insufficient NVLinks ...
_WRONG_SETUP = re.compile(r"(?:In(?:correct|sufficient|compatible|valid)|No Partition|Yes|True)\b", re.IGNORECASE)
_SETUP = ("Health/Incorrect Configuration", "health/incorrect_configuration", "fabric.health.incorrect_configuration")


def _reason_names(text: str, tag: str) -> tuple[str, ...]:
    above = "HW Slowdown" if text in ("HW Thermal Slowdown", "HW Power Brake Slowdown") else None
    groups = (above,) if above else ("Clocks Event Reasons", "Clocks Throttle Reasons")
    return (
        *(f"{group}/{text}" for group in groups),
        f"clocks_event_reasons/clocks_event_reason_{tag}",
        f"clocks_throttle_reasons/clocks_throttle_reason_{tag}",
        f"clocks_event_reasons.{tag}",
        f"clocks_throttle_reasons.{tag}",
    )


def _fault_names(text: str, tag: str) -> tuple[str, ...]:
    return f"Health/{text}", f"health/{tag}", f"fabric.health.{tag}"


def _error_names(field: str, since: tuple[str, str]) -> tuple[tuple[str, ...], ...]:
    """Groups of alternative names. Each group must have a value, or the last group, a total, must have one."""
    groups = [tuple(f"{group}/{name}" for name in names for group in since) for names in _WHERE[field]]
    single = tuple(
        f"{group}/{name}/{total}" for name in _TOTALS[field] for group in since for total in ("Total", "total")
    )
    column = f"{_COLUMNS[field]}.{since[1]}.total"
    return (*groups, (*single, column))


_ERRORS = {f"{field}{more}": _error_names(field, since) for field in _WHERE for more, since in _SINCE.items()}
_REASON_NAMES = {reason: _reason_names(text, tag) for reason, text, tag in _REASONS}
_REASON_COLUMNS = {
    name for names in _REASON_NAMES.values() for name in names if "_reasons." in name
}  # columns can be requested one by one
_FAULT_NAMES = {fault: _fault_names(text, tag) for fault, text, tag, _ in _FAULTS}
# Driver 580 and later (nvsmi_device_v13.dtd). A reset repairs them.
_REPAIRS = {
    "memory channel": ("ECC Errors/Channel Repair Pending", "ecc_errors/channel_repair_pending"),
    "TPC": ("ECC Errors/TPC Repair Pending", "ecc_errors/tpc_repair_pending"),
}
# The temperature and the slowdown threshold. Recent GPUs show both as degrees below the limit ("T.Limit").
_TEMPERATURES = (
    ("Temperature/GPU Current Temp", "Temperature/GPU Slowdown Temp"),
    ("temperature/gpu_temp", "temperature/gpu_temp_slow_threshold"),
)
_MARGINS = (
    ("Temperature/GPU T.Limit Temp", "Temperature/GPU Slowdown T.Limit Temp"),
    ("temperature/gpu_temp_tlimit", "temperature/gpu_temp_slow_tlimit_threshold"),
)
SUMS = frozenset(
    {
        *(name for names in _REPAIRS.values() for name in names),
        *(name for names in (*_TEMPERATURES, *_MARGINS) for name in names),
        *(name for groups in _ERRORS.values() for names in groups for name in names),
        *(name for names in (*_REASON_NAMES.values(), *_FAULT_NAMES.values()) for name in names),
        *_SETUP,
    }
)


def sums(texts: Texts) -> Iterator[Field]:
    """Corrected and uncorrected memory errors, since the driver was loaded and over the lifetime."""
    for field, (*groups, totals) in _ERRORS.items():
        total = [number for name in totals if (number := _number(texts, name))]
        parts = [[number for name in names if (number := _number(texts, name))] for names in groups]
        if field == "ecc_uncorrected" and parts[0]:
            yield "sram_uncorrected", sum(count for count, _ in parts[0]), max(parts[0], key=lambda one: one[0])[1]
        if total:
            yield field, *total[0]
        elif all(parts):
            counts = [number for part in parts for number in part]
            if _lacks_one(texts, groups) and not any(count for count, _ in counts):
                continue  # the line that is missing can have errors
            worst = max(counts, key=lambda one: one[0])
            yield field, sum(count for count, _ in counts), worst[1]


def _lacks_one(texts: Texts, groups: Sequence[Sequence[str]]) -> bool:
    """Whether one of the two lines into which newer drivers split a line is there and the other is not."""
    split = [[name in texts for name in names if _SPLIT.search(name)] for names in groups]
    return any(any(one) and sum(one) % 2 for one in split)


_FEW = 4  # lines that a person chose: the reasons of an idle GPU are no reason to quote them


def reasons(texts: Texts) -> Iterator[Field]:
    """The active clock reasons, and the faults of the fabric."""
    states = {reason: one for reason, names in _REASON_NAMES.items() if (one := _first(texts, names))}
    known = {reason: one for reason, one in states.items() if one[0] in ("Active", "Not Active")}
    active = tuple(reason for reason, (text, _) in known.items() if text == "Active")
    alone = len(states) <= _FEW or not _REASON_COLUMNS.isdisjoint(texts)
    told = alone or "idle" in known  # while clocks change, an idle GPU can be slowed down without a fault
    if known.keys() >= _MUST or (_SLOWDOWNS & set(active) and told) or _SURE & set(active):
        yield (
            "clock_reasons",
            active,
            known[next((one for one in active if one in _HARDWARE), active[0]) if active else "idle"][1],
        )
    yield from _health(texts)


def repairs(texts: Texts) -> Iterator[Field]:
    """The parts that wait for a reset to be repaired."""
    found = {part: one for part, names in _REPAIRS.items() if (one := _first(texts, names))}
    states = {part: text for part, (text, _) in found.items() if text in ("Yes", "No")}
    pending = tuple(part for part, text in states.items() if text == "Yes")
    if states:
        yield "pending_repairs", pending, found[(pending or tuple(states))[0]][1]


def margin(texts: Texts) -> Iterator[Field]:
    """Degrees Celsius below the temperature at which the hardware lowers the clocks."""
    for sign, pairs in ((1, _MARGINS), (-1, _TEMPERATURES)):
        for now, slowdown in pairs:
            values = [_degrees(texts, name) for name in (now, slowdown)]
            if values[0] is not None and values[1] is not None:
                yield "temperature_margin", sign * (values[0] - values[1]), texts[now][1]
                return


def _degrees(texts: Texts, name: str) -> float | None:
    found = re.fullmatch(r"(-?[0-9]{1,3}) C", texts[name][0]) if name in texts else None
    return float(found[1]) if found else None


def _health(texts: Texts) -> Iterator[Field]:
    parts = {fault: one for fault, names in _FAULT_NAMES.items() if (one := _first(texts, names))}
    bad = {fault for fault, _, _, word in _FAULTS if fault in parts and parts[fault][0].lower() in (word, "yes")}
    counted = {fault for fault in bad if not fault.startswith("summary")} or bad  # the details, else their summary
    faults = [(fault, parts[fault][1]) for fault in parts if fault in counted]
    setup = _first(texts, _SETUP)
    if setup and _WRONG_SETUP.match(setup[0]):
        faults.append((f"incorrect configuration: {setup[0]}", setup[1]))
    values = {text for text, _ in (*parts.values(), *((setup,) if setup else ()))} - {"N/A", "Not Supported"}
    if faults or (values and setup and "degraded bandwidth" in parts):
        citations = (*(where for _, where in faults), *(where for _, where in parts.values()), *(setup or ())[1:])
        yield "fabric_faults", tuple(fault for fault, _ in faults), citations[0]


def _first(texts: Texts, names: tuple[str, ...]) -> tuple[str, Evidence] | None:
    return next((texts[name] for name in names if name in texts), None)


def _number(texts: Texts, name: str) -> tuple[int, Evidence] | None:
    text, where = texts.get(name, ("", None))
    return (int(text), where) if where and re.fullmatch(r"[0-9]{1,18}", text) else None
