"""Record types for GPUs and the links between them. Rates in bytes per second, sizes in bytes, clocks in hertz.

The comment behind a field names its source in NVML (nvidia-ml-py's names). Other sources fill the same fields.
"""

from __future__ import annotations

from .reason import Reason
from .records import Fact


class Driver(Fact, frozen=True, kw_only=True):
    """A GPU driver as a whole: "nvidia"."""

    version: str | None = None  # of the kernel module: sys/module/nvidia/version
    library: str | None = None  # of the user-space library: nvmlSystemGetDriverVersion
    nvml: str | None = None  # nvmlSystemGetNVMLVersion
    cuda: str | None = None  # nvmlSystemGetCudaDriverVersion: "13.0"
    gpus: int | None = None  # nvmlDeviceGetCount: how many this process may see
    bound: tuple[str, ...] | None = None  # PCI functions that it has now: sys/bus/pci/drivers/nvidia
    failure: str | None = None  # why the driver is unusable: "Driver/library version mismatch", "no answer within 5 s"
    failure_reason: Reason | None = None  # the same as one word, if NVML was read


class Gpu(Fact, frozen=True, kw_only=True):
    """A GPU as its driver numbers it: "gpu0"."""

    name: str | None = None  # nvmlDeviceGetName
    uuid: str | None = None
    address: str | None = None  # of its PCI function
    board_part: str | None = None  # nvmlDeviceGetBoardPartNumber
    module_id: int | None = None  # nvmlDeviceGetModuleId: its position on the baseboard
    vbios: str | None = None
    failure: str | None = None  # why it cannot be used: "GPU is lost", "no answer within 5 s"
    failure_reason: Reason | None = None  # the same as one word, if NVML was read
    recovery: str | None = None  # the requested action: "none", "GPU reset", "node reboot", "drain P2P" ...
    virtualization: str | None = None  # "none", "passthrough", "vGPU", "host vGPU", "host vSGA"

    # The GPU's link to the host, in transfers per second and lanes. The speed is lower when the GPU is idle.
    pcie_speed: float | None = None  # CurrPcieLinkGeneration
    pcie_width: int | None = None  # CurrPcieLinkWidth
    pcie_max_speed: float | None = None  # MaxPcieLinkGeneration: of the GPU in this machine
    pcie_max_width: int | None = None  # MaxPcieLinkWidth: of the GPU in this machine
    pcie_wanted_width: int | None = None  # that somebody wrote it should have
    pcie_wanted_speed: float | None = None  # that somebody wrote it should have
    pcie_own_max_speed: float | None = None  # GpuMaxPcieLinkGeneration: of the GPU alone

    performance_state: int | None = None  # 0 is the fastest
    utilization: float | None = None  # share of the time in which a program ran
    clock: float | None = None  # of the SMs
    clock_max: float | None = None
    memory_clock: float | None = None
    memory_clock_max: float | None = None
    application_clock: float | None = None  # as set by a user
    application_clock_default: float | None = None
    clock_reasons: tuple[str, ...] | None = None  # why the clock is reduced, as in probes/parsing/nvml_enums.py
    power: float | None = None  # watts
    power_limit: float | None = None  # watts, in force
    power_limit_default: float | None = None  # watts
    temperature: float | None = None  # degrees Celsius
    temperature_margin: float | None = None  # degrees below the temperature at which its hardware lowers the clocks

    memory: int | None = None
    memory_used: int | None = None
    bar1: int | None = None  # size of the memory window for peers
    ecc: bool | None = None
    ecc_pending: bool | None = None  # the mode that the next reset sets
    ecc_corrected: int | None = None  # since the driver was loaded
    ecc_uncorrected: int | None = None
    ecc_corrected_lifetime: int | None = None
    ecc_uncorrected_lifetime: int | None = None
    sram_threshold: bool | None = None  # nvmlDeviceGetSramEccErrorStatus bThresholdExceeded: replace the GPU
    sram_uncorrected: int | None = None  # its volatileUncParity + volatileUncSecDed: part of ecc_uncorrected
    remapped_correctable: int | None = None  # rows that spare rows have replaced
    remapped_uncorrectable: int | None = None
    remap_pending: bool | None = None  # a row is replaced at the next reset
    remap_failed: bool | None = None
    pending_repairs: tuple[str, ...] | None = None  # at the next reset: "memory channel", "TPC"
    unrepairable: bool | None = None  # memory that no repair can replace
    full_banks: int | None = None  # memory banks without spare rows; read if rows were remapped

    nvlinks: int | None = None  # active links; 0: no NVLink, or all are down
    nvlinks_present: int | None = None  # that the driver lists, active or not
    nvlink_rate: float | None = None  # of one link, in one direction
    c2c_links: int | None = None  # NVLink-C2C to a Grace processor, active
    c2c_rate: float | None = None  # of one link, in one direction
    fabric_state: str | None = None  # "not supported", "not started", "in progress", "completed"
    fabric_status: str | None = None  # "Success", or the error
    fabric_faults: tuple[str, ...] | None = None  # bad fields of the health mask; (): none
    fabric_clique: int | None = None
    fabric_cluster: str | None = None  # UUID of the NVLink domain; None if all digits are zero

    mig: bool | None = None
    mig_instances: int | None = None
    persistence: bool | None = None
    compute_mode: str | None = None  # "default", "exclusive process", "prohibited"
    processes: int | None = None  # number of processes that use the GPU
    cpus: tuple[int, ...] | None = None  # CPUs of the nearest NUMA node
    numa: int | None = None  # nearest NUMA node


class GpuLink(Fact, frozen=True, kw_only=True):
    """One link of a GPU to another GPU, a switch or a processor: "gpu0/nvlink7", "gpu0/c2c1", "gpu0/xgmi3"."""

    gpu: str | None = None
    kind: str | None = None  # "nvlink", "c2c", "xgmi"
    active: bool | None = None
    version: int | None = None  # NVLink's generation
    speed: float | None = None  # signalling rate as the driver reports it, in one direction; payload is less
    remote: str | None = None  # PCI address of the other end; None if the driver hides it
    remote_kind: str | None = None  # "gpu", "switch", "cpu"


NO_ACCESS = "no access"  # what ROCm says of two GPUs whose memories cannot be reached (rocm_bandwidth_test)


class GpuPair(Fact, frozen=True, kw_only=True):
    """Two GPUs: "gpu0-gpu1", the lower number first."""

    a: str | None = None
    b: str | None = None
    # Whether peer access works: "ok", "chipset not supported", "GPU not supported", "topology not supported", "disabled
    # by registry", "not supported", "unknown" (nvmlDeviceGetP2PStatus), NO_ACCESS.
    read: str | None = None
    write: str | None = None
    nvlink: str | None = None
    atomics: str | None = None
    nvlinks: int | None = (
        None  # active NVLinks between the two, or to their switches, as nvidia-smi topo -m counts them
    )
    kind: str | None = None  # "xgmi", "pcie": of the connection, also over several hops
    path: str | None = None  # nearest common ancestor in NVML's words: "INTERNAL", "PIX", "PXB", "PHB", "NODE", "SYS"
