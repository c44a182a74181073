"""Which GPUs and RDMA devices drivers have bound, from the drivers' folders: before anything is read of each."""

from __future__ import annotations

from collections.abc import Iterator

from ..host.host import Host, Unreadable
from ..network.rdma import DEVICES as RDMA
from ..parsing.parsers import PCI_ADDRESS
from .links import DEVICES

NVIDIA, AMD = "nvidia", "amdgpu"
_DRIVERS = (NVIDIA, AMD, "habanalabs")


def gpus(host: Host, *drivers: str) -> list[str]:
    """Addresses of the GPUs that these drivers (or any) have bound."""
    names = [names_in(host, f"sys/bus/pci/drivers/{driver}") for driver in drivers or _DRIVERS]
    return [name for some in names for name in some if PCI_ADDRESS.fullmatch(name)]


def rdma(host: Host) -> list[str]:
    """Names of the RDMA devices, those of software too."""
    return names_in(host, RDMA)


def iommu_groups(host: Host) -> list[str]:
    """The IOMMU groups of GPUs and RDMA devices, each once; none where there is no IOMMU."""
    places = [f"{DEVICES}/{address}" for address in gpus(host)] + [f"{RDMA}/{name}/device" for name in rdma(host)]
    return list(dict.fromkeys(_groups(host, places)))


def _groups(host: Host, places: list[str]) -> Iterator[str]:
    for place in places:
        try:
            group = host.resolve(f"{place}/iommu_group")
        except Unreadable:
            continue  # the reader of PCI functions has said so
        if group:
            yield group.rpartition("/")[2]


def names_in(host: Host, folder: str) -> list[str]:
    """The names in a folder; none where it would not say: who reads what is in it says so."""
    try:
        return host.list(folder)
    except Unreadable:
        return []
