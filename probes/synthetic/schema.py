"""The description of a synthetic node: the keys of its TOML file. Sizes in bytes, speeds in GT/s, rates in Gb/s."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Annotated, Any, TypeAlias

import msgspec

from .models import Lanes, Line, Model, Size, Word

Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]*$")]
Few = Annotated[int, msgspec.Meta(ge=1, le=64)]
Numa = Annotated[int, msgspec.Meta(ge=-1, le=1023)]
Domain = Annotated[int, msgspec.Meta(ge=0, le=0xFFFF)]
# What hangs on the ports of a switch: models, or switches again, as deep as machines are built; "" for an empty port.
Switch: TypeAlias = list[str | list[str | list[str]]]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Rate = Annotated[float, msgspec.Meta(ge=0, le=1e5)]


class Cpu(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The sockets, which are all alike."""

    sockets: Few = 1
    cores: Annotated[int, msgspec.Meta(ge=1, le=512)] = 8  # of a socket
    threads: Annotated[int, msgspec.Meta(ge=1, le=8)] = 2  # of a core
    numa_nodes: Few = 1  # of a socket
    memory: Size = 64 << 30  # of a NUMA node
    near: Few = 12  # distance of NUMA nodes in one socket
    far: Annotated[int, msgspec.Meta(ge=10, le=255)] = 21  # distance of NUMA nodes in two
    memory_only: list[Size] = []  # further NUMA nodes, without CPUs; equally many of each socket, in their order
    vendor: Line = "GenuineIntel"  # of an Arm processor, its implementer and its part: "0x41", "0xd4f"
    model: Line = "Intel(R) Xeon(R) Platinum 8480C"


class Root(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A PCI root, or several alike: what hangs on root ports, on switches below root ports, and on its own bus.

    A virtual machine may have on the bus itself what its hypervisor handed on; in others, such devices have no link.
    """

    bus: Annotated[list[Annotated[int, msgspec.Meta(ge=0, le=255)]], msgspec.Meta(min_length=1)]
    domain: Domain | Annotated[list[Domain], msgspec.Meta(min_length=1)] = 0
    numa: Numa = -1
    slot: Annotated[int, msgspec.Meta(ge=0, le=31)] = 1  # device number of the first on its bus
    integrated: list[str] = []  # models on its bus
    ports: list[str] = []  # models, each below a root port of its own; "" for an empty port
    switches: list[Switch] = []
    port: str = "root-gen5"
    switch: str = "pex89"


class Change(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """How one device differs from its model."""

    speed: float | None = None  # at which its link is trained now
    width: Lanes | None = None
    max_speed: float | None = None
    max_width: Lanes | None = None
    busy_speed: float | None = None  # at which its link was seen while bytes moved
    lost: bool = False  # answers no more
    gone: bool = False  # is not on the bus; the others keep their names
    driver: Word | None = None  # "" for none
    numa: Numa | None = None
    slot: Name | None = None
    label: Line | None = None
    vfs: Annotated[int, msgspec.Meta(ge=0, le=120)] = 0  # virtual functions
    acs: list[Name] = []  # what access control has on at a port: "ReqRedir", "CmpltRedir" ...
    max_read_request: Annotated[int, msgspec.Meta(ge=0, le=4096)] = 0  # bytes; 0: as usual
    errors: dict[Name, Count] = {}  # of AER: RxErr, MalfTLP ...
    up: bool = True  # a port has its link
    enabled: bool = True  # somebody wants the network device up
    rate: Rate | None = None  # that a port runs at
    partner: Rate | None = None  # that the other end is able to
    counters: dict[Name, Count] = {}  # of a network device, an RDMA port, a GPU, its links ("nvlink7.nvlink_crc")
    state: Line | None = None  # of an NVMe controller
    size: Size | None = None  # of a disk
    partitions: list[Size] = []
    files: dict[str, str] = {}  # below its folder
    # Of a GPU, what its driver says.
    gpu: dict[str, Any] = {}  # fields of the Gpu fact that differ from those of a healthy one at rest
    peers: list[str] = []  # GPUs at the other ends of its NVLinks, where there is no switch; either of two may say so
    inactive: list[Count] = []  # numbers of its NVLinks that are down
    failure: Line = ""  # why it cannot be used
    bar1: Size | None = None  # of its window into the memory, where it is not the largest
    unlisted: bool = False  # bound to the driver, which does not show it to this process


class Driver(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What the NVIDIA driver says that is not about one GPU alone."""

    version: Line = "570.124.06"
    cuda: Line = "12.8"
    error: Line = ""  # why nobody can use it
    missing: Line = ""  # why we cannot ask it, though others may
    p2p: Line = ""  # why GPUs may not reach each other: "chipset not supported"
    every: dict[str, Any] = {}  # as `gpu` of a device, for all of them
    unsaid: list[str] = []  # fields of the Gpu fact that this driver does not support
    manager: Line = ""  # the version of the fabric manager, where it is another one


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
    """What copies reached when they were measured; of several rows about one copy the last holds.

    Ends are names or patterns: "gpu3", "numa*". Without `to` it is the memory of one device.
    """

    source: Line = "*"
    to: Line = ""
    beside: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 0  # of copies with at least so many others at that moment
    rate: Annotated[float, msgspec.Meta(gt=0, le=1e6)]  # GB/s


class LogRecord(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A line of the kernel log."""

    text: Line
    at: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 0.0  # seconds since boot
    priority: Annotated[int, msgspec.Meta(ge=0, le=7)] = 6


class Node(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """All of a node. Devices in `device` are called by their PCI addresses or by their names: gpu0, mlx5_0, eth0 ..."""

    origin: Line = ""  # where this is known from: "synthetic, after ..."
    taken: datetime = datetime(2026, 11, 21, 3, tzinfo=timezone.utc)
    hostname: Line = "node1"
    kernel: Line = "6.8.0-45-generic"
    vendor: Line = ""
    product: Line = ""
    board: Line = ""
    bios: Line = ""
    asset_tag: Line = ""  # of the chassis
    instance: Word = ""  # what cloud-init wrote down as the machine type, in the words of EC2
    virtual: bool = False
    iommu: Line = ""  # type of the IOMMU groups: "DMA-FQ", "identity"; "" for none
    uptime: Annotated[int, msgspec.Meta(ge=0, le=10**9)] = 86_400  # seconds
    services: list[Name] = []  # that run: "nvidia-fabricmanager"
    cpu: Cpu = Cpu()
    root: list[Root] = []
    model: dict[Name, Model] = {}
    device: dict[str, Change] = {}
    gpu: Driver = Driver()
    array: dict[Name, Array] = {}
    mount: list[Mount] = []
    log: list[LogRecord] = []
    measured: list[Measured] = []  # none: it was never measured
    files: dict[str, str] = {}  # anything else, by its path from the root
