"""The service over a file tree of a machine with eight H100, with counters for benchmarks.

Files are read as with `--root`. The tests' stub of NVIDIA's driver runs in a real child process. The answers of other
child processes are recorded.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.cost.startup import write
from linkgauge.agent.service.config import Config
from linkgauge.agent.service.daemon import Daemon
from linkgauge.agent.service.yielding import relax_garbage_collection, yield_after_bursts
from linkgauge.agent.web.pages import Pages
from linkgauge.models.facts.records import Observation, Record
from linkgauge.models.site.schema import Site
from linkgauge.probes.calls.worker import Workers
from linkgauge.probes.host.guarded import Guarded
from linkgauge.probes.host.live import Live
from linkgauge.probes.host.recorded import Recorded, dump
from linkgauge.probes.synthetic.build import build

TESTS = Path(__file__).parents[2] / "tests"
FUNCTIONS = (102, 472)  # PCI functions: 69 belong to GPUs, NICs and disks, the others to the processors
# A Dell server with eight H100 has 517. Most belong to a processor and have no link (`lspci` of leptonai/gpud).
_UNCORE = """
[model.uncore]
kind = "display"
id = "8086:3256"
pci_class = 0x088000

[[root]]
bus = {buses}
integrated = {integrated}
"""
_BUSES = {102: (3, 11), 472: (13, 31)}  # number of buses, and of functions per bus
_REST = 0.02  # seconds, as in agent/service/main.py


def uncore(functions: int) -> str:
    """TOML that adds PCI functions to the node hgx-h100, up to a number in FUNCTIONS."""
    buses, each = _BUSES[functions]
    return _UNCORE.format(buses=[*range(0x80, 0x80 + buses)], integrated=["uncore"] * each)


def machine(functions: int = FUNCTIONS[0]) -> Recorded:
    """A machine with eight H100 and this number of PCI functions."""
    return build((TESTS / "nodes/hgx-h100.toml").read_text() + uncore(functions))


def tree(root: Path, functions: int = FUNCTIONS[0]) -> Path:
    """Write the machine as files below the folder."""
    write(dump(machine(functions)), root)
    return root


class Machine(Live):
    """A machine that counts reads and driver calls."""

    def __init__(self, root: Path) -> None:
        super().__init__(str(root))
        self.counts: Counter[str] = Counter()
        self.wall: Callable[[], float] = time.time
        self._recorded = machine()
        stub = root / "driver.toml"
        stub.write_text('[answers]\nnvmlSystemGetDriverVersion = "570.124.06"\n')
        os.environ["NVML_STUB"] = str(stub)
        self.workers = Workers((sys.executable, str(Path(__file__).with_name("driver.py"))))

    def read(self, path: str) -> str | None:
        self.counts["reads"] += 1
        return super().read(path)

    def call(self, what: str, *args: str, deadline: float) -> Iterator[Record]:
        source = self.workers.call(what, args, deadline) if what.startswith("nvml") else None
        for record in source or self._recorded.call(what, *args, deadline=deadline):
            if isinstance(record, Observation) and record.quantity == "driver_calls":
                self.counts["NVML calls"] += int(record.value)
            yield record

    def now(self) -> float:
        return self.wall()


class Served:
    """The daemon, and the lengths of its processor bursts."""

    def __init__(self, root: Path, state: Path) -> None:
        self.host = Machine(root)
        self.ahead = 0.0  # seconds that both clocks are ahead
        self.host.wall = lambda: time.time() + self.ahead
        self.pages = Pages()
        relax_garbage_collection()
        self.bursts: list[float] = []
        self._since = 0.0
        guarded = Guarded(self.host)
        self.daemon = Daemon(
            guarded,
            Config(),
            Site(),
            self.pages,
            str(state),
            monotonic=lambda: time.monotonic() + self.ahead,
            pause=yield_after_bursts(self._rest),
            forget=guarded.forget,
            stuck=lambda: self.host.workers.stuck,
        )

    def cycle(self) -> float:
        """Run one cycle. Returns its processor seconds in this process, without children."""
        began = self._since = time.process_time()
        self.daemon.cycle()
        self._burst()
        self.ahead += self.daemon.every
        return time.process_time() - began

    def _rest(self) -> None:
        self._burst()
        time.sleep(_REST)
        self._since = time.process_time()

    def _burst(self) -> None:
        self.bursts.append(time.process_time() - self._since)
