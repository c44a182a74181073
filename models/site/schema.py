"""Schemas of data written in advance: the catalog's machine types and the operator's site file."""

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
# Operations with a single flow, not with ranks.
Op: TypeAlias = Literal["copy", "copy-sm", "read", "write", "send", "triad", "stream-copy", "loopback", "tcp"]
Variable: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Via: TypeAlias = Literal["", "nvlink", "xgmi", "c2c", "pcie", "host", "net"]
Grade: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^pcie[1-7]x(1|2|4|8|12|16|32)$")]

OWN_LABELS = frozenset({"node", "profile"})  # existing labels of linkgauge_node_info
# Prometheus label names; it reserves names that begin with two underscores
_LABEL = re.compile("(?!__)[a-zA-Z_][a-zA-Z0-9_]*")
_LEAST = 1e6  # bytes per second; a lower value is probably in GB/s by mistake


class Rate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The rate that one kind of flow should reach, in bytes per second. Below `low` something is wrong."""

    op: Op = "copy"
    # Shell patterns of names, in order: ["numa*", "gpu*"]; one pattern for a memory.
    ends: Annotated[tuple[Text, ...], msgspec.Meta(min_length=1, max_length=2)]
    via: Via = ""  # "" matches any medium
    low: Positive
    typical: Positive
    high: Positive
    source: Text

    def __post_init__(self) -> None:
        _ascending(self.low, self.typical, self.high)


class Machine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A machine type: how it is recognised and what it has. Counts are those of a complete healthy machine.

    A machine matches if every property in the entry matches: `product`, `vendor`, `asset_tag`, `instance`, `gpu` and
    `functions`. The entry must have `product`, `instance`, `gpu` or `functions`. Containers and dumps lack the file of
    the cloud's agent. There, `instance` is ignored if the entry also has `gpu` or `functions`.
    """

    name: Text
    source: Text

    product: Text | None = None  # DMI product name, a shell pattern: "p5.48xlarge"
    vendor: Text | None = None  # DMI vendor, a shell pattern
    asset_tag: Text | None = None  # DMI chassis asset tag, a shell pattern: "OracleCloud.com"
    # Type from the cloud's agent, a shell pattern; case does not matter: "Standard_ND96asr_v4"
    instance: Text | None = None
    gpu: Text | None = None  # shell pattern of the GPU name
    functions: dict[Numbers, Few] = {}  # vendor and device -> minimum count: {"1ae0:0042" = 6}

    gpus: Count | None = None
    links: Count | None = None  # active NVLinks or xGMI links per GPU; 0: a slice of a machine, without links
    rdma: Count | None = None  # RDMA devices
    rdma_rate: Positive | None = None  # bytes per second of each port
    nvme: Count | None = None  # local NVMe disks for data
    sockets: Count | None = None
    numa: Count | None = None  # NUMA nodes that have CPUs
    # Grades of links that a hypervisor hides ("pcie5x16").
    gpu_link: Grade | None = None  # the GPU's own link
    gpu_path: Grade | None = None  # the narrowest link between a GPU and its processor
    nic_link: Grade | None = None  # the NIC's own link
    nvme_rate: Positive | None = None  # bytes per second; the provider's limit for reads of a disk

    # Positions of devices, if the firmware of all such machines numbers buses alike.
    gpu_places: dict[str, Address] = {}  # module id of a GPU -> PCI address: {"1" = "0000:1b:00.0"}
    nic_places: tuple[Address, ...] = ()  # PCI addresses of its RDMA devices

    # Modes of the GPUs. Without a value, the GPUs are compared with each other.
    mig: bool | None = None
    ecc: bool | None = None
    persistence: bool | None = None
    compute_mode: Literal["default", "exclusive process", "prohibited"] | None = None

    rates: tuple[Rate, ...] = ()  # rates of flows, if better known than from the links
    bus_bandwidth: dict[str, tuple[Positive, Positive, Positive]] = {}  # by collective: low, typical, high in bytes/s
    healthy: tuple[str, ...] = ()  # conditions that look wrong but are normal for this type, as text

    def __post_init__(self) -> None:
        if not (self.product or self.instance or self.gpu or self.functions):
            raise ValueError("says nothing to recognise it by: product, instance, gpu or functions")
        for collective, levels in self.bus_bandwidth.items():
            _ascending(*levels, where=f"bus_bandwidth: {collective}: ")

    @property
    def sure(self) -> bool:
        """Whether more than the GPU name identifies the type, so that its counts apply. Machines of many sizes share a
        GPU.
        """
        return bool(self.product or self.instance or self.functions or self.vendor or self.asset_tag)


class Network(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One transformer. models/catalog/networks.toml defines the fields."""

    name: Text
    layers: Few
    width: Few
    heads: Few
    kv_heads: Few
    head: Few
    feed_forward: Count
    gated: bool = True
    vocabulary: Few
    tied: bool = False
    attention: Few | None = None
    experts: Count = 0
    active: Count = 0
    expert_width: Count = 0
    shared: Count = 0
    dense_layers: Count = 0
    node_limit: Count = 0
    expert_biases: bool = False
    sequence: Few = 4096
    parameters: Positive | None = None  # the published number; the sizes decide
    source: str = ""

    def __post_init__(self) -> None:
        if self.experts and not (0 < self.active <= self.experts and self.expert_width):
            raise ValueError(f"{self.name}: {self.experts} experts need active, at most as many, and expert_width")


class Storage(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A network file system of the jobs, in bytes per second: of one node, and of all together if less."""

    mount: Text
    read: Positive
    write: Positive
    read_total: Positive | None = None
    write_total: Positive | None = None
    iops: Positive | None = None  # random reads per second
    iops_total: Positive | None = None
    source: Text

    def __post_init__(self) -> None:
        for name in ("read", "write", "read_total", "write_total"):
            if (getattr(self, name) or _LEAST) < _LEAST:
                raise ValueError(f"{self.mount}: {name}: rates are bytes per second: 4.2e9 is 4.2 GB/s")


class Site(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The operator's site file. It takes precedence over the catalog."""

    ignore: dict[str, str] = {}  # "code" or "code:subject" -> reason, shown in reports
    fabric: tuple[str, ...] = ()  # ports that must be up, as shell patterns: "mlx5_*", "eth2"
    trust_virtual_links: bool = False  # this virtual machine sees the complete real PCI tree
    machine: tuple[Machine, ...] = ()  # machine types of the site, tried before the catalog's
    rates: tuple[Rate, ...] = ()  # rates of flows on all its machines
    labels: dict[str, str] = {}  # of linkgauge_node_info: rack, rail, cluster
    places: tuple[str, ...] = ()  # files that say where a node is: topology.yaml, lldpctl -f json ...
    cables: dict[str, str] = {}  # port or network device -> other end: "leaf3 port 17"
    job: str | None = None  # job on these nodes: "llama3-70b,tp=8,dp=64,tokens=4M,ckpt=2.3TB"
    network: tuple[Network, ...] = ()  # models of the site, beside those of the catalog
    storage: tuple[Storage, ...] = ()  # network file systems, for checkpoints in `linkgauge plan`
    gate: Gate = Gate()  # when to keep jobs away from a node
    # Variables of programs that linkgauge starts: {"LD_LIBRARY_PATH" = "/opt/nccl/lib"}. Folders in PATH come first.
    environment: dict[Variable, str] = {}

    def __post_init__(self) -> None:
        for name in self.labels:
            if not _LABEL.fullmatch(name):
                raise ValueError(
                    f"labels: {name!r}: names are letters, digits and underscores, and begin with no digit"
                )
            if name in OWN_LABELS:
                raise ValueError(f"labels: {name}: linkgauge_node_info has a label of this name already")


def read_site(text: str) -> Site:
    """The site from a TOML text. ValueError names the line, or the table and key, of the error."""
    return read_tables(text, Site)


def _ascending(low: float, typical: float, high: float, where: str = "") -> None:
    """Check the order of the three rates, and that they are not in GB/s."""
    if not low <= typical <= high:
        raise ValueError(f"{where}low {low:g}, typical {typical:g} and high {high:g} do not ascend")
    if low < _LEAST:
        raise ValueError(f"{where}low {low:g}: rates are bytes per second: 52e9 is 52 GB/s")
