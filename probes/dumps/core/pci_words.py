"""PCI functions in the words of tools: class names to numbers, and texts to vendor, device and name.

Names are those of pci.ids (https://pci-ids.ucw.cz). Tools print vendor and product without a separator.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from ....models.catalog.gpus import products

# Classes of devices in machines with GPUs. The value is class and subclass (pci.ids, "List of known device classes").
CLASSES: Mapping[str, int] = {
    "Non-VGA unclassified device": 0x0000,
    "SCSI storage controller": 0x0100,
    "IDE interface": 0x0101,
    "RAID bus controller": 0x0104,
    "SATA controller": 0x0106,
    "Serial Attached SCSI controller": 0x0107,
    "Non-Volatile memory controller": 0x0108,
    "Mass storage controller": 0x0180,
    "Ethernet controller": 0x0200,
    "Infiniband controller": 0x0207,
    "InfiniBand controller": 0x0207,
    "Fabric controller": 0x0208,
    "Network controller": 0x0280,
    "VGA compatible controller": 0x0300,
    "3D controller": 0x0302,
    "Display controller": 0x0380,
    "RAM memory": 0x0500,
    "Memory controller": 0x0580,
    "Host bridge": 0x0600,
    "ISA bridge": 0x0601,
    "PCI bridge": 0x0604,
    "Bridge": 0x0680,
    "Communication controller": 0x0780,
    "IOMMU": 0x0806,
    "System peripheral": 0x0880,
    "Co-processor": 0x0B40,
    "USB controller": 0x0C03,
    "SMBus": 0x0C05,
    "Serial bus controller": 0x0C80,
    "Encryption controller": 0x1080,
    "Performance counters": 0x1101,
    "Signal processing controller": 0x1180,
    "Processing accelerators": 0x1200,
}
# The beginning of a vendor's text, the vendor's number, and its short name.
_VENDORS = (
    ("NVIDIA Corporation", 0x10DE, "NVIDIA"),
    ("nVidia Corporation", 0x10DE, "NVIDIA"),
    ("Mellanox Technologies", 0x15B3, "Mellanox"),
    ("Intel Corporation", 0x8086, "Intel"),
    ("Advanced Micro Devices, Inc. [AMD/ATI]", 0x1002, "AMD"),
    ("Advanced Micro Devices, Inc. [AMD]", 0x1022, "AMD"),
    ("Habana Labs Ltd.", 0x1DA3, "Habana Labs"),
    ("Amazon.com, Inc.", 0x1D0F, "Amazon"),
    ("Red Hat, Inc.", 0x1AF4, "Red Hat"),
    ("Microsoft Corporation", 0x1414, "Microsoft"),
    ("PLX Technology, Inc.", 0x10B5, "PLX"),
    ("ASPEED Technology, Inc.", 0x1A03, "ASPEED"),
    ("Samsung Electronics Co Ltd", 0x144D, "Samsung"),
    ("Broadcom Inc. and subsidiaries", 0x14E4, "Broadcom"),
    ("Broadcom / LSI", 0x1000, "Broadcom / LSI"),
    ("Matrox Electronics Systems Ltd.", 0x102B, "Matrox"),
    ("VMware", 0x15AD, "VMware"),
)
_UNNAMED = re.compile(r"Device ([0-9a-f]{4})\b")
_PRODUCT = re.compile(r"\[([^\[\]]+)\]$")


def class_of(text: str) -> int | None:
    """The 24-bit class of "3D controller" or "Class 0302", with programming interface 0. None if unknown."""
    code = CLASSES.get(text)
    if code is None and (found := re.fullmatch(r"Class \[?([0-9a-f]{4})\]?", text)):
        code = int(found[1], 16)
    return None if code is None else code << 8


def vendor_text(number: int | None) -> str:
    """The text of a vendor with this number. "" if unknown."""
    return next((begins for begins, vendor, _ in _VENDORS if vendor == number), "")


def identity(text: str) -> tuple[int | None, int | None, str | None]:
    """Vendor, device and name from "NVIDIA Corporation GA100 [A100 SXM4 80GB]". None for each unknown value.

    If the catalog has the name of the product, the device number comes from the catalog.
    """
    begins, vendor, maker = next((row for row in _VENDORS if text.startswith(row[0])), ("", None, ""))
    rest = text[len(begins) :].strip()
    if vendor is None:
        return None, None, None
    if found := _UNNAMED.match(rest):
        return vendor, int(found[1], 16), None
    if rest in ("", "Device"):
        return vendor, None, None
    product = _PRODUCT.search(rest)
    name = product[1] if product else rest
    return vendor, _devices().get((vendor, name.casefold())), f"{maker} {name}"


@cache
def _devices() -> Mapping[tuple[int, str], int]:
    """The device numbers of GPU products with a single number, by vendor and name."""
    known: dict[tuple[int, str], int] = {}
    for product in products():
        if len(product.ids) == 1:
            vendor, device = (int(number, 16) for number in product.ids[0].split(":"))
            for name in (product.name, *product.called):
                plain = name.casefold().removeprefix("nvidia ").removeprefix("amd ").removeprefix("geforce ")
                known[vendor, plain] = known[vendor, f"geforce {plain}"] = device
    return known
