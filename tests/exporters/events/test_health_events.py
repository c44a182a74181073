"""The protocol of health events, and what becomes of findings."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.exporters.events.health_events import HealthEvent, action_of, changes, entities, is_fatal
from linkgauge.exporters.events.protobuf import describe
from linkgauge.models.catalog import codes
from linkgauge.models.graph.topology import Device, Topology
from linkgauge.models.report import Finding

PROTO = "health_event.proto"
TEXT = files("linkgauge.exporters.events").joinpath(PROTO).read_text(encoding="utf-8")
# As NVSentinel's health_event.proto numbers them.
NUMBERS = {
    "version": 1,
    "agent": 2,
    "componentClass": 3,
    "checkName": 4,
    "isFatal": 5,
    "isHealthy": 6,
    "message": 7,
    "recommendedAction": 8,
    "errorCode": 9,
    "entitiesImpacted": 10,
    "metadata": 11,
    "generatedTimestamp": 12,
    "nodeName": 13,
    "processingStrategy": 16,
}
GPU = Device("0000:1b:00.0", "gpu", aliases=("gpu0",), uuid="GPU-1")
NIC = Device("0000:1c:00.0", "nic", aliases=("mlx5_0",))
NODE = Topology((GPU, NIC, Device("mlx5_0/1", "port"), Device("nvme0n1", "disk"), Device("numa0", "numa")))


def test_the_descriptor_is_that_of_the_compiler(tmp_path: Path) -> None:
    protoc = pytest.importorskip("grpc_tools.protoc", reason="grpcio-tools is not installed")
    (tmp_path / PROTO).write_text(TEXT)
    well_known = files("grpc_tools").joinpath("_proto")
    out = tmp_path / "set"
    options = [f"-I{tmp_path}", f"-I{well_known}", f"--descriptor_set_out={out}", PROTO]
    assert protoc.main(["protoc", *options]) == 0
    (compiled,) = FileDescriptorSet.FromString(out.read_bytes()).file
    del compiled.service[:]
    assert describe(PROTO, TEXT) == compiled


def test_numbers_are_those_of_the_public_protocol() -> None:
    described = {one.name: one for one in describe(PROTO, TEXT).message_type}
    assert {one.name: one.number for one in described["HealthEvent"].field} == NUMBERS
    strategies = describe(PROTO, TEXT).enum_type[0]
    assert {one.name: one.number for one in strategies.value} == {
        "UNSPECIFIED": 0,
        "EXECUTE_REMEDIATION": 1,
        "STORE_ONLY": 2,
    }


@pytest.mark.parametrize(
    ("subject", "found"),
    [
        ("0000:1b:00.0", [("PCI", "0000:1b:00.0"), ("GPU", "0"), ("GPU_UUID", "GPU-1")]),
        ("gpu0/nvlink7", [("PCI", "0000:1b:00.0"), ("GPU", "0"), ("GPU_UUID", "GPU-1"), ("NVLINK", "7")]),
        ("mlx5_0/1", [("PCI", "0000:1c:00.0"), ("NIC", "mlx5_0"), ("NICPort", "1")]),
        ("0000:1c:00.0", [("PCI", "0000:1c:00.0"), ("NIC", "mlx5_0")]),
        ("0000:99:00.0", [("PCI", "0000:99:00.0")]),  # absent
        ("mlx5_9/1", [("NIC", "mlx5_9"), ("NICPort", "1")]),
        ("numa0", [("DEVICE", "numa0")]),
        ("node", []),
    ],
)
def test_entities(subject: str, found: list[tuple[str, str]]) -> None:
    assert list(entities(NODE, subject)) == found


def test_pairs_name_both_devices() -> None:
    assert [value for _, value in entities(NODE, "gpu0-numa0")] == ["0000:1b:00.0", "0", "GPU-1", "numa0"]


def test_each_first_step_has_an_action() -> None:
    """Steps that need a person at the machine are for the support, never a restart."""
    steps = {step.short for code in codes().values() for step in code.fix if step.short}
    by_action: dict[str, set[str]] = {}
    for step in steps:
        by_action.setdefault(action_of(step), set()).add(step)
    assert by_action["RESTART_VM"] == {"stop and start the machine"}
    assert by_action["RESTART_BM"] == {"power-cycle", "drain and reboot the node", "reboot or reload the driver"}
    assert all("reset" in step for step in by_action["COMPONENT_RESET"])
    assert not {step for step in steps if step.startswith("nothing")} - by_action["NONE"]


@pytest.mark.parametrize(
    ("code", "severity", "confidence", "fatal"),
    [
        ("pcie-link-narrow", "critical", "certain", True),
        ("pcie-link-narrow", "critical", "likely", False),
        ("pcie-link-narrow", "warning", "certain", False),
        ("shm-small", "critical", "certain", False),  # a fault of the job
    ],
)
def test_what_is_fatal(code: str, severity: str, confidence: str, fatal: bool) -> None:
    finding = Finding(code=code, severity=severity, confidence=confidence, subject="node", message="")  # type: ignore[arg-type]
    assert is_fatal(finding) == fatal


EVENTS = st.builds(
    HealthEvent,
    code=st.sampled_from(["a", "b"]),
    component=st.just("Node"),
    entities=st.sampled_from([(), (("PCI", "x"),)]),
    fatal=st.booleans(),
    message=st.text(max_size=3),
)
FAULTS = st.lists(EVENTS).map(lambda several: {one.key: one for one in several})


@given(FAULTS, FAULTS)
def test_changes_lead_from_one_state_to_the_other(before: dict[str, HealthEvent], now: dict[str, HealthEvent]) -> None:
    known = {key: one.fatal for key, one in before.items()}
    sent = list(changes(before, now))
    for one in sent:
        if one.healthy:
            del known[one.key]
        else:
            known[one.key] = one.fatal
    assert known == {key: one.fatal for key, one in now.items()}
    assert len({one.key for one in sent}) == len(sent)
    assert list(changes(now, now)) == []
