"""The device models of synthetic nodes: identity and capabilities.

device_models.toml contains the models. The description of a node can add its own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Literal, TypeAlias

import msgspec
import tomli

Kind: TypeAlias = Literal["port", "gpu", "nvswitch", "nic", "nvme", "sata", "display", "other"]
Id = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{4}:[0-9a-f]{4}$")]
Line = Annotated[str, msgspec.Meta(pattern=r"^[\x20-\x7e]*$")]
Word = Annotated[str, msgspec.Meta(pattern=r"^([A-Za-z0-9][A-Za-z0-9_.:-]*)?$")]
Lanes = Annotated[int, msgspec.Meta(ge=0, le=255)]
Size = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Amount = Annotated[float, msgspec.Meta(ge=0, le=1e18)]

VENDORS = {
    "1000": "Broadcom / LSI",
    "1002": "Advanced Micro Devices, Inc. [AMD/ATI]",
    "1022": "Advanced Micro Devices, Inc. [AMD]",
    "102b": "Matrox Electronics Systems Ltd.",
    "10de": "NVIDIA Corporation",
    "11f8": "PMC-Sierra Inc.",
    "1344": "Micron Technology Inc",
    "1414": "Microsoft Corporation",
    "144d": "Samsung Electronics Co Ltd",
    "14e4": "Broadcom Inc. and subsidiaries",
    "1556": "PLDA",
    "15b3": "Mellanox Technologies",
    "17db": "Cray Inc",
    "1a03": "ASPEED Technology, Inc.",
    "1ae0": "Google, Inc.",
    "1b36": "Red Hat, Inc.",
    "1d0f": "Amazon.com, Inc.",
    "8086": "Intel Corporation",
}
CLASSES: Mapping[str, int] = {
    "port": 0x060400,
    "gpu": 0x030200,
    "nvswitch": 0x068000,
    "nic": 0x020000,
    "nvme": 0x010802,
    "sata": 0x010601,
    "display": 0x030000,
    "other": 0x088000,
}


class Model(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A device model. Speeds in GT/s, rates in Gb/s, sizes in bytes, clocks in MHz, power in watts."""

    kind: Kind
    id: Id  # vendor and device
    subsystem: Id | None = None
    pci_class: Annotated[int, msgspec.Meta(ge=0, lt=1 << 24)] | None = None
    name: Line = ""
    driver: Word = ""
    speed: float | None = None  # maximum speed of its link; None: no PCIe capability
    width: Lanes = 16
    functions: Annotated[int, msgspec.Meta(ge=1, le=8)] = 1
    second: Word = ""  # the model of its last function, if different
    switch: Word = ""  # the model of a switch on the card
    emulated: bool = False  # an emulated port of a hypervisor: its link files have no meaning
    handed_on: bool = False  # a virtual function in a guest, without its own link
    rate: Annotated[float, msgspec.Meta(ge=0, le=1e5)] = 0  # of a network port; 0: the driver does not report it
    netdev: Word = ""  # name of its network device, without the number
    rdma: Word = ""  # name of its RDMA device, without the number
    link_layer: Literal["InfiniBand", "Ethernet", "Unknown"] = "Ethernet"
    hca_type: Line = ""
    board_id: Line = ""
    firmware: Line = "1.0"
    product: Line = ""  # of a disk
    size: Size = 0  # of a disk
    # GPU attributes that the catalog of products does not have.
    clock: Amount | None = None  # maximum clock of its SMs
    default_clock: Amount | None = None  # if lower than `clock`
    memory_clock: Amount | None = None
    rests: Annotated[int, msgspec.Meta(ge=0, le=15)] = 0  # performance state when idle
    power: Amount | None = None  # default power limit
    bar1: Size | None = None
    ecc: bool = False
    mig: bool = False  # supports MIG instances
    vbios: Line = ""
    part: Line = ""  # board part number

    @property
    def infiniband(self) -> bool:
        """Whether its ports are InfiniBand."""
        return bool(self.rdma) and self.link_layer == "InfiniBand"


@cache
def models() -> Mapping[str, Model]:
    """Return the models of device_models.toml, by name."""
    with open(f"{os.path.dirname(__file__)}/device_models.toml", "rb") as file:
        return msgspec.convert(tomli.load(file), dict[str, Model])
