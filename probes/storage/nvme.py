"""NVMe controllers from sysfs (drivers/nvme/host/sysfs.c)."""

from __future__ import annotations

from collections.abc import Iterator

from ...models.facts.machine import Nvme
from ...models.facts.records import Record
from ..host.host import Host
from ..parsing.parsers import word
from ..sysfs.class_devices import devices, pci_function
from ..sysfs.fact_reader import FactReader

CONTROLLERS = "sys/class/nvme"


def read_nvme(host: Host) -> Iterator[Record]:
    """Yield an `Nvme` for each controller. A controller over fabrics has no PCI address."""
    for name, folder in (yield from devices(host, CONTROLLERS, "Nvme")):
        reading = FactReader(host, Nvme, name, folder)
        reading.take("model", "model", word)
        reading.take("firmware", "firmware_rev", word)
        reading.take("state", "state", word)
        reading.take("transport", "transport", word)
        # The file `address` is not used: over fabrics it is a server's address, and kernels before 4.12 lack it.
        reading.set(address=pci_function(folder))
        yield from reading.records()
