"""What somebody wrote down beforehand: the catalog's machine types, and the operator's own file."""

from __future__ import annotations

import re
from typing import Annotated, Literal, TypeAlias

import msgspec

from .gate import Gate
from .toml_tables import read_tables

Text: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
Few: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
Positive: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=1e18)]
Numbers: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{4}:[0-9a-f]{4}$")]
Address: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")]
# Of one flow, not of ranks.
Op: TypeAlias = Literal["copy", "copy-sm", "read", "write", "send", "triad", "stream-copy", "loopback", "tcp"]
Via: TypeAlias = Literal["", "nvlink", "xgmi", "c2c", "pcie", "host", "net"]
Grade: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^pcie[1-7]x(1|2|4|8|12|16|32)$")]

OWN_LABELS = frozenset({"node", "profile"})  # of linkgauge_node_info
_LABEL = re.compile("(?!__)[a-zA-Z_][a-zA-Z0-9_]*")  # as Prometheus takes them; two underscores in front are its own
_LEAST = 1e6  # bytes per second: nothing that is judged is so slow, and what people write in GB/s is below


class Rate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What one kind of flow should reach, in bytes per second: below `low` something is wrong."""

    op: Op = "copy"
    # Shell patterns of names, in order: ["numa*", "gpu*"]; one for a memory.
    ends: Annotated[tuple[Text, ...], msgspec.Meta(min_length=1, max_length=2)]
    via: Via = ""  # "" is any
    low: Positive
    typical: Positive
    high: Positive
    source: Text

    def __post_init__(self) -> None:
        _ascending(self.low, self.typical, self.high)


class Machine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A machine type: how it is recognised and what it has. Counts are of whole healthy machines.

    It is recognised where all is true that its entry says of `product`, `vendor`, `asset_tag`, `instance`, `gpu` and
    `functions`; one of `product`, `instance`, `gpu` and `functions` must be said. What the cloud's agent wrote down
    is not there in containers and dumps: an `instance` is passed over then, if the entry has a `gpu` or `functions`
    besides.
    """

    name: Text
    source: Text

    product: Text | None = None  # DMI product name, a shell pattern: "p5.48xlarge"
    vendor: Text | None = None  # DMI vendor, a shell pattern
    asset_tag: Text | None = None  # DMI chassis asset tag, a shell pattern: "OracleCloud.com"
    # The type that the cloud's agent wrote down, a shell pattern in small or large letters: "Standard_ND96asr_v4"
    instance: Text | None = None
    gpu: Text | None = None  # a shell pattern of the name of its GPUs
    functions: dict[Numbers, Few] = {}  # vendor and device -> at least so many: {"1ae0:0042" = 6}

    gpus: Count | None = None
    links: Count | None = None  # active NVLinks or xGMI links of each GPU; 0: a slice of a machine, without
    rdma: Count | None = None  # RDMA devices
    rdma_rate: Positive | None = None  # bytes per second of a port of each
    nvme: Count | None = None  # local NVMe disks for data
    sockets: Count | None = None
    numa: Count | None = None  # NUMA nodes that have CPUs
    # Where the PCI tree is a hypervisor's: grades of the links that it hides ("pcie5x16").
    gpu_link: Grade | None = None  # a GPU's own
    gpu_path: Grade | None = None  # the narrowest between a GPU and its processor
    nic_link: Grade | None = None  # a NIC's own
    nvme_rate: Positive | None = None  # bytes per second that the provider lets a disk read

    # Where its devices are, if firmware numbers the buses of all such machines alike.
    gpu_places: dict[str, Address] = {}  # a GPU's module id -> its PCI address: {"1" = "0000:1b:00.0"}
    nic_places: tuple[Address, ...] = ()  # PCI addresses of its RDMA devices

    # Modes of its GPUs; without one they are compared with each other.
    mig: bool | None = None
    ecc: bool | None = None
    persistence: bool | None = None
    compute_mode: Literal["default", "exclusive process", "prohibited"] | None = None

    rates: tuple[Rate, ...] = ()  # what flows reach, where that is known better than from its links
    bus_bandwidth: dict[str, tuple[Positive, Positive, Positive]] = {}  # by collective: low, typical, high in bytes/s
    healthy: tuple[str, ...] = ()  # what looks wrong on it and is not, in words

    def __post_init__(self) -> None:
        if not (self.product or self.instance or self.gpu or self.functions):
            raise ValueError("says nothing to recognise it by: product, instance, gpu or functions")
        for collective, levels in self.bus_bandwidth.items():
            _ascending(*levels, where=f"bus_bandwidth: {collective}: ")

    @property
    def sure(self) -> bool:
        """Recognised by more than its GPUs, which come in machines of many sizes: its counts hold."""
        return bool(self.product or self.instance or self.functions or self.vendor or self.asset_tag)


class Site(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The operator's file: what he knows better than any catalog."""

    ignore: dict[str, str] = {}  # "code" or "code:subject" -> the reason, which the report repeats
    fabric: tuple[str, ...] = ()  # ports that must be up, as shell patterns: "mlx5_*", "eth2"
    trust_virtual_links: bool = False  # this virtual machine's PCI tree is passed through whole
    machine: tuple[Machine, ...] = ()  # machine types of the site, looked at before the catalog's
    rates: tuple[Rate, ...] = ()  # what flows reach on all of its machines
    labels: dict[str, str] = {}  # of linkgauge_node_info: rack, rail, cluster
    job: str | None = None  # that runs on them: "llama3-70b,tp=8,dp=64,tokens=4M,ckpt=2.3TB"
    gate: Gate = Gate()  # when jobs are kept away from a node

    def __post_init__(self) -> None:
        for name in self.labels:
            if not _LABEL.fullmatch(name):
                raise ValueError(
                    f"labels: {name!r}: names are letters, digits and underscores, and begin with no digit"
                )
            if name in OWN_LABELS:
                raise ValueError(f"labels: {name}: linkgauge_node_info has a label of this name already")


def read_site(text: str) -> Site:
    """The site of a TOML file. ValueError says which line, or which table and key, is wrong."""
    return read_tables(text, Site)


def _ascending(low: float, typical: float, high: float, where: str = "") -> None:
    """And are no GB/s."""
    if not low <= typical <= high:
        raise ValueError(f"{where}low {low:g}, typical {typical:g} and high {high:g} do not ascend")
    if low < _LEAST:
        raise ValueError(f"{where}low {low:g}: rates are bytes per second: 52e9 is 52 GB/s")
