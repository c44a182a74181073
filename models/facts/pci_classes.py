"""What a PCI function is, from its class code and vendor (PCI Code and ID Assignment Specification; pci.ids)."""

from __future__ import annotations

import re
from functools import lru_cache

from .machine import Pci

NVIDIA, AMD, INTEL, HABANA, MELLANOX, AMAZON = 0x10DE, 0x1002, 0x8086, 0x1DA3, 0x15B3, 0x1D0F
_GPU_MAKERS = (NVIDIA, AMD, INTEL, HABANA)  # other display controllers are management chips (ASPEED, Matrox)
# Device ids of ATI's display chips before the R600, the first with compute drivers: Rage, Radeon to X1950, and the
# management chip ES1000 (pci.ids). Servers have them for their console.
_ATI_DISPLAYS = (range(0x3150, 0x6000), range(0x7100, 0x7300))

NETWORK_DISK = "1d0f:8061"  # pci.ids: NVMe EBS Controller
_ACCELERATORS = (0x03, 0x0B, 0x12)  # base classes: display controllers, processors, processing accelerators


def kind_of(function: Pci) -> str:
    """bridge, gpu, nic, nvme, storage, nvswitch, display or pci; "pci" also if the class is unknown."""
    return _kind(function.pci_class, function.vendor, function.device)


@lru_cache(maxsize=1024)  # two dozen rules each call this for up to five hundred functions
def _kind(code: int | None, vendor: int | None, device: int | None) -> str:
    if code is None:
        return "pci"
    base, sub = code >> 16, code >> 8 & 0xFF
    if (base, sub) == (0x06, 0x04):
        return "bridge"
    if (base, sub) == (0x06, 0x80) and vendor == NVIDIA:
        return "nvswitch"
    if base == 0x03:
        old = vendor == AMD and any(device in chips for chips in _ATI_DISPLAYS)
        return "gpu" if vendor in _GPU_MAKERS and not old else "display"
    if base == 0x12 and vendor in _GPU_MAKERS:
        return "gpu"
    if base == 0x02 or (base, sub) == (0x0C, 0x06):  # the first InfiniBand adapters are serial bus controllers
        return "nic"
    if base == 0x01:
        return "nvme" if sub == 0x08 else "storage"
    return "pci"


_ARC = r"\bArc (?:Pro )?(?:A[3-7]|B[56])[0-9]{1,2}M?\b"


def is_arc(function: Pci) -> bool:
    """Whether it is a card of Intel with memory of its own, by its name in pci.ids: "DG2 [Arc A770]". GPUs within
    processors are on bus 0: "Arc Graphics", "Arc B390".
    """
    card = function.vendor == INTEL and kind_of(function) == "gpu" and not function.key.startswith("0000:00:")
    return card and bool(re.search(_ARC, function.name or ""))


def is_network_disk(function: Pci) -> bool:
    """Whether an NVMe controller shows a volume of the network: AWS EBS. A machine type counts only local disks."""
    return f"{function.vendor or 0:04x}:{function.device or 0:04x}" == NETWORK_DISK


def lowers_speed(function: Pci) -> bool:
    """Whether the device lowers the speed of its PCIe link at rest: GPUs, accelerators, co-processors, NVSwitches."""
    return kind_of(function) == "nvswitch" or (function.pci_class or 0) >> 16 in _ACCELERATORS


def function_number(address: str) -> str:
    """The function number of an address: "3" of "0000:17:00.3"."""
    return address.rpartition(".")[2]


def card_of(address: str) -> str:
    """The device part of an address: "0000:17:00" of "0000:17:00.3"."""
    return address.rpartition(".")[0]
