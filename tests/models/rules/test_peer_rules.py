"""Copies between GPUs that a setting, a driver or a switch prevents."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from linkgauge.models.facts.records import Evidence
from linkgauge.models.report import Finding
from tests.support.bare_findings import bare
from tests.support.nodes.gpu_facts import with_fields
from tests.support.nodes.nvlink_machines import (
    A100_PCIE,
    GUEST,
    H100,
    RTX_3090,
    T4,
    address,
    cards,
    cut,
    findings,
    machine,
    nvlink,
    pairs,
    summaries,
)


def test_peers_that_a_setting_forbids_are_one_finding() -> None:
    (finding,) = findings([*cards(A100_PCIE, [0] * 8), *pairs(8, read="disabled by registry")])
    assert replace(bare(finding), remedy=None) == Finding(
        code="p2p-disabled",
        severity="critical",
        subject="node",
        subject_name="gpu0-gpu1, gpu0-gpu2, gpu1-gpu2, gpu0-gpu3 and 24 more",
        message="peer access is disabled by a setting of the driver (registry key): 28 of 28 pairs of GPUs "
        "(gpu0-gpu1, gpu0-gpu2, gpu1-gpu2, gpu0-gpu3 and 24 more)",
        expected="ok",
        observed="disabled by registry",
        cause="NVreg_RegistryDwords or another option of the nvidia module, in /etc/modprobe.d",
        evidence=(Evidence("gpu0-gpu1 read", "disabled by registry"),),
    )


def test_nvlink_that_joins_and_cannot_be_used() -> None:
    records = [*machine(H100), *with_fields(pairs(8), "gpu2-gpu5", nvlink="not supported")]
    assert summaries(records) == [("p2p-disabled", "gpu2-gpu5", "critical")]
    alone = [replace(one, nvlink="not supported") if "gpu3" in one.key else one for one in pairs(8)]
    assert summaries([*machine(H100), *alone]) == [("p2p-disabled", "gpu3", "critical")]
    lost = cut(machine(H100), 3, *range(18))
    assert [one[0] for one in summaries([*lost, *alone])] == ["nvlink-inactive"]  # which says enough
    bridged = [
        *cards(A100_PCIE, [12, 12]),
        nvlink(0, 0, remote=address(1), remote_kind="gpu"),
        *pairs(2, nvlink="not supported"),
    ]
    assert summaries(bridged) == [("p2p-disabled", "gpu0-gpu1", "critical")]


@pytest.mark.parametrize("field", ["read", "write"])
def test_access_that_is_refused_although_nvlink_works(field: str) -> None:
    bridged = [*cards(A100_PCIE, [12, 12]), nvlink(0, 0, remote=address(1), remote_kind="gpu")]
    assert summaries([*bridged, *pairs(2)]) == []
    refused = [replace(one, **{field: "chipset not supported"}) for one in pairs(2)]
    assert summaries([*bridged, *refused]) == [("p2p-disabled", "gpu0-gpu1", "warning")]
    over_pcie = [replace(one, nvlink="not supported") for one in refused]
    assert summaries([*cards(A100_PCIE, [0, 0]), *over_pcie]) == []


def test_peers_over_pcie() -> None:
    below = pairs(2, read="chipset not supported", nvlink="not supported", path="PIX")
    assert summaries([*cards(T4, [0, 0]), *below]) == [("p2p-disabled", "gpu0-gpu1", "warning")]
    assert summaries([*cards(T4, [0, 0], GUEST), *below]) == []
    assert summaries([*cards(RTX_3090, [0, 0]), *below]) == []
    odd = [replace(one, read="not supported") if "gpu3" in one.key else one for one in pairs(6, nvlink="not supported")]
    assert summaries([*cards(T4, [0] * 6), *odd]) == [("p2p-disabled", "gpu3", "warning")]
