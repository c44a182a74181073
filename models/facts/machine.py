"""Record types for all parts of a machine except GPUs (gpu.py). Every field but the key may be None: not known.

Rates in bytes per second, sizes in bytes. The comment behind a field names its source in Linux. Other sources (dumps)
fill the same fields.
"""

from __future__ import annotations

from collections.abc import Mapping

from .records import Fact


class Node(Fact, frozen=True, kw_only=True):
    """The machine as a whole; its key is always "node"."""

    hostname: str | None = None  # proc/sys/kernel/hostname
    kernel: str | None = None  # proc/sys/kernel/osrelease
    vendor: str | None = None  # sys/class/dmi/id/sys_vendor
    product: str | None = None  # sys/class/dmi/id/product_name
    board: str | None = None  # sys/class/dmi/id/board_name
    bios: str | None = None  # sys/class/dmi/id/bios_version
    asset_tag: str | None = None  # sys/class/dmi/id/chassis_asset_tag: some clouds use one tag for all machines
    instance: str | None = None  # run/cloud-init/instance-data.json: the cloud's name of the machine type
    booted: float | None = None  # proc/stat btime, seconds since 1970
    boot_id: str | None = None  # proc/sys/kernel/random/boot_id: a random number that the kernel draws at each boot
    virtual: bool | None = None  # runs under a hypervisor
    hypervisor: str | None = None  # name of the hypervisor: "KVM", "Amazon Nitro", "Microsoft Hyper-V" ...
    present_cpus: int | None = None  # sys/devices/system/cpu/present: also those that are offline
    offline_cpus: int | None = None  # lscpu "Off-line CPU(s) list"; on a live machine Package.cpus lacks them
    smt: str | None = None  # sys/devices/system/cpu/smt/control: "on", "off", "forceoff", "notsupported"
    container: str | None = None  # container runtime of this process: "docker", "podman", "kubernetes"; "": none


class Package(Fact, frozen=True, kw_only=True):
    """A CPU package (socket): "package0"."""

    model: str | None = None  # proc/cpuinfo "model name"
    vendor: str | None = None  # proc/cpuinfo "vendor_id"
    cpus: tuple[int, ...] | None = None  # sys/devices/system/cpu/cpu*/topology/physical_package_id
    cores: int | None = None


class Numa(Fact, frozen=True, kw_only=True):
    """A NUMA node: "numa0". A node without CPUs is memory only (CXL, a Grace GPU's memory)."""

    cpus: tuple[int, ...] | None = None  # sys/devices/system/node/node*/cpulist
    memory: int | None = None  # .../meminfo MemTotal
    distances: Mapping[str, int] | None = None  # .../distance, by NUMA node; 10 is local


class HostBridge(Fact, frozen=True, kw_only=True):
    """A PCI root: "pci0000:17"."""

    parent: str | None = None  # the function above the root (VMD), else None
    numa: int | None = None


class Pci(Fact, frozen=True, kw_only=True):
    """A PCI function: "0000:53:00.0". Speeds in transfers per second and lane, widths in lanes."""

    pci_class: int | None = None  # class, 24 bits: 0x030200
    vendor: int | None = None
    device: int | None = None
    subvendor: int | None = None
    subdevice: int | None = None
    name: str | None = None  # pci.ids
    parent: str | None = None  # the bridge or host bridge above
    speed: float | None = None  # current_link_speed
    width: int | None = None  # current_link_width
    max_speed: float | None = None  # max_link_speed
    max_width: int | None = None  # max_link_width
    numa: int | None = None  # numa_node; -1 (not known) is None
    driver: str | None = None
    iommu_group: int | None = None
    physfn: str | None = None  # the physical function that a virtual one belongs to
    slot: str | None = None  # sys/bus/pci/slots
    label: str | None = None  # the firmware's label of the device
    lost: bool | None = None  # does not answer: speed "Unknown" at width 63 or 255
    drained: bool | None = None  # an operator drains this GPU, so its driver hides it (nvidia-smi drain)
    bar1: int | None = None  # size of BAR 1 (resource) in bytes: on a GPU, the memory window for peers
    bar1_max: int | None = None  # the largest possible size of BAR 1 (resource1_resize)
    # From the configuration space (probes/pcie/config_space.py), which only root may read.
    max_payload: int | None = None  # bytes
    max_read_request: int | None = None  # bytes
    relaxed_ordering: bool | None = None
    downgraded: tuple[str, ...] | None = None  # "speed", "width": lspci marks them as below this end's maximum
    uncorrected: tuple[str, ...] | None = None  # uncorrectable errors whose status bits lspci shows: "CmpltTO", "DLP"
    corrected: tuple[str, ...] | None = None  # corrected errors of its link whose status bits lspci shows: "BadTLP"
    acs: tuple[str, ...] | None = None  # Access Control Services that are switched on: "ReqRedir", "CmpltRedir" ...


class Net(Fact, frozen=True, kw_only=True):
    """A network device: "eth0"."""

    address: str | None = None  # of its PCI function; None: virtual
    driver: str | None = None
    speed: float | None = None  # speed
    max_speed: float | None = None  # the fastest mode that the port supports (ethtool)
    partner_speed: float | None = None  # the fastest that the other end advertises (ethtool)
    duplex: str | None = None
    mtu: int | None = None
    carrier: bool | None = None
    enabled: bool | None = None  # flags & IFF_UP: the administrator enabled it
    link_type: str | None = None  # "ethernet", "infiniband", "loopback" ... from ARPHRD numbers
    port: int | None = None  # dev_port
    port_name: str | None = None  # phys_port_name: "p0"; "pf0vf1" is the host side of a virtual function


class Rdma(Fact, frozen=True, kw_only=True):
    """An RDMA device (HCA): "mlx5_0"."""

    address: str | None = None  # of its PCI function; None: a software device (rxe, siw)
    driver: str | None = None
    board_id: str | None = None  # PSID
    hca_type: str | None = None
    firmware: str | None = None
    place: int | None = None  # index among the devices of its card, from 0; identifies a device without a known address
    gpu_direct: bool | None = None  # whether NCCL uses GPUDirect RDMA with it (its log, NCCL_DEBUG=INFO)


class Port(Fact, frozen=True, kw_only=True):
    """A port of an RDMA device: "mlx5_0/1"."""

    device: str | None = None  # key of the Rdma fact
    state: str | None = None  # "ACTIVE", "DOWN", "INIT", "ARMED"
    physical_state: str | None = None  # "LinkUp", "Polling", "Disabled"
    rate: float | None = None
    wanted_rate: float | None = None  # that somebody wrote it should have
    lanes: str | None = None  # "4X NDR"
    link_layer: str | None = None  # "InfiniBand", "Ethernet"; EFA: "Unspecified"
    lid: int | None = None
    mtu: int | None = None  # of an RDMA packet, bytes; ibv_devinfo: active_mtu
    netdev: str | None = None  # key of the Net fact of the same port


class Gid(Fact, frozen=True, kw_only=True):
    """An entry of a port's address table, by its index: "mlx5_0/1/gid3". The address itself is not stored."""

    port: str | None = None  # key of the Port fact; None: the text does not name the port
    index: int | None = None
    version: str | None = None  # "RoCE v1", "RoCE v2", "IB"
    scope: str | None = None  # "link-local", "IPv4", "global"


class Nvme(Fact, frozen=True, kw_only=True):
    """An NVMe controller: "nvme0"."""

    address: str | None = None  # of its PCI function; None: over fabrics
    model: str | None = None
    firmware: str | None = None
    state: str | None = None  # "live", "dead", "resetting" ...
    transport: str | None = None  # "pcie", "tcp", "rdma", "fc", "loop"
    # From log page 02h, which only root may read (probes/storage/nvme_health.py).
    critical_warning: int | None = None  # bits
    spare: int | None = None  # percent of the spare blocks that are left
    spare_threshold: int | None = None  # percent
    used: int | None = None  # percent of the rated endurance; may exceed 100
    media_errors: int | None = None  # in the life of the drive


class Disk(Fact, frozen=True, kw_only=True):
    """A block device or a partition of one: "nvme0n1", "sda", "sda1"."""

    size: int | None = None
    model: str | None = None
    rotational: bool | None = None
    address: str | None = None  # PCI function of its controller; None: virtual
    controller: str | None = None  # key of the Nvme fact
    partition_of: str | None = None


class Array(Fact, frozen=True, kw_only=True):
    """A Linux software RAID: "md0"."""

    level: str | None = None  # "raid0"
    state: str | None = None  # array_state: "clean", "active", "inactive" ...
    members: tuple[str, ...] | None = None  # keys of Disk facts
    wanted: int | None = None  # raid_disks
    missing: int | None = None  # degraded; None: the level has no redundancy
    faulty: tuple[str, ...] | None = None  # members that the kernel marked as failed, or that were removed


class Mount(Fact, frozen=True, kw_only=True):
    """A mounted file system; its key is the mount point."""

    device: str | None = None
    fstype: str | None = None
    size: int | None = None
    free: int | None = None  # for unprivileged users
    read_only: bool | None = None  # mounted read-only
    stopped: bool | None = None  # mounted writable, and the kernel made the file system itself read-only


class Event(Fact, frozen=True, kw_only=True):
    """A message that the kernel logged once or more. The key consists of kind, device and details of the message.

    probes/kernel_log/forms.py lists the kinds and their log lines. Messages of programs have the kind "message".
    """

    kind: str | None = None  # "xid", "sxid", "aer", "pcie limited", "surprise down", "link down", "test failed" ...
    code: int | None = None  # 79; for a recovery action the requested action, 0: none
    subject: str | None = None  # a PCI address, or the kernel's own name: "nvme3", "mc0", "cpu12", "nvidia"
    text: str | None = None  # the latest of the lines
    at: float | None = None  # latest time: seconds since 1970, else the log's own clock
    fatal: bool | None = None  # as the log line states
    link: int | None = None  # number of the NVLink or of the NIC's port
    count: int | None = None  # number of lines since boot
    first: float | None = None  # the first time, as `at`
    recent: int | None = None  # number of lines in the hour before `at`
    bursts: int | None = None  # number of bursts of lines in the day before `at`; a silence of three minutes ends one
    until: float | None = None  # end of the log, as `at`; None: the log reaches to now
    name: str | None = None  # the driver's name of the device: "eth0"; for "message" the row of models/catalog/messages
    place: int | None = None  # for "message": number of the latest line in its file; None: a live log
    # For "pcie limited": the port with the slow link; bytes per second that the link allows and that the device could
    # use.
    port: str | None = None
    rate: float | None = None
    able: float | None = None


class Setting(Fact, frozen=True, kw_only=True):
    """A setting of the machine; its key is the name of its row in models/catalog/settings.toml."""

    value: str | None = None


class Serial(Fact, frozen=True, kw_only=True):
    """A serial number: "node", "gpu3", "nvme0". It is read only for tickets and for the inventory of the node."""

    number: str | None = None
    guid: str | None = None  # of an RDMA device: sys/class/infiniband/*/node_guid


OWN_SERVICE = "linkgauge"  # the service of this program


class Service(Fact, frozen=True, kw_only=True):
    """A program that should run as a service: "nvidia-fabricmanager"."""

    running: bool | None = None
    version: str | None = None
    state: str | None = None  # of its domain (nvidia-imex-ctl): "UP", "READY", "DEGRADED; node 2 UNAVAILABLE"


class Nccl(Fact, frozen=True, kw_only=True):
    """The collective library of a job, from its log (NCCL_DEBUG=INFO); its key is always "nccl"."""

    version: str | None = None  # "2.21.5"
    cuda: str | None = None  # CUDA version of its build: "12.4"
    network: str | None = None  # its transport between nodes: "IB", "Socket", "AWS Libfabric" ...
    ranks: int | None = None
    nodes: int | None = None  # of the job


class Transport(Fact, frozen=True, kw_only=True):
    """How the collective library moves bytes between two GPUs of the node: "gpu0-gpu1", the lower number first."""

    via: tuple[str, ...] | None = None  # "P2P/CUMEM", "P2P/IPC", "SHM/direct/direct", "NET/Socket/0" ...


class NcclFailure(Fact, frozen=True, kw_only=True):
    """A failed operation of the collective library. The key is its kind: "shared memory", "memory registration"."""

    error: str | None = None  # "No space left on device"
    size: int | None = None  # requested bytes
    text: str | None = None  # the first of the lines
    count: int | None = None
