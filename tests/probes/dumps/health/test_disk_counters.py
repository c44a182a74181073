"""Counters of drives that pass their own assessment: text and JSON of smartctl and nvme-cli."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.texts import found_in, report_of

MANY, FEW = 4321, 3


def nvme_text(**fields: int) -> str:
    values = {"critical_warning": 0, "spare": 100, "threshold": 10, "used": 2, "media_errors": 0, **fields}
    return (
        "SMART overall-health self-assessment test result: PASSED\n\nSMART/Health Information (NVMe Log 0x02)\n"
        f"Critical Warning:                   0x{values['critical_warning']:02x}\n"
        f"Available Spare:                    {values['spare']}%\n"
        f"Available Spare Threshold:          {values['threshold']}%\n"
        f"Percentage Used:                    {values['used']}%\n"
        f"Media and Data Integrity Errors:    {values['media_errors']:,}\n"
    )


def nvme_cli(**fields: int) -> str:
    values = {"critical_warning": 0, "spare": 100, "threshold": 10, "used": 2, "media_errors": 0, **fields}
    return (
        f"critical_warning\t\t\t: {values['critical_warning']}\navailable_spare\t\t\t\t: {values['spare']}%\n"
        f"available_spare_threshold\t\t: {values['threshold']}%\npercentage_used\t\t\t\t: {values['used']}%\n"
        f"media_errors\t\t\t\t: {values['media_errors']}\n"
    )


def nvme_cli_json(**fields: int) -> str:
    values = {"critical_warning": 0, "spare": 100, "threshold": 10, "used": 2, "media_errors": 0, **fields}
    names = {"spare": "avail_spare", "threshold": "spare_thresh", "used": "percent_used"}
    return json.dumps({names.get(name, name): value for name, value in values.items()}, indent=2) + "\n"


def smartctl_json(indent: int | None = 2, **fields: int) -> str:
    values = {"critical_warning": 0, "spare": 100, "threshold": 10, "used": 2, "media_errors": 0, **fields}
    names = {"spare": "available_spare", "threshold": "available_spare_threshold", "used": "percentage_used"}
    document = {
        "json_format_version": [1, 0],
        "device": {"name": "/dev/nvme4", "type": "nvme"},
        "smart_status": {"passed": True},
        "nvme_smart_health_information_log": {names.get(name, name): value for name, value in values.items()},
    }
    return json.dumps(document, indent=indent) + "\n"


def smartctl_json_line(**fields: int) -> str:
    return smartctl_json(None, **fields)


FORMS = (nvme_text, nvme_cli, nvme_cli_json, smartctl_json, smartctl_json_line)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("fields", "verdict", "severity"),
    [
        ({}, "ok", None),
        ({"media_errors": FEW}, "ok", "info"),
        ({"media_errors": 99}, "ok", "info"),
        ({"media_errors": 100}, "degraded", "warning"),
        ({"media_errors": MANY}, "degraded", "warning"),
        ({"spare": 10}, "ok", None),
        ({"spare": 9}, "degraded", "warning"),
        ({"used": 99}, "ok", None),
        ({"used": 130}, "ok", "info"),
        ({"critical_warning": 1}, "degraded", "warning"),
        ({"critical_warning": 4}, "failed", "critical"),
        ({"critical_warning": 8, "media_errors": MANY}, "failed", "critical"),
    ],
)
def test_nvme_drives(form: Any, fields: dict[str, int], verdict: str, severity: str | None) -> None:
    report = report_of(form(**fields))
    assert report.verdict == verdict
    assert [(one.code, one.severity) for one in report.findings] == [("storage-degraded", severity)] * bool(severity)


ATTRIBUTES = {
    5: "Reallocated_Sector_Ct",
    187: "Reported_Uncorrect",
    197: "Current_Pending_Sector",
    198: "Offline_Uncorrectable",
}


def ata_text(**raw: int) -> str:
    rows = "".join(
        f"{number:3d} {name:23s} 0x0032   100   100   000    Old_age   Always       -       {raw.get(name, 0)}\n"
        for number, name in ATTRIBUTES.items()
    )
    return (
        "SMART overall-health self-assessment test result: PASSED\n\n"
        f"ID# ATTRIBUTE_NAME          FLAG     VALUE WORST THRESH TYPE      UPDATED  WHEN_FAILED RAW_VALUE\n{rows}"
    )


def ata_json(indent: int | None = 2, **raw: int) -> str:
    table = [
        {"id": number, "name": name, "when_failed": "", "raw": {"value": raw.get(name, 0)}}
        for number, name in ATTRIBUTES.items()
    ]
    document = {
        "json_format_version": [1, 0],
        "device": {"name": "/dev/sdq", "protocol": "ATA"},
        "smart_status": {"passed": True},
        "ata_smart_attributes": {"table": table},
    }
    return json.dumps(document, indent=indent) + "\n"


def ata_json_line(**raw: int) -> str:
    return ata_json(None, **raw)


@pytest.mark.parametrize("form", [ata_text, ata_json, ata_json_line])
@pytest.mark.parametrize(
    ("raw", "severity"),
    [
        ({}, None),
        ({"Reallocated_Sector_Ct": FEW}, "info"),
        ({"Reallocated_Sector_Ct": MANY}, "warning"),
        ({"Reported_Uncorrect": FEW}, "info"),
        ({"Reported_Uncorrect": MANY}, "warning"),
        ({"Current_Pending_Sector": FEW}, "warning"),
        ({"Offline_Uncorrectable": FEW}, "warning"),
    ],
)
def test_ata_disks(form: Any, raw: dict[str, int], severity: str | None) -> None:
    assert [(code, level) for code, level, _ in found_in(form(**raw))] == [("storage-degraded", severity)] * bool(
        severity
    )
    assert report_of(form(**raw)).verdict == ("degraded" if severity == "warning" else "ok")


def sas(uncorrected: int, defects: int = 0) -> str:
    return (
        f"SMART Health Status: OK\nElements in grown defect list: {defects}\n\nError counter log:\n"
        f"read:   98765432       12         0  98765444         12      54321.012           {uncorrected}\n"
        "write:         0        0         0         0          0       7654.321           0\n"
    )


def sas_json(uncorrected: int, defects: int = 0) -> str:
    counters = {"read": {"total_uncorrected_errors": uncorrected}, "write": {"total_uncorrected_errors": 0}}
    document = {
        "json_format_version": [1, 0],
        "device": {"name": "/dev/sdr", "protocol": "SCSI"},
        "smart_status": {"passed": True},
        "scsi_grown_defect_list": defects,
        "scsi_error_counter_log": counters,
    }
    return json.dumps(document) + "\n"


@pytest.mark.parametrize("form", [sas, sas_json])
@pytest.mark.parametrize(
    ("counts", "severity"),
    [((0, 0), None), ((FEW, 0), "info"), ((MANY, 0), "warning"), ((0, FEW), "info"), ((0, MANY), "warning")],
)
def test_sas_disks(form: Any, counts: tuple[int, int], severity: str | None) -> None:
    assert [level for _, level, _ in found_in(form(*counts))] == [severity] * bool(severity)


def test_a_disk_that_fails_in_json() -> None:
    document = json.loads(ata_json())
    document["smart_status"]["passed"] = False
    assert found_in(json.dumps(document)) == [("storage-degraded", "critical", "sdq")]
    assert report_of(ata_json()[:200]).verdict == "unknown"  # cut off
