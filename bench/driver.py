"""The tests' stub of NVIDIA's driver with the addresses of the node hgx-h100, in a child of served.py."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nvml_stub
import pynvml

from linkgauge.probes import calls, nvml_asking

GPUS = (0x1B, 0x1E, 0x3B, 0x3E, 0x9B, 0x9E, 0xBB, 0xBE)
SWITCHES = (0xD9, 0xDA, 0xDB, 0xDC)


class Quick(nvml_stub.Driver):
    """It reads its file once, and notes down nothing: what is measured is what asks it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._known: dict[tuple[str, int | None], Any] = {}

    def said(self, key: str, gpu: int | None = None) -> Any:
        if (key, gpu) not in self._known:
            self._known[key, gpu] = super().said(key, gpu)
        return self._known[key, gpu]

    def _call(self, name: str, *given: Any) -> int:
        function: Callable[..., Any] = nvml_stub.FUNCTIONS.get(name, nvml_stub.answer)
        code: int = function(self, nvml_stub.number_of(name, given), name, *given)
        return code


def far_end(driver: nvml_stub.Driver, gpu: int, name: str, device: Any, link: int, info: Any) -> int:
    """The NVSwitch at the other end: 5, 4, 4 and 5 of 18 links lead to each."""
    switch = SWITCHES[min(link, 17) * 4 // 18]
    return nvml_stub.fill(info._obj, busId=f"00000000:{switch:02X}:00.0".encode())


if __name__ == "__main__":
    file = Path(os.environ["NVML_STUB"])
    nvml_stub.BUSES = GPUS
    nvml_stub.FUNCTIONS = {**nvml_stub.FUNCTIONS, "nvmlDeviceGetNvLinkRemotePciInfo_v2": far_end}
    nvml_asking.CONTROL = str(file)
    pynvml.nvmlLib = Quick(file)
    calls.main()
