"""File reads and driver calls of a cycle of the service: python -m bench.cost.gpu_reads [--cycles 25]

Nodes with eight H100 and eight B200. Files are recorded, and the tests' stub answers for NVIDIA's driver. "values" are
numbered fields of nvmlDeviceGetFieldValues; each is a call to the firmware of the GPU.

    python -m bench.cost.gpu_reads --latency

prints how long each numbered field took in the driver of this machine, in microseconds, as the driver reports it.
"""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

import pynvml

from linkgauge.agent.service.config import Config
from linkgauge.agent.service.daemon import Daemon
from linkgauge.agent.web.pages import Pages
from linkgauge.models.facts.records import Record
from linkgauge.models.report import Origin
from linkgauge.models.site.schema import Site
from linkgauge.probes.gpu import nvml, nvml_link_memory, nvml_threads, nvml_topology
from linkgauge.probes.gpu.gpus import BOUND
from linkgauge.probes.host.recorded import Recorded
from linkgauge.probes.synthetic.build import build
from tests.support.gpu import nvml_stub

NODES = Path(__file__).parents[2] / "tests/nodes"
_HOPPER = "[answers]\n"
_BLACKWELL = f"""
speed = 53125
version = 8
{_HOPPER}
nvmlDeviceGetName = "NVIDIA B200"
[fields]
"161" = "error 3"
"162" = "error 3"
"163" = "error 3"
"138" = 1
"139" = 1
"235" = 1
""" + "\n".join(f'"{number}" = 0' for number in (214, 215, 219, 220, 221, 293, *range(236, 251)))
DRIVERS = {"hgx-h100": _HOPPER, "hgx-b200": _BLACKWELL}


class Counting(nvml_stub.Driver):
    """A driver that counts the calls of each GPU, and the values that they ask for."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.calls: Counter[str] = Counter()
        self.values: Counter[int] = Counter()

    def _call(self, name: str, *arguments: Any) -> int:
        self.calls[name] += 1
        if name == "nvmlDeviceGetFieldValues":
            self.values[nvml_stub.number_of(name, arguments) or 0] += len(arguments[2]._obj)
        return super()._call(name, *arguments)


@dataclass
class Machine:
    """A recorded machine that counts reads. The driver answers in this process."""

    recorded: Recorded
    reads: int = 0
    ahead: float = 0.0
    origin: Origin = "live"
    began: float = field(default_factory=time.time)

    def read(self, path: str) -> str | None:
        self.reads += 1
        return self.recorded.read(path)

    def list(self, path: str) -> list[str]:
        return self.recorded.list(path)

    def resolve(self, path: str) -> str | None:
        return self.recorded.resolve(path)

    def call(self, what: str, *args: str, deadline: float) -> Iterator[Record]:
        readers = {"nvml": nvml.state, "nvml_wiring": nvml_topology.wiring}
        yield from readers[what]() if what in readers else self.recorded.call(what, *args, deadline=deadline)

    def now(self) -> float:
        return self.began + self.ahead


def cycles(node: str, count: int) -> list[Mapping[str, float]]:
    """The reads, calls and values of each cycle."""
    found: list[Mapping[str, float]] = []
    machine = Machine(build((NODES / f"{node}.toml").read_text()))
    version = f'nvmlSystemGetDriverVersion = "{(machine.read("sys/module/nvidia/version") or "").strip()}"\n'
    buses = tuple(int(one[5:7], 16) for one in machine.list(BOUND) if one.startswith("0000:"))
    nvml_stub.REST = {**nvml_stub.REST, "buses": buses}
    with tempfile.TemporaryDirectory() as folder:
        text = DRIVERS[node].replace("[answers]\n", f"[answers]\n{version}")
        driver = _installed(Path(folder) / "driver.toml", text)
        daemon = Daemon(machine, Config(), Site(), Pages(), folder, monotonic=lambda: time.monotonic() + machine.ahead)
        for _ in range(count):
            machine.reads, driver.calls, driver.values = 0, Counter(), Counter()
            daemon.cycle()
            machine.ahead += daemon.every
            most = max(driver.values.values())
            found.append({"reads": machine.reads, "calls": driver.calls.total(), "values of a GPU": most})
    return found


def _installed(file: Path, text: str) -> Counting:
    file.write_text(text)
    nvml_threads.CONTROL = str(file)
    pynvml._nvmlGetFunctionPointer_cache.clear()
    nvml_link_memory.memories.clear()
    driver = pynvml.nvmlLib = Counting(file)
    return driver


def table(node: str, found: Sequence[Mapping[str, float]]) -> str:
    """The first cycle, the mean and the most of the later ones."""
    later = found[1:]
    rows = [
        f"{node:10} {name:16} first {found[0][name]:6.0f}   mean {mean(one[name] for one in later):8.1f}   "
        f"most {max(one[name] for one in later):6.0f}"
        for name in found[0]
    ]
    return "\n".join(rows)


def latencies() -> Iterable[str]:
    """One line for each numbered field: the mean and the most of all GPUs, in microseconds."""
    known: dict[int, list[int]] = defaultdict(list)
    asked = pynvml.nvmlDeviceGetFieldValues

    def timed(handle: Any, fields: Any) -> Any:
        answers = asked(handle, fields)
        for one in answers:
            known[one.fieldId].append(one.latencyUsec)
        return answers

    pynvml.nvmlDeviceGetFieldValues = timed
    for _ in range(20):  # so that the histograms of 18 links are read
        list(nvml.state())
    pynvml.nvmlDeviceGetFieldValues = asked
    yield f"{'field':>6} {'mean':>9} {'most':>9} {'values':>7}"
    for number, took in sorted(known.items(), key=lambda item: -mean(item[1])):
        yield f"{number:6} {mean(took):9.1f} {max(took):9} {len(took):7}"


def main() -> None:
    """Print the table of both nodes, or the latencies of this machine's driver."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--cycles", type=int, default=25)
    parser.add_argument("--latency", action="store_true", help="of the driver of this machine")
    arguments = parser.parse_args()
    if arguments.latency:
        print("\n".join(latencies()))
        return
    logging.disable(logging.WARNING)  # the stub's switches are not on the buses of these nodes
    for node in DRIVERS:
        print(table(node, cycles(node, arguments.cycles)), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("LINKGAUGE_NVML_SECONDS", "30")
    main()
