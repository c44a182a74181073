"""GPUs and RDMA devices that are bound to drivers, from the drivers' folders, without reading each device."""

from __future__ import annotations

from collections.abc import Iterator

from ..host.host import Host, Unreadable
from ..network.rdma import DEVICES as RDMA
from ..parsing.parsers import PCI_ADDRESS
from .links import DEVICES

NVIDIA, AMD = "nvidia", "amdgpu"
_DRIVERS = (NVIDIA, AMD, "habanalabs")


def gpus(host: Host, *drivers: str) -> list[str]:
    """Return the addresses of the GPUs that are bound to these drivers, or to any GPU driver."""
    names = [names_in(host, f"sys/bus/pci/drivers/{driver}") for driver in drivers or _DRIVERS]
    return [name for some in names for name in some if PCI_ADDRESS.fullmatch(name)]


def rdma(host: Host) -> list[str]:
    """Return the names of the RDMA devices, including software devices."""
    return names_in(host, RDMA)


def iommu_groups(host: Host) -> list[str]:
    """Return the distinct IOMMU groups of GPUs and RDMA devices; empty without an IOMMU."""
    paths = [f"{DEVICES}/{address}" for address in gpus(host)] + [f"{RDMA}/{name}/device" for name in rdma(host)]
    return list(dict.fromkeys(_groups(host, paths)))


def _groups(host: Host, paths: list[str]) -> Iterator[str]:
    for path in paths:
        try:
            group = host.resolve(f"{path}/iommu_group")
        except Unreadable:
            continue  # pci.py reports it
        if group:
            yield group.rpartition("/")[2]


def names_in(host: Host, folder: str) -> list[str]:
    """Return the names in a folder; empty if it is unreadable. The source that reads the devices reports that."""
    try:
        return host.list(folder)
    except Unreadable:
        return []
