"""The tests' stub of NVIDIA's driver with the PCI addresses of the node hgx-h100, in a child process of served.py."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml

from linkgauge.probes.calls import entrypoint as calls
from linkgauge.probes.gpu import nvml, nvml_threads
from tests.support.gpu import nvml_stub

GPUS = (0x1B, 0x1E, 0x3B, 0x3E, 0x9B, 0x9E, 0xBB, 0xBE)
SWITCHES = (0xD9, 0xDA, 0xDB, 0xDC)


class Quick(nvml_stub.Driver):
    """A stub that reads its file once and writes no log, so that only its caller is measured."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._known: dict[tuple[str, int | None], Any] = {}
        self.took = 0.0  # processor time in seconds

    def setting(self, key: str, gpu: int | None = None) -> Any:
        if (key, gpu) not in self._known:
            self._known[key, gpu] = super().setting(key, gpu)
        return self._known[key, gpu]

    def _call(self, name: str, *arguments: Any) -> int:
        function: Callable[..., Any] = nvml_stub.FUNCTIONS.get(name, nvml_stub.answer)
        began = time.thread_time()
        code: int = function(self, nvml_stub.number_of(name, arguments), name, *arguments)
        self.took += time.thread_time() - began
        return code


def far_end(driver: nvml_stub.Driver, gpu: int, name: str, device: Any, link: int, info: Any) -> int:
    """The NVSwitch at the other end of a link: the four switches have 5, 4, 4 and 5 of the 18 links."""
    switch = SWITCHES[min(link, 17) * 4 // 18]
    return nvml_stub.fill(info._obj, busId=f"00000000:{switch:02X}:00.0".encode())


def install(file: Path) -> Quick:
    """Install the stub as the driver of this process."""
    nvml_stub.REST = {**nvml_stub.REST, "buses": GPUS}
    nvml_stub.FUNCTIONS = {**nvml_stub.FUNCTIONS, "nvmlDeviceGetNvLinkRemotePciInfo_v2": far_end}
    nvml_threads.CONTROL = str(file)
    driver = pynvml.nvmlLib = Quick(file)
    return driver


def share(file: Path, looks: int = 20) -> float:
    """The share of the stub in the processor time of one read of the driver."""
    driver = install(file)
    list(nvml.state())
    driver.took, began = 0.0, time.process_time()
    for _ in range(looks):
        list(nvml.state())
    return driver.took / (time.process_time() - began)


if __name__ == "__main__":
    if sys.argv[1] == "--share":
        print(share(Path(sys.argv[2])))
    else:
        install(Path(os.environ["NVML_STUB"]))
        calls.main()
