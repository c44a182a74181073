"""Functions in D3cold: nothing is read that wakes them (commit 48991e493507 of drivers/pci/pci-sysfs.c, Linux 6.18)."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from linkgauge.probes.host.entries import Folder
from linkgauge.probes.host.host import Host
from linkgauge.probes.host.recorded import Recorded
from linkgauge.probes.pcie.bars import read_pci_windows
from linkgauge.probes.pcie.busy_speed import busy_links
from linkgauge.probes.pcie.links import read_pci_links
from linkgauge.probes.pcie.pci import read_pci
from linkgauge.probes.pcie.speed_samples import LinkSamples
from tests.support.nodes.pci_machines import CARD, GPU, PORT, machine
from tests.support.nodes.trees import tree

# Files that show registers of the function (drivers/pci/pci-sysfs.c, pci_config_pm_runtime_get and its callers).
WAKING = ("max_link_speed", "max_link_width", "current_link_speed", "current_link_width", "resource2_resize", "config")
LINK = {name: "8.0 GT/s PCIe" if "speed" in name else "16" for name in WAKING[:4]}
WINDOWS = {
    "resource": "0x1000 0x1fff 0x140204\n0x0 0x0 0x0\n0x200000 0x3fffff 0x14220c",
    "resource2_resize": "0000000000000fc0",
}


@dataclass
class Listened:
    """A recorded machine that notes which files are read."""

    machine: Recorded
    origin: str = "capture"
    reads: list[str] = field(default_factory=list)

    def read(self, path: str) -> str | None:
        self.reads.append(self.machine.resolve(path) or path)
        return self.machine.read(path)

    def __getattr__(self, name: str) -> object:
        return getattr(self.machine, name)


def waking(host: Listened) -> list[str]:
    """The files that were read and wake the card."""
    return [path for path in host.reads if path.startswith(CARD) and path.rpartition("/")[2] in WAKING]


@pytest.mark.parametrize(("state", "wakes"), [("D3cold", False), ("D0", True)])
def test_no_reader_wakes_a_function_without_power(state: str, wakes: bool) -> None:
    entries = machine({PORT: LINK, CARD: {**GPU, **LINK, **WINDOWS, "power_state": state}})
    bound = {"sys/bus/pci/drivers/nvidia/0000:17:00.0": Folder()}
    readers = (
        lambda host: read_pci(host),
        lambda host: read_pci_links(host),
        lambda host: read_pci_windows(host),
        lambda host: busy_links(host, {CARD: 0}, {CARD: 1 << 30}, 0.1),
        sampled,
    )
    for reader in readers:
        host = Listened(tree({**entries, **bound}))
        list(reader(host))  # type: ignore[arg-type]
        assert bool(waking(host)) == wakes


def sampled(host: Host) -> list[str]:
    samples = LinkSamples(host, CARD)
    samples.sample()
    return [*samples.fastest]
