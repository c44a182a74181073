"""Devices that are not on the bus any more, at the place where they were.

Their earlier names are no aliases: the driver counts again, and another device can have the name now.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ...models.graph.topology import Device, Link, Topology
from ...models.report import Report
from .states import active

ABSENT = "absent"  # the kind of these devices


def with_absent(report: Report) -> Report:
    """The report with a device for each finding about an absent one whose port is known and still there."""
    devices = tuple(_absent(report))
    if not devices:
        return report
    links = tuple(Link(f"{port}>{device.id}", port, device.id, "pcie") for device, port in devices)
    topology = report.topology
    every = (*topology.devices, *(device for device, _ in devices))
    return replace(report, topology=Topology(every, (*topology.links, *links)))


def _absent(report: Report) -> Iterator[tuple[Device, str]]:
    """The device of each such finding, and the port above it."""
    for one in active(report):
        port = one.location.get("port_above")
        if one.observed == ABSENT and isinstance(port, str) and report.topology.find(port):
            yield Device(one.subject, ABSENT, f"was {(one.device or one.subject).split(' (')[0]}"), port
