"""The NVLink fabric, its switches and its managers: unusual healthy machines, and faults."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from linkgauge.models.facts.gpu import Driver, Gpu, GpuLink
from linkgauge.models.report import Context, Finding
from tests.support.bare_findings import bare
from tests.support.nodes.gpu_facts import with_fields
from tests.support.nodes.nvlink_machines import (
    A100,
    B200,
    BARE,
    GB200,
    GUEST,
    H100,
    H200,
    HERE,
    MANAGER,
    NOW,
    RTX_3090,
    address,
    cards,
    cut,
    findings,
    machine,
    nvlink,
    service,
    summaries,
    switch,
)


@pytest.mark.parametrize(
    ("fields", "severity", "words"),
    [
        ({"fabric_state": "in progress"}, "critical", "state in progress, it waits for the fabric manager"),
        ({"fabric_state": "not started"}, "critical", "state not started"),
        ({"fabric_state": "not supported"}, "critical", "its driver found no NVSwitch"),
        ({"fabric_status": "Insufficient Resources"}, "critical", "state completed, status Insufficient Resources"),
        ({"fabric_faults": ("degraded bandwidth",)}, "critical", "not healthy: degraded bandwidth"),
        ({"fabric_faults": ("route recovery",)}, "warning", "not healthy: route recovery"),
        ({"fabric_faults": ()}, None, ""),
    ],
)
def test_a_gpu_that_is_not_in_its_fabric(fields: dict[str, object], severity: str | None, words: str) -> None:
    found = findings(with_fields(machine(H100), "gpu5", **fields))
    assert [(one.code, one.subject, one.severity) for one in found] == (
        [("nvlink-fabric-incomplete", address(5), severity)] if severity else []
    )
    assert all(words in one.message and one.evidence for one in found)


def test_where_not_supported_is_normal_and_where_it_is_not() -> None:
    """A driver joins no fabric where it sees no switch: boards of four whose GPUs are joined directly have none."""
    plain: dict[str, Any] = {"fabric_state": "not supported", "fabric_status": None}
    tray = [("nvlink-fabric-incomplete", address(gpu), "critical") for gpu in range(4)]
    assert summaries(machine(GB200, 4, **plain)) == tray
    mesh = [one for one in machine(H100, 4, hidden=True, **plain) if not isinstance(one, GpuLink)]
    assert summaries(mesh) == []
    assert summaries([*mesh, *(nvlink(gpu, n, remote_kind="gpu") for gpu in range(4) for n in range(18))]) == []
    assert len(summaries(machine(H200, 8, hidden=True, **plain))) == 8
    named = [Gpu(key="gpu0", fabric_state="completed", fabric_status="Insufficient Resources")]  # a dump's excerpt
    assert summaries(named) == [("nvlink-fabric-incomplete", "gpu0", "critical")]


def test_a_fabric_takes_its_time_after_boot() -> None:
    young = replace(BARE, booted=NOW - 120)
    assert {one[2] for one in summaries(machine(H100, node=young, fabric_state="in progress"))} == {"warning"}


def test_a_manager_that_does_not_run_is_one_finding() -> None:
    records = machine(H100, fabric_state="in progress", fabric_status=None)
    assert len(summaries(records)) == 8
    (finding,) = findings([*records, service(MANAGER, False, "550.1"), Driver(key="nvidia", version="550.1")])
    assert replace(bare(finding), remedy=None) == Finding(
        code="fabric-manager-down",
        cost="cannot run",
        severity="critical",
        subject=MANAGER,
        message=f"the service {MANAGER} does not run, and 8 of 8 GPUs have not joined their NVLink fabric "
        "(in progress)",
        expected="running",
        observed="not running",
        cause="it was not started, or it failed: its journal says why",
        explains=tuple(f"nvlink-fabric-incomplete:{address(gpu)}" for gpu in range(8)),
        evidence=(HERE,) * 9,
    )
    (finding,) = findings([*records, service(MANAGER, False, "550.1"), Driver(key="nvidia", version="550.2")])
    assert finding.cause == "the fabric manager is version 550.1, the driver 550.2: they must be the same"
    running = summaries([*records, service(MANAGER, True)])
    assert {one[0] for one in running} == {"nvlink-fabric-incomplete"}


def test_links_of_an_a100_that_its_manager_did_not_bring_up() -> None:
    records = machine(A100)
    for gpu in range(8):
        records = cut(records, gpu, *range(12))
    assert {one[0] for one in summaries(records)} == {"nvlink-inactive"}
    (finding,) = findings([*records, service(MANAGER, False)])
    assert (finding.code, finding.severity, finding.confidence) == ("fabric-manager-down", "critical", "likely")
    assert finding.message == f"the service {MANAGER} does not run, and no NVLink of 8 of 8 GPUs is up"
    assert finding.explains == tuple(f"nvlink-inactive:{address(gpu)}" for gpu in range(8))


def test_managers_that_are_not_of_this_node() -> None:
    """Of a rack it runs on the switch trays, of a guest without switches on its host; RTX cards need none."""
    for records in (
        machine(GB200, 4, fabric_state="in progress"),
        machine(H100, node=GUEST, hidden=True, fabric_state="in progress"),
    ):
        assert {one[0] for one in summaries([*records, service(MANAGER, False)])} == {"nvlink-fabric-incomplete"}
    other = [service(MANAGER, False, "1"), Driver(key="nvidia", version="2")]
    assert summaries([*cards(RTX_3090, [0, 0]), *other]) == []


def test_a_manager_of_another_version_than_the_driver() -> None:
    records = [*machine(A100), service(MANAGER, True, "535.1"), Driver(key="nvidia", version="535.2")]
    assert summaries(records) == [("driver-mismatch", MANAGER, "warning")]


@pytest.mark.parametrize(("context", "severity"), [("host", "info"), ("job", "critical")])
def test_memory_exchange(context: Context, severity: str) -> None:
    records = [*machine(GB200, 4, fabric_cluster="c1"), service("nvidia-imex", False)]
    assert summaries(records, context=context) == [("imex-not-ready", "nvidia-imex", severity)]
    assert summaries([*machine(GB200, 4, fabric_cluster="c1"), service("nvidia-imex", True)]) == []
    assert summaries([*machine(B200, fabric_cluster="c1"), service("nvidia-imex", False)]) == []


def test_switches_that_are_missing() -> None:
    gone = [one for one in machine(H100) if getattr(one, "key", None) != switch(3)]
    (finding,) = findings(gone)
    assert (finding.code, finding.subject, finding.severity) == ("nvswitch-error", switch(3), "critical")
    assert finding.message == f"NVSwitch {switch(3)} is not on the bus, and 32 NVLinks lead to it"
    uncounted = [one for one in gone if not isinstance(one, GpuLink)]
    (finding,) = findings(uncounted)
    assert (finding.subject, finding.expected, finding.observed, finding.basis) == ("node", 4, 3, "capability")
    assert summaries(with_fields(gone, "node", virtual=True)) == []  # a guest was given a part
    assert summaries(with_fields(gone, "node", container="docker")) == []
    fell = with_fields(machine(H100), switch(3), lost=True)
    assert summaries(fell) == [("nvswitch-error", switch(3), "critical")]
