"""Info series of devices, with the labels that other exporters use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...models.graph.topology import Device, Topology
from ...models.report import Report
from .sample import Sample

_BY_DEFAULT = frozenset({"gpu", "nic", "nvme", "nvswitch", "port", "netdev", "disk", "array", "package", "numa"})
_DRIVERS = {"nic": "rdma", "nvme": "controller"}  # kind of function -> class of the driver's own device
_INSIDE = ("lo",)  # cannot reach another machine


def devices(report: Report, detail: str) -> Iterator[Sample]:
    """One info series for each device that has link series or findings."""
    with_findings = {finding.subject for finding in report.findings}
    for device in report.topology.devices:
        usual = device.kind in _BY_DEFAULT and device.id not in _INSIDE
        if usual or detail or device.id in with_findings:
            yield Sample("linkgauge_device_info", labels_of(device), 1.0)
        for alias in device.aliases if device.kind in _DRIVERS else ():
            driver = {"subject": alias, "class": _DRIVERS[device.kind], "name": device.name, "device": alias}
            yield Sample("linkgauge_device_info", driver, 1.0)


def labels_of(device: Device) -> Mapping[str, str]:
    """The labels of a device; "" for labels without a value."""
    name = next(iter(device.aliases), "")
    gpu = name.removeprefix("gpu")
    port = device.id.rpartition("/") if device.kind == "port" else ("", "", "")
    own = device.id if device.kind in ("netdev", "disk", "partition", "array") else ""
    return {
        "subject": device.id,
        "class": device.kind,
        "name": device.name,
        "gpu": gpu if device.kind == "gpu" and gpu.isdecimal() else "",
        "UUID": device.uuid or "",
        "pci_bus_id": bus_id(device.id),
        "device": port[0] or own or (name if device.kind in _DRIVERS else ""),
        "port": port[2],
        "slot": device.slot or "",
        "module_id": "" if device.module_id is None else str(device.module_id),
        "numa_node": "" if device.numa_node is None else str(device.numa_node),
        "firmware": device.firmware or "",
    }


def bus_id(name: str) -> str:
    """A PCI address in the form of NVML and dcgm-exporter: "00000000:1B:00.0"; "" if it is no PCI address."""
    domain, colon, rest = name.partition(":")
    is_address = ":" in rest and "." in rest and len(domain) in (4, 8)
    return f"{domain:0>8}{colon}{rest}".upper() if is_address else ""


def subject_of(topology: Topology, name: str) -> str:
    """The id of a device in findings, from the driver's name: a GPU by its address."""
    device = topology.find(name)
    return device.id if device else name
