"""Serial numbers, read only for a support ticket. They identify a machine and its owner, so no report contains them."""

from __future__ import annotations

from collections.abc import Iterator

from ..models.facts.machine import Serial
from ..models.facts.records import Record
from .gpu.nvml_threads import seconds
from .host.host import Host, Unreadable
from .pcie.bound_devices import NVIDIA, gpus
from .storage.nvme import CONTROLLERS

_MACHINE = "sys/class/dmi/id/product_serial"  # only root can read it


def read_serials(host: Host) -> Iterator[Record]:
    """Yield a `Serial` of the machine, each NVMe controller and each NVIDIA GPU, as far as this user can read them."""
    files = {"node": _MACHINE, **{name: f"{CONTROLLERS}/{name}/serial" for name in _controllers(host)}}
    for name, path in files.items():
        try:
            text = (host.read(path) or "").strip()
        except Unreadable:
            continue  # the ticket states that it is missing
        if text:
            yield Serial(key=name, number=text)
    if gpus(host, NVIDIA):
        yield from host.call("nvml_serials", deadline=2 * seconds())


def _controllers(host: Host) -> list[str]:
    try:
        return host.list(CONTROLLERS)
    except Unreadable:
        return []
