"""Drivers that lspci names. A text can be damaged, so a driver of a GPU that is not known is not read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

DRIVER = re.compile(r"[A-Za-z0-9][\w-]{1,40}")
# Drivers that bind to NVIDIA GPUs: NVIDIA's, the kernel's own, and those that keep a GPU for a guest or a program.
GPU_DRIVERS = (
    "nvidia",
    "nouveau",
    "nova_core",
    "NovaCore",
    "nvidiafb",
    "vfio-pci",
    "nvgrace-gpu-vfio-pci",
    "nvgrace_gpu_vfio_pci",
    "nvidia-vgpu-vfio",
    "pci-stub",
    "pciback",
    "xen-pciback",
    "uio_pci_generic",
    "igb_uio",
    "simple-framebuffer",
    "efifb",
    "vesafb",
)


def driver(found: re.Match[str]) -> Mapping[str, Any]:
    """The driver in the first group. Other words are of a damaged line."""
    return {"driver": found[1] if DRIVER.fullmatch(found[1]) else None}
