"""A value that one device alone has: the table is never ok, whatever the words are."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

import pytest

from tests.support.texts import report_of

DEVICES = ("GPU {}", "gpu{}", "0000:{}1:00.0", "mlx5_{}", "eth{}", "nvme{}")
VALUES = {  # of seven devices, and of one
    "Health": ("OK", "Attention"),
    "State": ("Normal", "Impaired"),
    "Xid": ("-", "Xid 79"),
    "ECC": ("clean", "dirty"),
    "Fabric": ("Completed", "In Progress"),
    "Mode": ("Default", "Exclusive"),
    "Link": ("full", "partial"),
    "Alarm": ("none", "thermal"),
    "NVLink": ("18/18", "17/18"),
    "Check": ("passed", "skipped"),
    "Grade": ("A", "D"),
    "Result": ("good", "see log"),
    "Errors": ("no", "yes"),
    "Row remap": ("none", "pending"),
    "Xid errors": ("0", "3"),
    "busbw (GB/s)": ("370.1", "180.2"),
    "H2D GB/s": ("54.1", "13.2"),
    "TFLOPS": ("680", "310"),
    "Latency us": ("2.1", "19.4"),
    "step time (s)": ("1.21", "2.38"),
    "Power limit (W)": ("700", "300"),
    "Power cap": ("700 W", "300 W"),
    "Throttle %": ("0", "48"),
}
Rows = Sequence[tuple[str, str]]
LAYOUTS: Mapping[str, Callable[[str, Rows], list[str]]] = {
    "bars": lambda name, rows: [f"| Device | {name} |", "|---|---|", *(f"| {one} | {value} |" for one, value in rows)],
    "commas": lambda name, rows: [f"device,{name}", *(f"{one},{value}" for one, value in rows)],
    "blanks": lambda name, rows: [f"{'Device':<14}{name}", *(f"{one:<14}{value}" for one, value in rows)],
    "beside a link": lambda name, rows: [
        *(f"| Device | PCIe | {name} |", "|---|---|---|"),
        *(f"| {one} | Gen5 x16 | {value} |" for one, value in rows),
    ],
    "JSON": lambda name, rows: [
        json.dumps([{"device": one, "pcie_width": "x16", name.lower(): value} for one, value in rows], indent=1)
    ],
}


def text_of(layout: str, device: str, name: str, values: Sequence[str]) -> str:
    return "\n".join(LAYOUTS[layout](name, [(device.format(number), value) for number, value in enumerate(values)]))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_value_that_one_device_has_prevents_ok(layout: str) -> None:
    texts = [
        text_of(layout, device, name, [odd if number == 3 else usual for number in range(8)])
        for device in DEVICES
        for name, (usual, odd) in VALUES.items()
    ]
    assert [text for text in texts if report_of(text).verdict == "ok"] == []


@pytest.mark.parametrize("layout", LAYOUTS)
def test_equal_values_are_no_fault(layout: str) -> None:
    texts = [text_of(layout, device, name, [usual] * 8) for device in DEVICES for name, (usual, _) in VALUES.items()]
    assert [text for text in texts if report_of(text).findings] == []


@pytest.mark.parametrize("name", ["name", "UUID", "NUMA node", "user", "process", "display"])
def test_what_each_device_has_of_its_own_is_no_difference(name: str) -> None:
    text = text_of("beside a link", "GPU {}", name, ["alice", *["bob"] * 7])
    assert report_of(text).verdict == "ok"
