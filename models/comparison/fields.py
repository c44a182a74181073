"""The fields of facts that a comparison shows, with their group. Momentary values such as clocks are left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from ..facts.gpu import Driver, Gpu
from ..facts.machine import (
    Array,
    Disk,
    Mount,
    Nccl,
    Net,
    Node,
    Numa,
    Nvme,
    Package,
    Pci,
    Port,
    Rdma,
    Service,
    Setting,
)
from ..facts.network_paths import NicPath
from ..facts.records import Fact

Group: TypeAlias = Literal["verdict", "devices", "links", "findings", "rates", "settings", "versions", "hardware"]
GROUPS: tuple[Group, ...] = (  # most relevant first
    *("verdict", "devices", "links", "findings"),
    *("rates", "settings", "versions", "hardware"),
)


class Field(Struct, frozen=True):
    """What people call a field, and the unit of its values."""

    label: str
    group: Group
    unit: str | None = None


def _fields(group: Group, **labels: str | tuple[str, str]) -> dict[str, Field]:
    """Fields by name. A label may come with a unit."""
    return {
        name: Field(label, group) if isinstance(label, str) else Field(label[0], group, label[1])
        for name, label in labels.items()
    }


_RATE, _SPEED, _BYTES = "bytes_per_second", "transfers_per_second", "bytes"

COMPARED: Mapping[type[Fact], Mapping[str, Field]] = {
    Node: {
        **_fields("settings", smt="SMT"),
        **_fields("versions", kernel="kernel", bios="BIOS"),
        **_fields("hardware", vendor="vendor", product="product", board="board", instance="instance type"),
    },
    Package: _fields("hardware", model="model", vendor="vendor", cores="cores"),
    Numa: _fields("hardware", memory=("memory", _BYTES)),
    Driver: {
        **_fields("links", failure="driver failure"),
        **_fields("versions", version="driver", library="driver library", cuda="CUDA of the driver"),
    },
    # The PCI function of a GPU has some of its fields, and counts: it comes later.
    Gpu: {
        **_fields(
            "links",
            failure="failure",
            pcie_width=("PCIe width", "lanes"),
            nvlinks=("active NVLinks", "links"),
            nvlink_rate=("rate of one NVLink", _RATE),
            c2c_links=("active NVLink-C2C", "links"),
            fabric_state="fabric state",
            fabric_status="fabric status",
        ),
        **_fields(
            "settings",
            power_limit=("power limit", "watts"),
            application_clock=("application clock", "hertz"),
            ecc="ECC",
            mig="MIG",
            persistence="persistence mode",
            compute_mode="compute mode",
            bar1=("BAR 1", _BYTES),
        ),
        **_fields("versions", vbios="VBIOS"),
        **_fields(
            "hardware",
            name="product",
            board_part="board part",
            memory=("memory", _BYTES),
            clock_max=("clock", "hertz"),
            pcie_max_width=("widest PCIe", "lanes"),
            pcie_own_max_speed=("fastest PCIe", _SPEED),
            pcie_max_speed=("fastest PCIe in this machine", _SPEED),
        ),
    },
    Pci: {
        **_fields("links", width=("PCIe width", "lanes"), speed=("PCIe speed", _SPEED), lost="does not answer"),
        **_fields(
            "settings",
            driver="kernel driver",
            max_payload=("maximum payload", _BYTES),
            max_read_request=("maximum read request", _BYTES),
            relaxed_ordering="relaxed ordering",
            acs="ACS",
            bar1=("BAR 1", _BYTES),
        ),
        **_fields("hardware", max_width=("widest PCIe", "lanes"), max_speed=("fastest PCIe", _SPEED), name="product"),
    },
    Net: {
        **_fields("links", speed=("speed", _RATE), carrier="has a link", duplex="duplex"),
        **_fields("settings", mtu="MTU", enabled="enabled", driver="kernel driver"),
    },
    Rdma: {
        **_fields("versions", firmware="firmware"),
        **_fields("hardware", board_id="PSID", hca_type="HCA type"),
    },
    Port: {
        **_fields("links", state="state", physical_state="physical state", rate=("rate", _RATE), lanes="lanes"),
        **_fields("settings", mtu="RDMA MTU", link_layer="link layer"),
    },
    Nvme: {
        **_fields("links", state="state"),
        **_fields("versions", firmware="firmware"),
        **_fields("hardware", model="model"),
    },
    Disk: _fields("hardware", size=("size", _BYTES), model="model"),
    Array: {
        **_fields("links", state="state", missing="missing members", wanted="members"),
        **_fields("hardware", level="RAID level"),
    },
    Mount: _fields("settings", fstype="file system", read_only="read-only", stopped="stopped by an error"),
    Setting: _fields("settings", value="setting"),
    Service: {**_fields("settings", running="runs", state="state"), **_fields("versions", version="version")},
    Nccl: _fields("versions", version="version"),
    NicPath: _fields("links", path="path"),
}
