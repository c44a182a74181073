"""What somebody wrote down beforehand: the catalog's machine types, and the operator's own file."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
Positive: TypeAlias = Annotated[float, msgspec.Meta(gt=0)]
Grade: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^pcie[1-7]x(1|2|4|8|12|16|32)$")]


class Rate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What one kind of flow should reach, in bytes per second: below `low` something is wrong."""

    op: str = "copy"  # copy, copy-sm, read, write, triad, all_reduce ...
    ends: tuple[str, ...]  # shell patterns of names, in order: ["numa*", "gpu*"]
    via: str = ""  # "nvlink", "pcie", "host", "net"; "" is any
    low: Positive
    typical: Positive
    high: Positive
    source: str


class Machine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A machine type: how it is recognised and what it has. Counts are of whole healthy machines.

    It is recognised where all is true that its entry says of `product`, `vendor`, `asset_tag`, `instance`, `gpu` and
    `functions`.
    """

    name: str
    source: str

    product: str | None = None  # DMI product name, a shell pattern: "p5.48xlarge"
    vendor: str | None = None  # DMI vendor, a shell pattern
    asset_tag: str | None = None  # DMI chassis asset tag, a shell pattern: "OracleCloud.com"
    instance: str | None = (
        None  # the type that the cloud's agent wrote down, a shell pattern: "Standard_ND96isr_H100_v5"
    )
    gpu: str | None = None  # a shell pattern of the name of its GPUs
    functions: dict[str, Count] = {}  # vendor and device -> at least so many: {"1ae0:0042" = 6}

    gpus: Count | None = None
    links: Count | None = None  # active NVLinks or xGMI links of each GPU; 0: a slice of a machine, without
    rdma: Count | None = None  # RDMA devices
    rdma_rate: Positive | None = None  # bytes per second of a port of each
    nvme: Count | None = None  # NVMe controllers
    sockets: Count | None = None
    numa: Count | None = None  # NUMA nodes that have CPUs
    # Where the PCI tree is a hypervisor's: grades of the links that it hides ("pcie5x16").
    gpu_link: Grade | None = None  # a GPU's own
    gpu_path: Grade | None = None  # the narrowest between a GPU and its processor
    nic_link: Grade | None = None  # a NIC's own
    nvme_rate: Positive | None = None  # bytes per second that the provider lets a disk read

    # Modes of its GPUs; without one they are compared with each other.
    mig: bool | None = None
    ecc: bool | None = None
    persistence: bool | None = None
    compute_mode: str | None = None  # "default", "exclusive process", "prohibited"

    rates: tuple[Rate, ...] = ()  # what flows reach, where that is known better than from its links
    bus_bandwidth: dict[str, tuple[float, float, float]] = {}  # by collective: low, typical, high in bytes per second
    healthy: tuple[str, ...] = ()  # what looks wrong on it and is not, in words


class Site(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The operator's file: what he knows better than any catalog."""

    ignore: dict[str, str] = {}  # "code" or "code:subject" -> the reason, which the report repeats
    fabric: tuple[str, ...] = ()  # ports that must be up, as shell patterns: "mlx5_*", "eth2"
    trust_virtual_links: bool = False  # this virtual machine's PCI tree is passed through whole
    machine: tuple[Machine, ...] = ()  # machine types of the site, looked at before the catalog's
    rates: tuple[Rate, ...] = ()  # what flows reach on all of its machines


def read_site(text: str) -> Site:
    """The site of a TOML file. ValueError says which line or key is wrong."""
    try:
        return msgspec.toml.decode(text, type=Site)
    except msgspec.DecodeError as broken:
        raise ValueError(str(broken)) from None
