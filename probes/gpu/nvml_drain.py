"""The call `nvml_drain`: which GPUs an operator drains (nvidia-smi drain -m 1). It runs in a child process.

nvml.h, nvmlDeviceModifyDrainState: "Any new NVML process will no longer see this GPU." The kernel keeps it bound.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress

from ...models.facts.machine import Pci
from ...models.facts.records import Evidence, Record
from .nvml_library import NvmlError
from .nvml_threads import open_driver, seconds


def drained(*addresses: str) -> Iterator[Record]:
    """Yield the drain state of the GPU at each PCI address; nothing if the driver does not know it."""
    opened = open_driver(time.monotonic() + seconds())
    if not isinstance(opened, tuple):
        return
    library, _ = opened
    for address in addresses:
        with suppress(NvmlError):
            state = library.drain_state(address)
            evidence = Evidence("nvmlDeviceQueryDrainState", f"{state}")
            yield Pci(key=address, drained=state == 1, cites={"drained": evidence})
