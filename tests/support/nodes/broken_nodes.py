"""Broken GPU nodes: a healthy node of tests/nodes, a change, and the expected finding."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Broken:
    """`further` is TOML appended to the base.

    Finding: code and subject. Gaps: `what` and subject of NotChecked records.
    """

    base: str
    further: str
    finding: tuple[str, str] | None = None
    gaps: tuple[tuple[str, str], ...] = ()


ALL_LINKS = ", ".join(map(str, range(18)))

BROKEN = {
    "17 of 18 NVLinks": Broken("hgx-h100", "[device.gpu3]\ninactive = [7]", ("nvlink-inactive", "0000:3e:00.0")),
    "no NVLink of one GPU": Broken(
        "hgx-b200", f"[device.gpu4]\ninactive = [{ALL_LINKS}]", ("nvlink-inactive", "0000:9c:00.0")
    ),
    "x8": Broken("hgx-h100", "[device.gpu3]\nwidth = 8", ("pcie-link-narrow", "0000:3e:00.0")),
    "x8 in a guest": Broken("vm-p5", "[device.gpu5]\ngpu = {pcie_width = 8}", ("pcie-link-narrow", "0000:9b:00.0")),
    "gone": Broken("hgx-h100", "[device.gpu3]\ngone = true", ("gpu-missing", "node")),
    "lost": Broken(
        "hgx-h100",
        '[device.gpu3]\nfailure = "GPU is lost"',
        ("gpu-missing", "0000:3e:00.0"),
        (("GpuLink.remote", "gpu3"), ("GpuPair", "gpu3")),
    ),
    "driver failed": Broken(
        "hgx-h100",
        '[gpu]\nerror = "Driver/library version mismatch"',
        ("gpu-driver-failed", "node"),
        (("GpuPair", "node"),),
    ),
    "no library of ours": Broken(
        "hgx-h100", '[gpu]\nmissing = "nvidia-ml-py is not installed"', None, (("Gpu", "node"), ("GpuPair", "node"))
    ),
    "no fabric manager": Broken(
        "hgx-h100",
        """
[gpu.every]
fabric_state = "in progress"
[files]
"sys/fs/cgroup/system.slice/nvidia-fabricmanager.service/cgroup.procs" = ""
""",
        ("fabric-manager-down", "nvidia-fabricmanager"),
    ),
    "fabric manager not started": Broken(
        "hgx-h100",
        """
[gpu.every]
fabric_state = "not started"
[files]
"sys/fs/cgroup/system.slice/nvidia-fabricmanager.service/cgroup.procs" = ""
""",
        ("fabric-manager-down", "nvidia-fabricmanager"),
    ),
    "a row waits for a reset": Broken(
        "hgx-h100",
        "[device.gpu5]\ngpu = {remap_pending = true, remapped_uncorrectable = 1, recovery = 'GPU reset'}",
        ("gpu-row-remap", "0000:9e:00.0"),
    ),
    "too hot": Broken(
        "hgx-h100",
        """
[device.gpu5]
counters = {clocks_hw_thermal = 3000}
[device.gpu5.gpu]
clock_reasons = ["hardware slowdown", "hardware thermal slowdown"]
clock = 600e6
temperature = 92
power = 310
""",
        ("gpu-throttled", "0000:9e:00.0"),
    ),
    "at its power limit": Broken(  # normal under load
        "hgx-h100",
        """
[device.gpu5]
counters = {clocks_sw_power = 40000}
[device.gpu5.gpu]
clock_reasons = ["software power cap"]
clock = 1605e6
temperature = 63
power = 699
processes = 1
memory_used = 70_000_000_000
""",
    ),
}

GPU5 = "0000:9e:00.0"
DOUBLE_BIT = "NVRM: Xid (PCI:0000:9e:00): 48, pid=1, DBE (double bit error) ECC Error"
ASKED = "gpu = {recovery = 'GPU reset'}"
DOWNSTREAM = "0000:1a:00.0"  # the switch's port above a GPU that shares the switch with a NIC


def gpu5(text: str) -> str:
    return f"[device.gpu5]\n{text}"


def kernel(*lines: str) -> str:
    return "".join(f"[[log]]\nat = {100 + number}\ntext = '{line}'\n" for number, line in enumerate(lines))


def setting(path: str, text: str) -> str:
    return f"[files]\n'{path}' = '{text}'"


# Changes of one or two lines to an HGX H100: text, code, subject, severity.
HGX = {
    "a row could not be replaced": (gpu5("gpu = {remap_failed = true}"), "gpu-row-remap", GPU5, "critical"),
    "uncorrected errors": (gpu5("gpu = {ecc_uncorrected = 2}"), "gpu-ecc", GPU5, "critical"),
    "errors of SRAM": (gpu5("gpu = {sram_threshold = true}"), "gpu-ecc", GPU5, "critical"),
    "a storm of corrected errors": (gpu5("counters = {ecc_corrected = 9600000000}"), "gpu-ecc", GPU5, "critical"),
    "power brake": (
        gpu5("gpu = {clock_reasons = ['hardware slowdown', 'hardware power brake']}"),
        "gpu-throttled",
        GPU5,
        "warning",
    ),
    "warm for hours": (gpu5("counters = {clocks_sw_thermal = 20000}"), "gpu-throttled", GPU5, "warning"),
    "power limit lowered": (gpu5("gpu = {power_limit = 500}"), "gpu-clocks-limited", GPU5, "warning"),
    "clocks lowered": (gpu5("gpu = {application_clock = 1200e6}"), "gpu-clocks-limited", GPU5, "warning"),
    "MIG on one": (gpu5("gpu = {mig = true}"), "gpu-mode", GPU5, "warning"),
    "ECC off on one": (gpu5("gpu = {ecc = false, ecc_pending = false}"), "gpu-mode", GPU5, "warning"),
    "closed to programs": (gpu5("gpu = {compute_mode = 'prohibited'}"), "gpu-mode", GPU5, "critical"),
    "the driver wants a reset": (gpu5("gpu = {recovery = 'GPU reset'}"), "gpu-xid", GPU5, "critical"),
    "it hangs": (gpu5("failure = 'no answer within 5 s'"), "gpu-driver-failed", GPU5, "critical"),
    "replays": (gpu5("counters = {pcie_replay = 900000}"), "pcie-errors", GPU5, "warning"),
    "memory nobody holds": (gpu5("gpu = {memory_used = 40_000_000_000}"), "gpu-in-use", GPU5, "warning"),
    "not listed": (gpu5("unlisted = true"), "gpu-driver-failed", GPU5, "critical"),
    "links that are trained again": (
        gpu5("counters = {'nvlink7.nvlink_recovery' = 900}"),
        "nvlink-errors",
        GPU5,
        "warning",
    ),
    "left out of its fabric": (
        gpu5("gpu = {fabric_status = 'Insufficient Resources'}"),
        "nvlink-fabric-incomplete",
        GPU5,
        "critical",
    ),
    "its fabric is not healthy": (
        gpu5("gpu = {fabric_faults = ['degraded bandwidth']}"),
        "nvlink-fabric-incomplete",
        GPU5,
        "critical",
    ),
    "another fabric manager": ("[gpu]\nmanager = '550.54.15'", "driver-mismatch", "nvidia-fabricmanager", "warning"),
    "an NVSwitch that is gone": ("[device.nvswitch2]\ngone = true", "nvswitch-error", "node", "critical"),
    "a double-bit error": (f"{gpu5(ASKED)}\n{kernel(DOUBLE_BIT)}", "gpu-xid", GPU5, "critical"),
    "one that left nothing behind": (kernel(DOUBLE_BIT), "gpu-xid", GPU5, "info"),
    "one that a driver since has cleared": (
        kernel(
            DOUBLE_BIT,
            "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build",
        ),
        "gpu-xid",
        GPU5,
        "info",
    ),
    "a fatal SXid": (
        kernel("nvidia-nvswitch0: SXid (PCI:0000:d9:00.0): 20034, Fatal, Link 30 LTSSM Fault Up"),
        "nvswitch-error",
        "0000:d9:00.0",
        "critical",
    ),
    "a port that comes and goes": (
        kernel(*["mlx5_core 0000:1c:00.0 mlx5_2: Port: 1 Link DOWN"] * 3),
        "nic-port-flapping",
        "mlx5_2/1",
        "warning",
    ),
    "a NIC that does not answer": (
        kernel("mlx5_core 0000:1c:00.0: print_health_info:424:(pid 0): Health issue observed, firmware internal error"),
        "nic-errors",
        "0000:1c:00.0",
        "warning",
    ),
    "a module that is too hot": (
        kernel("mlx5_core 0000:1c:00.0: Port module event[error]: module 0, Cable error, High Temperature"),
        "nic-optics",
        "0000:1c:00.0",
        "warning",
    ),
    "IOMMU": (
        "[files]\n" + "\n".join(f"'sys/kernel/iommu_groups/{group}/type' = 'DMA-FQ'" for group in range(69)),
        "iommu-translation",
        "node",
        "warning",
    ),
    "no way past the processor": (
        setting("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Sun"),
        "gdr-disabled",
        "node",
        "critical",
    ),
    "access control": (f"[device.'{DOWNSTREAM}']\nacs = ['ReqRedir']", "pcie-acs-redirect", "0000:19:00.0", "warning"),
    "small requests": (gpu5("max_read_request = 128"), "pcie-path-bottleneck", GPU5, "info"),
    "a hot processor": (
        setting("sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_total_time_ms", "9000000"),
        "cpu-throttled",
        "package0",
        "warning",
    ),
    "memory that failed": (
        setting("sys/devices/system/edac/mc/mc0/ue_count", "1"),
        "host-memory-errors",
        "mc0",
        "critical",
    ),
    "memory that corrects": (
        setting("sys/devices/system/edac/mc/mc0/ce_count", "1000"),
        "host-memory-errors",
        "mc0",
        "warning",
    ),
    "a scratch that is full": (
        "[[mount]]\nat = '/scratch'\ndevice = '/dev/md0'\nfstype = 'xfs'\nsize = 28_000_000_000_000\n"
        "free = 1_000_000_000",
        "storage-full",
        "/scratch",
        "warning",
    ),
    "a sparing preference": (
        setting("sys/devices/system/cpu/cpu0/cpufreq/energy_performance_preference", "power"),
        "cpu-governor",
        "node",
        "info",
    ),
}
