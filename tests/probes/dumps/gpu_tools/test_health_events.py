"""JSON records of health agents (gpu_tools/health_events.py): each kind of check in the form of each agent."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.texts import found_in, report_of

# The name of the check, the message, the code of the finding
CHECKS = (
    ("GpuNvlinkWatch", "NVLink 3 is down", "nvlink-inactive"),
    ("GpuNvlinkWatch", "CRC errors of NVLink 3", "nvlink-errors"),
    ("InfiniBandStateCheck", "port 1: state DOWN, phys_state Polling", "nic-port-down"),
    ("EthernetStateCheck", "port 1: state DOWN, phys_state Disabled", "nic-port-down"),
    ("accelerator-nvidia-infiniband", "mlx5_1 flapping: went down 7 times", "nic-port-flapping"),
    ("InfiniBandDegradationCheck", "symbol errors rise", "nic-errors"),
    ("GpuMemWatch", "uncorrectable errors", "gpu-ecc"),
    ("GpuRowRemap", "remapping failure", "gpu-row-remap"),
    ("GpuThermalWatch", "clocks are reduced because of heat", "gpu-throttled"),
    ("accelerator-nvidia-hw-slowdown", "hardware slowdown is active", "gpu-throttled"),
    ("GpuCount", "7 devices, expected 8", "gpu-missing"),
    ("GpuPcieWatch", "replays exceed the threshold", "pcie-errors"),
    ("GpuDriverWatch", "the driver failed", "gpu-driver-failed"),
    ("accelerator-nvidia-fabric-manager", "the service is not active", "fabric-manager-down"),
    ("GpuNvswitchFatalWatch", "a fatal error", "nvswitch-error"),
    ("ReadonlyFilesystem", "the root was remounted", "storage-degraded"),
    ("GpuXidWatch", "a program was ended", "gpu-xid"),
    ("KernelDeadlock", "task x:1 blocked for more than 120 seconds.", "not-enough-evidence"),
)
Form = Callable[[str, str, bool], Any]


def nvsentinel(check: str, message: str, healthy: bool) -> dict[str, Any]:
    return {"version": 1, "agent": "monitor", "checkName": check, "isFatal": not healthy, "isHealthy": healthy} | {
        "message": message,
        "errorCode": [],
        "entitiesImpacted": [{"entityType": "GPU", "entityValue": "2"}],
    }


def sent(check: str, message: str, healthy: bool) -> dict[str, Any]:
    shown = "No Health Failures" if healthy else message
    return {"level": "INFO", "msg": "Health event sent", "check": check, "is_fatal": not healthy, "message": shown}


def gpud(check: str, message: str, healthy: bool) -> dict[str, Any]:
    state = {"time": None, "name": "x", "health": "Healthy" if healthy else "Unhealthy", "reason": message}
    return {"component": check, "states": [state]}


def gpud_old(check: str, message: str, healthy: bool) -> list[dict[str, Any]]:
    return [{"component": check, "states": [{"name": "x", "healthy": healthy, "reason": message}]}]


def condition(check: str, message: str, healthy: bool) -> dict[str, Any]:
    reason = f"{check}{'IsHealthy' if healthy else 'HasIssues'}"
    one = {"type": check, "status": str(not healthy), "lastHeartbeatTime": "2026-02-11T09:00:01Z", "reason": reason}
    return {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}, one | {"message": message}]}


FORMS = (nvsentinel, sent, gpud, gpud_old, condition)
LAYOUTS: tuple[Callable[[Any], str], ...] = (
    json.dumps,
    lambda value: json.dumps(value, indent=2),
    lambda value: json.dumps(value, separators=(",", ":")),
    lambda value: f"The agent printed\n\n```json\n{json.dumps(value, indent=1)}\n```\n",
    lambda value: json.dumps({"log": json.dumps(value)}),
    lambda value: "".join(f"> {line}\n" for line in json.dumps(value, indent=2).split("\n")),
)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("check", "message", "code"), CHECKS)
def test_a_check_that_is_not_healthy(check: str, message: str, code: str, form: Form) -> None:
    for layout in LAYOUTS:
        found = [one for one, _, _ in found_in(layout(form(check, message, False)) + "\n")]
        assert code in found, layout(form(check, message, False))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("check", sorted({check for check, _, _ in CHECKS}))
def test_a_healthy_check(check: str, form: Form) -> None:
    for layout in LAYOUTS:
        assert found_in(layout(form(check, "all devices were checked", True)) + "\n") == []


def test_the_last_state_counts() -> None:
    bad, good = (json.dumps(nvsentinel("GpuNvlinkWatch", "NVLink 3 is down", one)) for one in (False, True))
    everything = json.dumps(nvsentinel("GpuNvlinkWatch", "No Health Failures", True) | {"entitiesImpacted": []})
    assert [one[0] for one in found_in(f"{good}\n{bad}\n")] == ["nvlink-inactive"]
    assert "nvlink-inactive" not in [one[0] for one in found_in(f"{bad}\n{good}\n")]
    assert "nvlink-inactive" not in [one[0] for one in found_in(f"{bad}\n{everything}\n")]


def test_the_device_and_the_gravity() -> None:
    def found(**changes: Any) -> list[tuple[str, str, str]]:
        record = nvsentinel("InfiniBandStateCheck", "Port mlx5_7 port 1: state DOWN, phys_state Polling", False)
        return [one for one in found_in(json.dumps(record | changes)) if one[0] != "not-enough-evidence"]

    assert found(entitiesImpacted=[]) == [("nic-port-down", "critical", "mlx5_7/1")]
    assert found(entitiesImpacted=[], isFatal=False) == [("nic-port-down", "warning", "mlx5_7/1")]
    pci = [{"entityType": "PCI", "entityValue": "0000:3B:00"}]
    xid = {"checkName": "SysLogsXIDError", "errorCode": ["79"], "message": "fell off", "entitiesImpacted": pci}
    assert found(**xid) == [("gpu-xid", "critical", "0000:3b:00.0")]
    own = found(**xid | {"errorCode": ["13"]})  # a program's own fault
    assert own == [("gpu-xid", "info", "0000:3b:00.0")]


@pytest.mark.parametrize(
    "record",
    [
        {"status": "healthy", "version": "1.0.0", "service": "sentinel"},
        {"type": "MemoryPressure", "status": "False", "reason": "KubeletHasSufficientMemory", "message": "enough"},
        {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"},
        {"type": "KernelDeadlock", "status": "False", "reason": "KernelHasNoDeadlock", "message": "no deadlock"},
        {"type": "Approved", "status": "True", "reason": "AutoApproved", "message": "a certificate"},
        {"type": "AcceleratedHardwareReady", "status": "True", "reason": "NVIDIAIsReady", "message": "is ready"},
        {"component": "login", "health": {"status": "Degraded"}, "reason": "a web service"},
        {"check": "InfiniBandStateCheck", "is_fatal": False, "message": "Port mlx5_0 port 1: state ACTIVE, LinkUp"},
    ],
)
def test_records_without_a_fault(record: dict[str, Any]) -> None:
    assert [one for one in found_in(json.dumps(record) + "\n") if one[1] != "info"] == []
    assert report_of(json.dumps(record) + "\n").verdict in ("ok", "unknown")
