"""Serial numbers, for support tickets and for the inventory of a node. They identify a machine and its owner.

No report and no capture contains them.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..models.facts.machine import Serial
from ..models.facts.records import Record
from .gpu.nvml_threads import seconds
from .host.host import Host, Unreadable
from .network.rdma import DEVICES
from .pcie.bound_devices import NVIDIA, gpus
from .storage.nvme import CONTROLLERS

_MACHINE = "sys/class/dmi/id/product_serial"  # only root can read it


def read_serials(host: Host) -> Iterator[Record]:
    """Yield a `Serial` of the machine, each NVMe controller, NIC and NVIDIA GPU, as far as this user can read them."""
    if text := _text(host, _MACHINE):
        yield Serial(key="node", number=text)
    yield from read_identities(host)
    if gpus(host, NVIDIA):
        yield from host.call("nvml_serials", deadline=2 * seconds())


def read_identities(host: Host) -> Iterator[Record]:
    """Yield a `Serial` of each NVMe controller and RDMA device from sysfs. GPUs have a UUID (models/facts/gpu.py)."""
    for name in _names(host, CONTROLLERS):
        if text := _text(host, f"{CONTROLLERS}/{name}/serial"):
            yield Serial(key=name, number=text)
    for name in _names(host, DEVICES):
        if text := _text(host, f"{DEVICES}/{name}/node_guid"):
            yield Serial(key=name, guid=text)


def _text(host: Host, path: str) -> str | None:
    """The text of the file. None: it is absent, empty or not readable; a ticket states that the number is missing."""
    try:
        return (host.read(path) or "").strip() or None
    except Unreadable:
        return None


def _names(host: Host, folder: str) -> list[str]:
    try:
        return host.list(folder)
    except Unreadable:
        return []
