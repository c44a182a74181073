"""Findings about devices that were there before: absent, new, swapped, moved, with other firmware or a lower value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest
from msgspec.structs import replace
from msgspec.structs import replace as with_values

from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.machine import Node, Numa, Nvme, Package, Pci, Port, Rdma, Serial
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import NotChecked, Record
from linkgauge.models.inventory.inventory import PARTS, Inventory, accepted_now, advanced, completed, differences
from linkgauge.models.inventory.present import known_absent, present
from linkgauge.models.report import Finding
from tests.support.nodes.gpu_facts import BARE
from tests.support.nodes.small_nodes import bridge, gpu_address, gpus_under_switches, report_of, snapshot_of

NIC, DISK = "0000:41:00.0", "0000:42:00.0"
GUEST = Node(key="node", virtual=True, hypervisor="KVM")


def uuids(count: int) -> list[Record]:
    return [Gpu(key=f"gpu{n}", address=gpu_address(n), uuid=f"GPU-{n}", vbios="96.00") for n in range(count)]


def node(gpus: int = 4) -> list[Record]:
    link = Pci(key="", speed=16e9, max_speed=16e9, lost=False)
    return [
        BARE,
        *uuids(gpus),
        *gpus_under_switches(gpus),
        bridge("0000:40:01.0", "pci0000:40"),
        bridge("0000:40:02.0", "pci0000:40"),
        replace(
            link,
            key=NIC,
            parent="0000:40:01.0",
            pci_class=0x020000,
            vendor=0x15B3,
            device=0x1021,
            width=16,
            max_width=16,
        ),
        Rdma(key="mlx5_0", address=NIC, firmware="28.1"),
        Port(key="mlx5_0/1", device="mlx5_0", state="ACTIVE", physical_state="LinkUp", rate=50e9),
        replace(
            link,
            key=DISK,
            parent="0000:40:02.0",
            pci_class=0x010802,
            vendor=0x144D,
            device=0xA80A,
            width=4,
            max_width=4,
        ),
        Nvme(key="nvme0", address=DISK, model="PM9A3", firmware="GDC1", transport="pcie", state="live"),
        Serial(key="nvme0", number="S64ANS0T"),
    ]


def without(records: Sequence[Record], address: str) -> list[Record]:
    """The records without the device at the address."""
    names = {getattr(one, "key", "") for one in records if getattr(one, "address", None) == address} | {address}
    return [one for one in records if getattr(one, "key", "").partition("/")[0] not in names]


def changed(records: Sequence[Record], key: str, /, **fields: object) -> list[Record]:
    """The records with other values in those records of the key that have these fields."""
    fits = [getattr(one, "key", "") == key and all(hasattr(one, name) for name in fields) for one in records]
    return [replace(cast(Any, one), **fields) if fit else one for one, fit in zip(records, fits, strict=True)]


def before(records: Sequence[Record], accepted: bool = False) -> Inventory:
    inventory = present(snapshot_of(records))
    return accepted_now(inventory) if accepted else inventory


def new(then: Sequence[Record], now: Sequence[Record], accepted: bool = False) -> list[Finding]:
    """The findings of which the inventory is the reason."""
    known = report_of(now).findings
    return [one for one in report_of(now, inventory=before(then, accepted)).findings if one not in known]


def test_a_node_that_did_not_change_has_no_finding() -> None:
    assert new(node(), node()) == []
    assert new(node(), node(), accepted=True) == []


@pytest.mark.parametrize(
    ("address", "code", "severity", "in_a_guest"),
    [
        (gpu_address(1), "gpu-missing", "critical", "critical"),
        (NIC, "nic-missing", "critical", "info"),
        (DISK, "storage-missing", "warning", "info"),
    ],
)
def test_a_device_that_was_there_is_missing(address: str, code: str, severity: str, in_a_guest: str) -> None:
    (one,) = new(node(), without(node(), address))
    assert (one.code, one.subject, one.severity, one.basis) == (code, address, severity, "baseline")
    assert f"at {address} is not on the bus any more; it was there at 1970-01-01T00:01:40Z" in one.message
    guest = [GUEST if record is BARE else record for record in node()]
    (one,) = [one for one in new(guest, without(guest, address)) if one.subject == address]
    assert (one.code, one.severity) == (code, in_a_guest)


def test_serial_numbers_and_uuids_are_in_no_finding() -> None:
    text = str(new(node(), without(without(node(), DISK), gpu_address(1))))
    assert "storage-missing" in text
    assert not any(secret in text for secret in ("S64ANS0T", "GPU-1"))


def test_functions_of_one_card_are_one_finding() -> None:
    second = [replace(one, key="0000:41:00.1") for one in node() if isinstance(one, Pci) and one.key == NIC]
    (one,) = new([*node(), *second], without(node(), NIC))
    assert f"{NIC} (and 0000:41:00.1)" in one.message


def test_where_the_device_was_is_in_the_finding() -> None:
    placed = changed(changed(node(), DISK, slot="12"), "gpu1", module_id=2)
    (disk,) = new(placed, without(placed, DISK))
    assert (disk.location, "slot 12" in disk.message) == ({"slot": "12", "port_above": "0000:40:02.0"}, True)
    (gpu,) = new(placed, without(placed, gpu_address(1)))
    assert gpu.location == {"module_id": 2, "port_above": "0000:02:01.0"}


def test_a_tree_that_was_not_read_is_no_removal() -> None:
    unread = NotChecked(what="Pci", subject=DISK, reason=Reason.UNREADABLE, detail="EIO")
    assert new(node(), [*without(node(), DISK), unread]) == []


def test_the_inventory_of_another_machine_is_not_compared() -> None:
    """A disk image can contain the state folder of another machine."""
    other = [replace(one, uuid=f"GPU-x{one.key}") if isinstance(one, Gpu) and one.uuid else one for one in node()]
    other = [replace(one, number="other") if isinstance(one, Serial) else one for one in other]
    assert new(node(), without(other, NIC)) == []


@pytest.mark.parametrize(
    ("then", "now", "subject", "text"),
    [
        (without(node(), DISK), node(), DISK, "a new device"),
        (node(), changed(node(), "nvme0", number="S99"), DISK, "it took the place of another device"),
        (node(), changed(node(), "gpu1", uuid="GPU-9"), gpu_address(1), "it took the place of another device"),
        (node(), changed(node(), "mlx5_0", firmware="28.2"), NIC, "firmware 28.2, before 28.1"),
        (
            node(),
            changed(changed(node(), DISK, key="0000:43:00.0"), "nvme0", address="0000:43:00.0"),
            "0000:43:00.0",
            f"the device of {DISK} is at 0000:43:00.0 now",
        ),
    ],
)
def test_changes_are_info(then: list[Record], now: list[Record], subject: str, text: str) -> None:
    (one,) = new(then, now)
    assert (one.code, one.severity, one.subject) == ("device-changed", "info", subject)
    assert text in one.message


def test_equal_changes_are_one_finding() -> None:
    now = [replace(one, vbios="97.00") if isinstance(one, Gpu) and one.uuid else one for one in node()]
    (one,) = new(node(), now)
    assert "and 3 equal devices: firmware 97.00, before 96.00" in one.message


def test_a_link_below_its_earlier_width_is_found_even_if_all_equal_links_are() -> None:
    """With less than its ports support it is found anyway, so both ends show the lower maximum."""
    ports = [f"0000:{gpu // 2}2:0{gpu % 2}.0" for gpu in range(4)]
    now: list[Record] = node()
    for key in (*ports, *(gpu_address(n) for n in range(4))):
        now = changed(now, key, width=8, max_width=8)
    found = new(node(), now)
    assert {(one.code, one.subject, one.basis) for one in found} == {
        ("pcie-link-narrow", gpu_address(n), "baseline") for n in range(4)
    }
    assert all("not x16" in one.message for one in found)


def test_only_an_acceptance_supports_a_value() -> None:
    """A fault may be older than the first inventory of a service."""
    alone = node(1)
    by_service = report_of(alone, inventory=before(alone)).coverage
    by_operator = report_of(alone, inventory=before(alone, accepted=True)).coverage
    assert "baseline" not in str(by_service.corroborated)
    assert (
        by_operator.corroborated["links"]["baseline"] == 3 + 2
    )  # GPU, NIC, disk, the switch of the GPU, and the port of the NIC
    assert len(by_service.uncorroborated) > len(by_operator.uncorroborated)


@pytest.mark.parametrize(("rate", "state", "code"), [(25e9, "ACTIVE", "nic-rate-low"), (50e9, "DOWN", "nic-port-down")])
def test_ports_are_compared_with_the_acceptance(rate: float, state: str, code: str) -> None:
    now = changed(
        node(), "mlx5_0/1", rate=rate, state=state, physical_state="LinkUp" if state == "ACTIVE" else "Polling"
    )
    report = report_of(now, inventory=before(node(), accepted=True))
    (one,) = [one for one in report.findings if one.subject == "mlx5_0/1"]
    assert (one.code, one.severity, one.basis) == (code, "critical", "baseline")


def test_processors_and_memory() -> None:
    sockets = [Package(key=f"package{n}", cpus=(n,)) for n in range(2)]
    numas = [Numa(key=f"numa{n}", cpus=(n,), memory=64 << 30) for n in range(2)]
    whole = [*node(), *sockets, *numas]
    found = new(whole, [*node(), sockets[0], numas[0]])
    assert {(one.code, one.severity, one.basis) for one in found} == {("cpu-missing", "critical", "baseline")}
    less = changed(changed(whole, "numa0", memory=56 << 30), "numa1", memory=56 << 30)
    found = new(whole, less)
    assert {(one.code, one.subject) for one in found} == {("numa-memory-missing", f"numa{n}") for n in range(2)}
    assert new(whole, changed(whole, "numa0", memory=63 << 30)) == []


def test_the_driver_of_a_nic_that_is_not_loaded_any_more() -> None:
    (one,) = new(node(), [one for one in node() if not isinstance(one, (Rdma, Port))])
    assert (one.code, one.subject, one.observed, one.expected) == ("nic-missing", "node", 0, 1)


def test_a_driver_that_loads_later_completes_the_inventory() -> None:
    early = before([one for one in node() if not isinstance(one, (Gpu, Rdma, Port, Nvme, Serial))])
    whole = completed(early, before(node()))
    assert [item.identity for item in whole.of("gpu")] == [f"GPU-{n}" for n in range(4)]
    assert whole.find("mlx5_0/1")
    assert completed(whole, before(node())) is whole


def test_a_boot_keeps_what_was_lost_before_and_takes_what_changed() -> None:
    lost = without(changed(node(), gpu_address(2), width=8), DISK)
    after = advanced(before(node()), before(changed(lost, "gpu1", uuid="GPU-9")))
    assert after.find(DISK)
    assert [item.width for item in after.of("gpu")] == [16] * 4
    assert [change.kind for change in differences(after, before(lost))] == ["swapped", "removed"]
    again = {with_values(item, seen_at=None) for item in after.devices}
    assert {with_values(item, seen_at=None) for item in advanced(after, after).devices} == again


def test_the_time_of_an_absent_device_stays_after_boots() -> None:
    then, absent = before(node()), without(node(), DISK)
    second = advanced(with_values(then, taken_at=50.0), with_values(before(absent), taken_at=60.0))
    third = advanced(second, with_values(before(absent), taken_at=70.0))
    for reference in (second, third):
        (one,) = [one for one in report_of(absent, inventory=reference).findings if one.subject == DISK]
        assert "it was there at 1970-01-01T00:00:50Z" in one.message
    back = advanced(third, with_values(then, taken_at=80.0))
    (one,) = [one for one in report_of(absent, inventory=back).findings if one.subject == DISK]
    assert "it was there at 1970-01-01T00:01:20Z" in one.message


@pytest.mark.parametrize("address", [gpu_address(1), NIC, DISK])
def test_an_accepted_removal_is_no_empty_position_and_no_missing_count(address: str) -> None:
    """A device that was never there is one."""
    absent = without(node(8), address)
    snapshot = replace(snapshot_of(absent), inventory=before(node(8)))
    accepted = accepted_now(present(snapshot), known_absent(snapshot, *PARTS))
    assert report_of(absent, inventory=accepted).findings == ()
    again = replace(snapshot_of(absent), inventory=accepted)
    later = accepted_now(present(again), known_absent(again, *PARTS))
    assert report_of(absent, inventory=later).findings == ()
    assert report_of(absent, inventory=advanced(later, present(snapshot_of(absent)))).findings == ()
    other = without(absent, gpu_address(2))
    assert [one.subject for one in report_of(other, inventory=accepted).findings] == [gpu_address(2)]
