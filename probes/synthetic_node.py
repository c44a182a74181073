"""The description of a synthetic node: the keys of its TOML file. Sizes in bytes, speeds in GT/s, rates in Gb/s."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Annotated

import msgspec

from .synthetic_models import Lanes, Line, Model, Size, Word

Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]*$")]
Few = Annotated[int, msgspec.Meta(ge=1, le=64)]
Numa = Annotated[int, msgspec.Meta(ge=-1, le=1023)]
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
    vendor: Line = "GenuineIntel"
    model: Line = "Intel(R) Xeon(R) Platinum 8480C"


class Root(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A PCI root, or several alike: what hangs on its bus, on root ports, and on switches below root ports."""

    bus: Annotated[list[Annotated[int, msgspec.Meta(ge=0, le=255)]], msgspec.Meta(min_length=1)]
    domain: Annotated[int, msgspec.Meta(ge=0, le=0xFFFF)] = 0
    numa: Numa = -1
    integrated: list[str] = []  # models, without a link
    ports: list[str] = []  # models, each below a root port of its own
    switches: list[list[str]] = []  # models below each switch
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
    driver: Word | None = None  # "" for none
    numa: Numa | None = None
    slot: Name | None = None
    label: Line | None = None
    vfs: Annotated[int, msgspec.Meta(ge=0, le=120)] = 0  # virtual functions
    errors: dict[Name, Count] = {}  # of AER: RxErr, MalfTLP ...
    up: bool = True  # a port has its link
    enabled: bool = True  # somebody wants the network device up
    rate: Rate | None = None  # that a port runs at
    partner: Rate | None = None  # that the other end is able to
    counters: dict[Name, Count] = {}  # of a network device or an RDMA port
    state: Line | None = None  # of an NVMe controller
    size: Size | None = None  # of a disk
    partitions: list[Size] = []
    files: dict[str, str] = {}  # below its folder


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


class Record(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A line of the kernel log."""

    text: Line
    at: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 0.0  # seconds since boot
    priority: Annotated[int, msgspec.Meta(ge=0, le=7)] = 6


class Node(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """All of a node. Devices in `device` are called by their PCI addresses or by their names: gpu0, mlx5_0, eth0 ..."""

    taken: datetime = datetime(2026, 11, 21, 3, tzinfo=timezone.utc)
    hostname: Line = "node1"
    kernel: Line = "6.8.0-45-generic"
    vendor: Line = ""
    product: Line = ""
    board: Line = ""
    bios: Line = ""
    virtual: bool = False
    iommu: Line = ""  # type of the IOMMU groups: "DMA-FQ", "identity"; "" for none
    uptime: Annotated[int, msgspec.Meta(ge=0, le=10**9)] = 86_400  # seconds
    cpu: Cpu = Cpu()
    root: list[Root] = []
    model: dict[Name, Model] = {}
    device: dict[str, Change] = {}
    array: dict[Name, Array] = {}
    mount: list[Mount] = []
    log: list[Record] = []
    files: dict[str, str] = {}  # anything else, by its path from the root
