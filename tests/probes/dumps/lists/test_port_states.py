"""States of ports in tables: whatever the column is called, the port that is down is named."""

from __future__ import annotations

from itertools import product

import pytest

from tests.support.texts import report_of

COLUMNS = (
    *("State", "Link", "Status", "LinkState", "link_state", "PortState", "port_state", "Phys State", "PhysState"),
    *("physical_state", "OperState", "operstate", "LnkStat", "LnkSta", "Stat", "IB State", "logical_state"),
    *("Link Status", "LINK_STATUS", "Carrier", "Port Status", "link detected"),
)
DOWN = {
    **{"DOWN": "ACTIVE", "Down": "Active", "down": "up", "Polling": "LinkUp", "Disabled": "LinkUp", "no": "yes"},
    **{"Disconnected": "Connected", "no carrier": "up", "LowerLayerDown": "up"},
}


def table(column: str, device: str, states: list[str]) -> str:
    rows = [f"| {device}{number} | {state} | 100 Gb/s |" for number, state in enumerate(states)]
    return "\n".join([f"| Device | {column} | Rate |", "|---|---|---|", *rows])


@pytest.mark.parametrize("device", ["mlx5_", "eth"])
def test_the_port_that_is_down_is_named(device: str) -> None:
    missed = []
    for column, (down, up) in product(COLUMNS, DOWN.items()):
        report = report_of(table(column, device, [down if number == 3 else up for number in range(6)]))
        if [one.code for one in report.findings if one.subject.startswith(f"{device}3")] != ["nic-port-down"]:
            missed.append((column, down))
    assert missed == []


@pytest.mark.parametrize("device", ["mlx5_", "eth"])
def test_ports_that_are_up_have_no_fault(device: str) -> None:
    texts = [table(column, device, [up] * 6) for column, up in product(COLUMNS, dict.fromkeys(DOWN.values()))]
    assert [text for text in texts if report_of(text).findings] == []
