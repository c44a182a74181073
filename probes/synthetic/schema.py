"""The keys of a synthetic node's TOML description. Sizes in bytes, speeds in GT/s, rates in Gb/s."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Annotated, Any, TypeAlias

import msgspec

from .device_models import Lanes, Line, Model, Size, Word

Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]*$")]
Few = Annotated[int, msgspec.Meta(ge=1, le=64)]
Numa = Annotated[int, msgspec.Meta(ge=-1, le=1023)]
Domain = Annotated[int, msgspec.Meta(ge=0, le=0xFFFF)]
# Devices below the ports of a switch: models or further switches, as deep as in real machines; "" for an empty port.
Switch: TypeAlias = list[str | list[str | list[str]]]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Rate = Annotated[float, msgspec.Meta(ge=0, le=1e5)]


class Cpu(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The sockets, which are identical."""

    sockets: Few = 1
    cores: Annotated[int, msgspec.Meta(ge=1, le=512)] = 8  # of a socket
    threads: Annotated[int, msgspec.Meta(ge=1, le=8)] = 2  # of a core
    numa_nodes: Few = 1  # of a socket
    memory: Size = 64 << 30  # of a NUMA node
    near: Few = 12  # distance of NUMA nodes in one socket
    far: Annotated[int, msgspec.Meta(ge=10, le=255)] = 21  # distance of NUMA nodes in different sockets
    memory_only: list[Size] = []  # additional NUMA nodes without CPUs, the same number for each socket, in order
    vendor: Line = "GenuineIntel"  # for an Arm processor the implementer, with the part as model: "0x41", "0xd4f"
    model: Line = "Intel(R) Xeon(R) Platinum 8480C"


class Root(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A PCI root, or several identical ones: devices below root ports, below switches, and on the root's own bus.

    In a virtual machine passed-through devices may be on the root bus. In other machines devices there have no link.
    """

    bus: Annotated[list[Annotated[int, msgspec.Meta(ge=0, le=255)]], msgspec.Meta(min_length=1)]
    domain: Domain | Annotated[list[Domain], msgspec.Meta(min_length=1)] = 0
    numa: Numa = -1
    slot: Annotated[int, msgspec.Meta(ge=0, le=31)] = 1  # first device number on its bus
    integrated: list[str] = []  # models on its bus
    ports: list[str] = []  # models, each below a root port of its own; "" for an empty port
    switches: list[Switch] = []
    port: str = "root-gen5"
    switch: str = "pex89"


class Change(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Differences of one device from its model."""

    speed: float | None = None  # current trained speed of its link
    width: Lanes | None = None
    max_speed: float | None = None
    max_width: Lanes | None = None
    busy_speed: float | None = None  # trained speed of its link under load
    lost: bool = False  # does not respond
    gone: bool = False  # missing from the bus; other devices keep their names
    driver: Word | None = None  # "" for none
    numa: Numa | None = None
    slot: Name | None = None
    label: Line | None = None
    vfs: Annotated[int, msgspec.Meta(ge=0, le=120)] = 0  # virtual functions
    acs: list[Name] = []  # enabled access control bits of a port: "ReqRedir", "CmpltRedir" ...
    max_read_request: Annotated[int, msgspec.Meta(ge=0, le=4096)] = 0  # bytes; 0 for the default
    errors: dict[Name, Count] = {}  # AER counters: RxErr, MalfTLP ...
    up: bool = True  # the port's link is up
    enabled: bool = True  # the network device is administratively up
    rate: Rate | None = None  # current rate of a port
    partner: Rate | None = None  # maximum rate of the link partner
    counters: dict[Name, Count] = {}  # of a network device, an RDMA port, a GPU, its links ("nvlink7.nvlink_crc")
    state: Line | None = None  # of an NVMe controller
    size: Size | None = None  # of a disk
    partitions: list[Size] = []
    files: dict[str, str] = {}  # additional files, by path below its folder
    # Driver data of a GPU.
    gpu: dict[str, Any] = {}  # fields of the Gpu fact that differ from a healthy idle GPU
    peers: list[str] = []  # GPUs at the remote ends of its NVLinks, without a switch; one of two peers is enough
    inactive: list[Count] = []  # numbers of its inactive NVLinks
    failure: Line = ""  # why it cannot be used
    bar1: Size | None = None  # size of its memory window, if not the largest
    unlisted: bool = False  # bound to the driver, but hidden from this process


class Driver(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Data of the NVIDIA driver that does not concern a single GPU."""

    version: Line = "570.124.06"
    cuda: Line = "12.8"
    error: Line = ""  # why the driver is unusable for all processes
    missing: Line = ""  # why this process cannot use the driver
    p2p: Line = ""  # why GPUs have no peer access: "chipset not supported"
    every: dict[str, Any] = {}  # like `gpu` of a device, for all GPUs
    unsaid: list[str] = []  # fields of the Gpu fact that this driver does not support
    manager: Line = ""  # version of the fabric manager, if different


class Array(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """An md array over disks or partitions."""

    level: Line = "raid0"
    members: Annotated[list[Name], msgspec.Meta(min_length=1)]
    state: Line = "clean"
    missing: Count = 0
    faulty: list[Name] = []
    size: Size = 0


class Mount(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A mounted file system; `device` as in /proc/mounts."""

    at: Annotated[str, msgspec.Meta(pattern=r"^/[\x21-\x7e]*$")]
    device: Annotated[str, msgspec.Meta(pattern=r"^[\x21-\x7e]+$")]
    fstype: Name = "ext4"
    options: Annotated[str, msgspec.Meta(pattern=r"^[\x21-\x7e]+$")] = "rw,relatime"
    size: Size = 0
    free: Size = 0


class Measured(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A measured copy rate. If several rows match a copy, the last applies.

    Ends are names or patterns: "gpu3", "numa*". Without `to` the copy is within one device.
    """

    source: Line = "*"
    to: Line = ""
    beside: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 0  # minimum number of concurrent copies
    rate: Annotated[float, msgspec.Meta(gt=0, le=1e6)]  # GB/s


class LogRecord(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A line of the kernel log."""

    text: Line
    at: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 0.0  # seconds since boot
    priority: Annotated[int, msgspec.Meta(ge=0, le=7)] = 6


class Node(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A node. Keys of `device` are PCI addresses or names: gpu0, mlx5_0, eth0 ..."""

    origin: Line = ""  # source of this description: "synthetic, after ..."
    taken: datetime = datetime(2026, 11, 21, 3, tzinfo=timezone.utc)
    hostname: Line = "node1"
    kernel: Line = "6.8.0-45-generic"
    vendor: Line = ""
    product: Line = ""
    board: Line = ""
    bios: Line = ""
    asset_tag: Line = ""  # of the chassis
    instance: Word = ""  # machine type in cloud-init's data, in the format of EC2
    virtual: bool = False
    iommu: Line = ""  # type of the IOMMU groups: "DMA-FQ", "identity"; "" for none
    uptime: Annotated[int, msgspec.Meta(ge=0, le=10**9)] = 86_400  # seconds
    services: list[Name] = []  # running services: "nvidia-fabricmanager"
    cpu: Cpu = Cpu()
    root: list[Root] = []
    model: dict[Name, Model] = {}
    device: dict[str, Change] = {}
    gpu: Driver = Driver()
    array: dict[Name, Array] = {}
    mount: list[Mount] = []
    log: list[LogRecord] = []
    measured: list[Measured] = []  # empty: never measured
    files: dict[str, str] = {}  # additional files, by path from the root
