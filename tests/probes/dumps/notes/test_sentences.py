"""Sentences of people about a device: no fault that a sentence names is ok, and no sentence about health is a fault."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import product

import pytest

from bench.accuracy.excerpts.reading import read

DEVICES = (
    "GPU 3",
    "gpu3",
    "GPU3",
    "GPU 0000:3b:00.0",
    "the GPU at 3b:00.0",
    "NVLink 7 of GPU 2",
    "NVLink 7 on GPU2",
    "link 7 of GPU 2",
    "mlx5_3",
    "mlx5_3 port 1",
    "port 1 of mlx5_3",
    "NIC mlx5_3",
    "eth2",
    "ens1f0np0",
    "enp193s0f0np0",
    "nvme2",
    "nvme2n1",
    "/dev/nvme2n1",
    "DIMM A3",
    "CPU 17",
    "NVSwitch 2",
    "the NVSwitch 0000:05:00.0",
    "fabric manager",
    "nvidia-fabricmanager",
    "0000:3b:00.0",
    "PCIe link of GPU 3",
    "PCIe slot 4",
    "the riser of GPU 3",
    "bond0",
    "ib0",
    "hsn0",
    "md0",
    "GPUs 4-7",
    "one of the GPUs",
    "switch port 12",
    "QSFP module of mlx5_3",
    "rail 3",
    "EFA device rdmap79s0",
    "node 12",
    "xGMI link 2 of GPU 1",
)
FAULTS = (
    "is down",
    "is missing",
    "is lost",
    "has failed",
    "failed",
    "is broken",
    "is slow",
    "is degraded",
    "is at half rate",
    "runs at x8 instead of x16",
    "runs at Gen3 instead of Gen5",
    "trained to x4",
    "is stuck at 2.5 GT/s",
    "has fallen off the bus",
    "does not respond",
    "is not responding",
    "is not detected",
    "disappeared",
    "is inactive",
    "is disabled",
    "shows errors",
    "has many errors",
    "has uncorrectable ECC errors",
    "throttles",
    "is throttled",
    "overheats",
    "is flapping",
    "drops packets",
    "has CRC errors",
    "times out",
    "hangs",
    "is dead",
    "is bad",
    "is faulty",
    "reports Xid 79",
    "is offline",
    "is polling",
    "is not active",
    "is in state DOWN",
    "was removed",
    "cannot be initialized",
    "is unhealthy",
    "is only 200 Gb/s",
    "link down",
    "has no link",
    "is unreachable",
    "reset failed",
    "crashed",
)
HEALTHY = (
    "is up",
    "is healthy",
    "is fine",
    "works",
    "works again",
    "is active",
    "is ok",
    "runs at x16",
    "runs at full speed",
    "is at full rate",
    "shows no errors",
    "has no errors",
    "is not throttled",
    "is not down",
    "was down but is up again",
    "is back",
    "recovered",
    "passed all tests",
    "is idle",
    "has 0 errors",
    "has no uncorrectable ECC errors",
    "did not fail",
    "never failed",
    "is not missing",
    "has been replaced and is fine now",
    "trained to x16",
    "runs at Gen5 x16",
    "is at 400 Gb/s",
    "link up",
    "is in state ACTIVE",
    "is online",
    "responds",
    "is not faulty",
    "shows no Xid",
    "had no downtime",
    "is no longer slow",
    "is enabled",
    "is connected",
)


def _short(state: str) -> str:
    return state.removeprefix("is ").removeprefix("has ").removeprefix("was ")


FORMS: Mapping[str, Callable[[str, str], str]] = {
    "sentence": lambda device, state: f"{device} {state}\n",
    "table": lambda device, state: f"| device | state |\n|---|---|\n| {device} | {_short(state)} |\n",
    "colon": lambda device, state: f"{device}: {_short(state)}\n",
    "list": lambda device, state: f"- {device} - {_short(state)}\n",
    "JSON": lambda device, state: json.dumps({"device": device, "status": _short(state)}) + "\n",
    "capitals": lambda device, state: f"{device} {_short(state).upper()}\n",
    "columns": lambda device, state: f"{device:30}{_short(state)}\n",
    "log": lambda device, state: f"2026-01-05 10:11:12 {device} {state}\n",
}

CASES = [
    pytest.param(form, id=name, marks=() if name == "sentence" else pytest.mark.slow) for name, form in FORMS.items()
]


@pytest.mark.parametrize("form", CASES)
def test_no_sentence_about_a_fault_is_ok(form: Callable[[str, str], str]) -> None:
    texts = [form(device, fault) for device, fault in product(DEVICES, FAULTS)]
    assert len(texts) > 1500
    assert [text for text in texts if read((text,)).verdict == "ok"] == []


@pytest.mark.parametrize("form", CASES)
def test_no_sentence_about_health_is_a_fault(form: Callable[[str, str], str]) -> None:
    texts = [form(device, state) for device, state in product(DEVICES, HEALTHY)]
    assert [text for text in texts if read((text,)).verdict not in ("ok", "unknown")] == []
