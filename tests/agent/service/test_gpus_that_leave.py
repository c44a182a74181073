"""A whole node while GPUs are lent to a virtual machine, drained, and numbered anew, during a run of the service.

The driver numbers the GPUs that it has from 0. A GPU that leaves changes the numbers of those behind it. It leaves out
GPUs that are bound to vfio-pci (kernel documentation, driver-api/vfio) and GPUs that are drained (nvml.h,
nvmlDeviceModifyDrainState). The driver is a stub that child processes load.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec.structs import replace

from linkgauge.models.facts.records import Observation, Record
from linkgauge.models.report import Report
from linkgauge.probes.calls.child import Children
from linkgauge.probes.host.entries import Link
from linkgauge.probes.host.recorded import Recorded
from tests.support.gpu.nvml_answers import STUB
from tests.support.nodes.daemon_nodes import Breaking, Node

pytestmark = pytest.mark.slow

BUSES = (0x1B, 0x1E, 0x3B, 0x3E, 0x9B, 0x9E, 0xBB, 0xBE)  # of the described node hgx-h100
ADDRESSES = [f"0000:{bus:02x}:00.0" for bus in BUSES]
ALL = range(8)
_STEP = 1000.0  # seconds: some cycles are between two readings of all PCI functions
LENT = "info gpu-driver-failed GPU {address} (NVIDIA H100 SXM5 80GB) is bound to vfio-pci: lent to a virtual machine"
DRAINED = (
    "info gpu-driver-failed GPU {address} (NVIDIA H100 SXM5 80GB) is drained: its driver shows it to no new process"
)
# Counters that do not move. They are below all limits since boot, and differ from GPU to GPU.
WORN = "\n".join(
    f'[gpu.{gpu}.fields]\n"3" = {1000 * gpu}\n"94" = {111 * gpu}\n"161.3" = {7 * (gpu % 2)}' for gpu in ALL
)


@dataclass
class WithDriver(Breaking):
    """A recorded machine with the stub. Its answers have the time of the test's clock."""

    children: Children = field(default_factory=lambda: Children((sys.executable, str(STUB))))

    def call(self, what: str, *args: str, deadline: float) -> Iterator[Record]:
        if not what.startswith("nvml"):
            yield from super().call(what, *args, deadline=deadline)
            return
        for record in self.children.call(what, args, deadline):
            yield replace(record, at=self.now()) if isinstance(record, Observation) else record


@dataclass
class Hgx:
    """The service on a node with eight GPUs."""

    node: Node
    file: Path
    recorded: Recorded

    def findings(self, gpus: Sequence[int], drained: Sequence[int] = (), lent: Sequence[int] = ()) -> set[str]:
        """What a cycle after _STEP reports while the driver lists these GPUs."""
        named = [BUSES[gpu] for gpu in drained]
        self.file.write_text(
            f"gpus = {[*gpus]}\nswitch = 0xD9\nbuses = {[*BUSES]}\ndrained = {named}\n"
            f'[answers]\nnvmlSystemGetDriverVersion = "570.124.06"\n{WORN}\n'
        )
        self.node.host.recorded = with_vfio(self.recorded, *(ADDRESSES[gpu] for gpu in lent))
        self.node.go(_STEP)
        return texts(self.node.cycle())


def texts(report: Report) -> set[str]:
    return {f"{one.severity} {one.code} {one.message}" for one in report.findings}


def with_vfio(recorded: Recorded, *addresses: str) -> Recorded:
    """The machine with these functions bound to vfio-pci."""
    drivers = "sys/bus/pci/drivers"
    entries = dict(recorded.entries)
    for address in addresses:
        folder = entries.pop(f"{drivers}/nvidia/{address}")
        entries[f"{drivers}/vfio-pci/{address}"] = folder
        (link,) = (path for path in entries if path.startswith("sys/devices/") and path.endswith(f"{address}/driver"))
        entries[link] = Link(f"/{drivers}/vfio-pci")
    return Recorded(recorded.taken, entries, recorded.calls)


@pytest.fixture
def hgx(service: Callable[..., Node], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hgx:
    file = tmp_path / "driver.toml"
    monkeypatch.setenv("NVML_STUB", str(file))
    made = service(tmp_path)
    made.host = made.daemon.host = WithDriver(made.host.recorded)
    return Hgx(made, file, made.host.recorded)


def test_a_healthy_node_has_no_finding(hgx: Hgx) -> None:
    assert [hgx.findings(ALL) for _ in range(3)] == [set()] * 3


def test_a_gpu_for_a_virtual_machine(hgx: Hgx) -> None:
    """The node says so when it reads the drivers of PCI functions again, after an hour at the latest."""
    rest = [gpu for gpu in ALL if gpu != 2]
    hgx.findings(ALL)
    hgx.findings(ALL)
    during = [hgx.findings(rest, lent=[2]) for _ in range(5)]
    assert set.union(*during) == during[-1] == {LENT.format(address=ADDRESSES[2])}
    after = [hgx.findings(ALL) for _ in range(5)]
    assert set.union(*after[2:]) == set()


def test_a_gpu_that_is_drained(hgx: Hgx) -> None:
    rest = [gpu for gpu in ALL if gpu != 2]
    hgx.findings(ALL)
    hgx.findings(ALL)
    during = [hgx.findings(rest, drained=[2]) for _ in range(4)]
    assert set.union(*during) == during[-1] == {DRAINED.format(address=ADDRESSES[2])}
    after = [hgx.findings(ALL) for _ in range(4)]
    assert set.union(*after[2:]) == set()


def test_a_driver_that_numbers_the_gpus_in_another_order(hgx: Hgx) -> None:
    """After a reload, and with NVreg_AssignGpus or another order of probing."""
    for order in (ALL, [*reversed(ALL)], [*reversed(ALL)], [3, 1, 2, 0, 7, 5, 6, 4], ALL):
        assert hgx.findings(order) == set()
