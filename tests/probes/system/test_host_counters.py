"""Counters of processors and memory, and the windows of GPUs, from small trees."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import Pci
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, NotChecked, Observation, Record
from linkgauge.probes.host.entries import Entry, Link, UnreadableFile
from linkgauge.probes.pcie.bars import largest, read_pci_windows, second_window
from linkgauge.probes.system.host_counters import CONTROLLERS, read_host_counters
from tests.support.nodes.trees import tree

CPU = "sys/devices/system/cpu"
TIME = "thermal_throttle/package_throttle_total_time_ms"
SOCKETS: dict[str, Entry] = {
    f"{CPU}/online": "0-3",
    **{f"{CPU}/cpu{n}/topology/physical_package_id": str(n // 2) for n in range(4)},
    **{f"{CPU}/cpu{n}/topology/package_cpus_list": "0-1" if n < 2 else "2-3" for n in range(4)},
    **{f"{CPU}/cpu{n}/{TIME}": str(1500 * n) for n in range(4)},
}
MEMORY: dict[str, Entry] = {
    f"{CONTROLLERS}/mc0/ce_count": "3",
    f"{CONTROLLERS}/mc0/ue_count": "0",
    f"{CONTROLLERS}/mc1/ce_count": "0",
    f"{CONTROLLERS}/mc1/ue_count": "1",
    f"{CONTROLLERS}/power/control": "auto",
}


def seen(about: str, quantity: str, value: float, path: str, text: str) -> Observation:
    unit = "seconds" if quantity == "throttle_time" else "count"
    return Observation(about=about, quantity=quantity, unit=unit, value=value, at=1000, evidence=Evidence(path, text))


def said(files: dict[str, Entry]) -> list[Record]:
    return list(read_host_counters(tree(files)))


def test_two_sockets_and_two_controllers() -> None:
    """The source reads the counters of one CPU per package."""
    assert said({**SOCKETS, **MEMORY}) == [
        seen("package0", "throttle_time", 0, f"{CPU}/cpu0/{TIME}", "0"),
        seen("package1", "throttle_time", 3, f"{CPU}/cpu2/{TIME}", "3000"),
        seen("mc0", "ce_count", 3, f"{CONTROLLERS}/mc0/ce_count", "3"),
        seen("mc0", "ue_count", 0, f"{CONTROLLERS}/mc0/ue_count", "0"),
        seen("mc1", "ce_count", 0, f"{CONTROLLERS}/mc1/ce_count", "0"),
        seen("mc1", "ue_count", 1, f"{CONTROLLERS}/mc1/ue_count", "1"),
    ]


def test_a_machine_that_counts_neither() -> None:
    assert said({}) == []
    assert said({path: text for path, text in SOCKETS.items() if TIME not in path}) == []


def test_what_would_not_say_hides_nothing_else() -> None:
    files = {
        **SOCKETS,
        **MEMORY,
        f"{CPU}/cpu0/{TIME}": "hot",
        f"{CONTROLLERS}/mc0/ce_count": UnreadableFile(5, "broken"),
    }
    path, wrong = f"{CPU}/cpu0/{TIME}", "'hot' is not a number"
    told = said({**files, f"{CPU}/cpu2/{TIME}": UnreadableFile(13, "Permission denied")})
    assert [one for one in told if isinstance(one, NotChecked)] == [
        NotChecked(what="Package.throttle_time", subject="package0", reason=Reason.UNREADABLE, path=path, detail=wrong),
        NotChecked(
            what="Package.throttle_time",
            subject="package1",
            reason=Reason.PERMISSION,
            path=f"{CPU}/cpu2/{TIME}",
            detail="Permission denied",
            how="run as root",
        ),
        NotChecked(
            what="Node.edac",
            subject="mc0",
            reason=Reason.UNREADABLE,
            path=f"{CONTROLLERS}/mc0/ce_count",
            detail="broken",
        ),
    ]
    assert len([one for one in told if isinstance(one, Observation)]) == 3
    path, shut = CONTROLLERS, "Permission denied"
    assert said({CONTROLLERS: Link(UnreadableFile(13, "Permission denied"))}) == [
        NotChecked(
            what="Node.edac", subject="node", reason=Reason.PERMISSION, path=path, detail=shut, how="run as root"
        )
    ]


texts = st.sampled_from(["0", "-1", "0-1", "x", ""]) | st.text(max_size=20)


@given(st.dictionaries(st.sampled_from(sorted({**SOCKETS, **MEMORY})), texts))
def test_any_text(changed: dict[str, str]) -> None:
    for one in said({**SOCKETS, **MEMORY, **changed}):
        assert decode(encode(one)) == one


def windows(*rows: tuple[int, int, int]) -> str:
    table = (*rows, *[(0, 0, 0)] * (13 - len(rows)))
    return "\n".join(" ".join(f"{number:#018x}" for number in row) for row in table)


NOTHING = (0, 0, 0)
A100 = windows((0x92000000, 0x92FFFFFF, 0x40200), (0x2000000000, 0x3FFFFFFFFF, 0x14220C), NOTHING)
H100 = windows((0x22042000000, 0x22042FFFFFF, 0x14220C), NOTHING, (0x20000000000, 0x21FFFFFFFFF, 0x14220C))
SMALL = windows((0xB8000000, 0xB8FFFFFF, 0x40200), (0x10FFC0000000, 0x10FFCFFFFFFF, 0x14220C), NOTHING)


@pytest.mark.parametrize(
    ("table", "size"),
    [
        (A100, 128 << 30),
        (H100, 128 << 30),
        (SMALL, 256 << 20),
        (windows((0x92000000, 0x92FFFFFF, 0x40200)), 0),  # not assigned
        (windows((0x92000000, 0x92FFFFFF, 0x40200), (0, 0x1FFFFFFFFF, 0x2014220C)), 0),  # IORESOURCE_UNSET
        (windows(), None),  # a sandbox
    ],
)
def test_the_second_window(table: str, size: int | None) -> None:
    assert second_window(table) == size


@pytest.mark.parametrize(
    ("bits", "size"), [("00000000000001c0", 256 << 20), ("0000000000007fc0", 16 << 30), ("0000000000000000", None)]
)
def test_the_largest_window(bits: str, size: int | None) -> None:
    assert largest(bits) == size


def test_windows_of_gpus_alone() -> None:
    def files(address: str, table: str, number: int) -> dict[str, Entry]:
        folder = f"sys/bus/pci/devices/{address}"
        sizes = {f"{folder}/resource{number}_resize": "000000000003ffc0"} if number else {}
        return {f"sys/bus/pci/drivers/nvidia/{address}": Link(""), f"{folder}/resource": table, **sizes}

    machine = {
        **files("0000:17:00.0", H100, 2),
        **files("0000:31:00.0", SMALL, 0),
        **files("0000:52:00.0", "rubbish", 0),
        "sys/bus/pci/devices/0000:18:00.0/resource": SMALL,
        "sys/bus/pci/drivers/nvidia/bind": "",
    }
    said = list(read_pci_windows(tree(machine)))
    path = "sys/bus/pci/devices/0000:52:00.0/resource"
    assert [(one.key, one.bar1, one.bar1_max) for one in said if isinstance(one, Pci)] == [
        ("0000:17:00.0", 128 << 30, 128 << 30),
        ("0000:31:00.0", 256 << 20, None),
        ("0000:52:00.0", None, None),
    ]
    assert [one for one in said if isinstance(one, NotChecked)] == [
        NotChecked(
            what="Pci.bar1",
            subject="0000:52:00.0",
            reason=Reason.UNREADABLE,
            path=path,
            detail="'rubbish' is not a hexadecimal number",
        )
    ]


@given(st.text() | st.text("0123 x\nabcdef"), st.text())
def test_any_text_for_windows(table: str, bits: str) -> None:
    folder = "sys/bus/pci/devices/0000:17:00.0"
    files: dict[str, Entry] = {f"sys/bus/pci/drivers/nvidia/{folder[-12:]}": Link("")}
    for number in (1, 2):
        files[f"{folder}/resource{number}_resize"] = bits
    for one in read_pci_windows(tree({**files, f"{folder}/resource": table})):
        assert decode(encode(one)) == one
