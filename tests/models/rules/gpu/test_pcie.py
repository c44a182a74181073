"""Links of GPUs as their driver reports them, replays, and the memory window for peers."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from linkgauge.models.facts.gpu import Gpu, GpuPair
from linkgauge.models.facts.machine import Event, Node, Pci
from linkgauge.models.facts.records import Evidence, Record
from linkgauge.models.report import Finding
from tests.support.bare_findings import bare
from tests.support.nodes.gpu_facts import (
    BARE,
    GPU,
    HERE,
    NOW,
    address,
    board,
    counter,
    findings,
    function,
    gpu,
    report_of,
    summaries,
    with_fields,
)

NARROW = ("pcie-link-narrow", address(3), "critical", "likely")
SLOW = ("pcie-link-slow", address(3), "critical", "likely")
MIB, GIB = 1 << 20, 1 << 30
BUSY = {"clock_reasons": (), "performance_state": 0, "clock": 1980e6}


def test_one_link_below_its_equals() -> None:
    (found,) = findings(board(pcie_width=8))
    assert bare(found) == Finding(
        code="pcie-link-narrow",
        severity="critical",
        confidence="likely",
        subject=address(3),
        subject_name="GPU gpu3",
        message="GPU gpu3 runs at x8, most equal GPUs of this node at x16",
        expected=16,
        observed=8,
        unit="lanes",
        basis="kin",
        expected_source="most equal GPUs of this node, as their driver says",
        cause="its link did not train as theirs: seating, slot, riser or cable",
        location={"module_id": 4},
        evidence=(Evidence("gpu3 pcie_width", "8"),),
        remedy=found.remedy,
    )


def test_cards_in_unequal_slots_may_be_meant_so() -> None:
    cards = [Gpu(key=f"gpu{n}", name="NVIDIA A10G", pcie_width=16 if n else 8, pcie_max_width=16) for n in range(3)]
    assert summaries([BARE, *cards]) == [("pcie-link-narrow", "gpu0", "warning", "likely")]
    assert summaries([BARE, *cards[:2]]) == []
    assert summaries([BARE, *(replace(card, pcie_width=8) for card in cards)]) == []  # by design


def test_speed_counts_at_work_only() -> None:
    assert summaries(board(pcie_speed=2.5e9)) == []
    records = board(pcie_speed=16e9)
    for number in range(8):
        records = with_fields(records, f"gpu{number}", **BUSY)
    assert summaries(records) == [SLOW]
    assert summaries(with_fields(records, "gpu3", clock_reasons=("idle",))) == []
    assert summaries(with_fields(records, "gpu3", performance_state=8)) == []


PORT = Pci(key="0000:00:01.0", parent="pci0000:00", pci_class=0x060400, vendor=0x8086, max_speed=32e9, max_width=16)
LINK = {"parent": "0000:00:01.0", "speed": 32e9, "width": 8, "max_speed": 32e9, "max_width": 16}
QEMU = replace(PORT, vendor=0x1B36, device=0x000C)


def test_what_the_bus_has_judged_is_not_judged_again() -> None:
    records = [PORT, *with_fields(board(pcie_width=8), address(3), **LINK)]
    assert summaries(records) == [("pcie-link-narrow", address(3), "critical", "certain")]


def test_a_tree_that_a_hypervisor_made_up() -> None:
    """The GPU's driver shows the real link, the emulated bus does not."""
    guest = with_fields(with_fields([QEMU, *board()], address(3), **LINK), "node", virtual=True)
    narrow = ("Pci.width", address(3))
    assert narrow not in {(one.what, one.subject) for one in report_of(guest).not_checked}
    unsaid = report_of(with_fields(guest, "gpu3", pcie_width=None))
    assert narrow in {(one.what, one.subject) for one in unsaid.not_checked}
    assert NARROW in summaries(with_fields(guest, "gpu3", pcie_width=8))


def test_replays() -> None:
    (found,) = findings([*board(), counter("gpu3", "pcie_replay", 500)], counter("gpu3", "pcie_replay", 440, NOW - 60))
    assert (found.code, found.subject, found.severity, found.observed) == ("pcie-errors", address(3), "warning", 60)
    assert found.message == "GPU gpu3: 60 replays in 60 s, more than 8 a minute"
    assert (
        summaries([*board(), counter("gpu3", "pcie_replay", 500)], counter("gpu3", "pcie_replay", 493, NOW - 60)) == []
    )
    assert summaries([*board(), counter("gpu3", "pcie_replay", 5000)]) == []  # 3 a minute since boot
    bus = counter(address(3), "aer_correctable", 10**6)
    both = findings([*board(), counter("gpu3", "pcie_replay", 10**6), bus])
    assert [(one.code, one.subject, one.evidence) for one in both] == [("pcie-errors", address(3), (HERE,))]
    assert "correctable" in both[0].message
    log = Event(key="aer", kind="aer corrected", subject=address(3), text="severity=Correctable", at=NOW, recent=900)
    logged = [
        one for one in findings([*board(), counter("gpu3", "pcie_replay", 10**6), log]) if one.code == "pcie-errors"
    ]
    assert [one.message for one in logged] == ["the kernel logged of GPU gpu3: correctable bus errors"]


def cards(count: int, name: str, device: int, gpus: dict[str, Any], **functions: Any) -> list[Record]:
    """Cards of one kind on bare metal, without NVLink."""
    plain = replace(GPU, name=name, nvlinks=None, nvlinks_present=None, module_id=None, fabric_state=None)
    facts = [replace(plain, key=f"gpu{n}", address=address(n), **gpus) for n in range(count)]
    return [BARE, *(function(n, device=device, **functions) for n in range(count)), *facts]


SMALL = {"bar1": 256 * MIB, "memory": 47_680 * MIB}
L40S, RTX_4090 = ("NVIDIA L40S", 0x26B9), ("NVIDIA GeForce RTX 4090", 0x2684)


@pytest.mark.parametrize(
    ("count", "card", "gpus", "functions", "severity"),
    [
        (2, L40S, SMALL, {}, "info"),
        (2, L40S, SMALL, {"bar1": 256 * MIB, "bar1_max": 64 * GIB}, "warning"),
        (2, L40S, SMALL, {"bar1": 256 * MIB, "bar1_max": 256 * MIB}, None),
        (2, L40S, {**SMALL, "bar1": 64 * GIB}, {"bar1": 64 * GIB, "bar1_max": 128 * GIB}, None),
        (1, L40S, SMALL, {"bar1": 256 * MIB, "bar1_max": 64 * GIB}, None),
        (2, RTX_4090, SMALL, {"bar1": 256 * MIB, "bar1_max": 32 * GIB}, "info"),
        (2, L40S, {**SMALL, "nvlinks": 4}, {}, None),
        (2, L40S, {"bar1": 256 * MIB, "memory": 6 * GIB}, {}, None),
    ],
)
def test_windows(
    count: int, card: tuple[str, int], gpus: dict[str, Any], functions: dict[str, Any], severity: str | None
) -> None:
    found = [one for one in findings(cards(count, *card, gpus, **functions)) if one.code == "pcie-bar1-small"]
    expected = [("pcie-bar1-small", address(n), severity) for n in range(count)] if severity else []
    windows = [(one.code, one.subject, one.severity) for one in found if one.code != "gpu-memory-low"]
    assert windows == expected


def test_a_window_below_those_of_its_equals() -> None:
    records = with_fields(cards(4, *L40S, {**SMALL, "bar1": 64 * GIB}), "gpu2", bar1=256 * MIB)
    (found,) = findings(records)
    assert bare(found) == Finding(
        code="pcie-bar1-small",
        severity="warning",
        confidence="likely",
        subject=address(2),
        subject_name="GPU gpu2",
        message="GPU gpu2 shows its peers 256 MiB of its 47,680 MiB (BAR1); most equal GPUs of this node: 65,536 MiB",
        expected=64 * GIB,
        observed=256 * MIB,
        unit="bytes",
        basis="kin",
        expected_source="most equal GPUs of this node",
        cause="Resizable BAR or Above 4G Decoding is switched off in the firmware setup, or the GPU has no more",
        evidence=(Evidence("gpu2 bar1", "268 MB"), Evidence("gpu2 memory", "50 GB")),
        remedy=found.remedy,
    )


def test_peers_that_reach_each_other_need_no_window() -> None:
    """T4 and RTX A5000 have 256 MiB by design."""
    pair = GpuPair(key="gpu0-gpu1", a="gpu0", b="gpu1", read="ok", write="ok")
    small = cards(2, "Tesla T4", 0x1EB8, {"bar1": 256 * MIB, "memory": 15_360 * MIB})
    assert summaries([*small, pair]) == []
    assert {one[2] for one in summaries(small)} == {"info"}
    assert {one[2] for one in summaries([*small, replace(pair, read="chipset not supported")])} == {"info"}
    assert "pcie-bar1-small" not in {one[0] for one in summaries(with_fields(small, "node", virtual=True))}


def test_a_dump_shows_one_function_of_many() -> None:
    one = function(0, device=0x2684, bar1=256 * MIB, pci_class=0x030000)
    assert summaries([one], origin="dumps") == [("pcie-bar1-small", address(0), "info", "certain")]
    assert summaries([Node(key="node", virtual=False), one]) == []
    assert gpu(0).bar1 == 128 * GIB
