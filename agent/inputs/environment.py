"""The environment of this process and of the programs that it starts: known variables, and those of the site file.

Other variables can change what a program loads and runs: LD_PRELOAD, PYTHONSTARTUP, NCCL_NET_PLUGIN, HOME with the file
.nccl.conf. PATH of the caller counts only if the caller is not root.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

# Folders that only root can write: those of the system, of NVIDIA in containers and in WSL, of Slurm, ROCm and NixOS.
_FOLDERS = (
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
    "/usr/local/nvidia/bin",
    "/usr/lib/wsl/lib",
    "/opt/slurm/bin",
    "/opt/rocm/bin",
    "/run/current-system/sw/bin",
)
_NAMES = frozenset(
    {
        *("LANG", "LANGUAGE", "TZ", "PATH", "USER", "LOGNAME"),
        *("TERM", "COLORTERM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"),
        *("NOTIFY_SOCKET", "LISTEN_PID", "LISTEN_FDS", "JOURNAL_STREAM", "WATCHDOG_USEC", "WATCHDOG_PID"),  # systemd
        *("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES"),
        *("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"),
        *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"),
    }
)
_STARTS = ("LC_", "LINKGAUGE_", "SLURM", "OTEL_", "OMPI_COMM_WORLD_")


def clean(variables: MutableMapping[str, str], privileged: bool) -> None:
    """Remove unknown variables. `privileged`: replace PATH by a fixed list of folders."""
    for name in [*variables]:
        if name not in _NAMES and not name.startswith(_STARTS):
            del variables[name]
    if privileged or not variables.get("PATH"):
        variables["PATH"] = ":".join(_FOLDERS)


def add(variables: MutableMapping[str, str], site: Mapping[str, str]) -> None:
    """Add the variables of the site file. Its folders in PATH come first."""
    for name, value in site.items():
        before = variables.get(name, "")
        if name == "PATH" and before and before != value and not before.startswith(f"{value}:"):
            variables[name] = f"{value}:{before}"
        elif name != "PATH" or not before:
            variables[name] = value
