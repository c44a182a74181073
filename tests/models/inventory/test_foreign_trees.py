"""Machines of other makers, ages and sandboxes: what their trees lack, and what stands in its place."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from linkgauge.exporters.text.report import as_text
from linkgauge.exporters.text.tree import as_tree
from linkgauge.models.diagnosis.coverage import coverage, uncovered
from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.machine import Node, Pci
from linkgauge.models.facts.merge import Conflict
from linkgauge.models.facts.pci_classes import kind_of
from linkgauge.models.facts.records import Evidence, NotChecked, Record, Run
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.inventory.snapshot import Snapshot
from linkgauge.models.site.schema import Machine, Site

GPU = Pci(key="0000:41:00.0", pci_class=0x030200, vendor=0x10DE, device=0x2330, width=16, parent="pci0000:40")
METAL = Node(key="node", virtual=False)


def snapshot(*records: Record, site: Site | None = None) -> Snapshot:
    return assemble(records, site or Site(), 1000.0)


@pytest.mark.parametrize(
    ("code", "vendor", "device", "kind"),
    [
        (0x0C0600, 0x15B3, 0x5A44, "nic"),  # MT23108 InfiniHost
        (0x0C0330, 0x8086, 0xA36D, "pci"),  # USB
        (0x030000, 0x1002, 0x515E, "display"),  # ES1000
        (0x030000, 0x1002, 0x4752, "display"),  # Rage XL
        (0x030000, 0x1002, 0x7142, "display"),  # Radeon X1300
        (0x030000, 0x1002, 0x6798, "gpu"),  # Radeon HD 7970
        (0x030000, 0x1002, 0x731F, "gpu"),  # Radeon RX 5700
        (0x030000, 0x1002, None, "gpu"),
        (0x120000, 0x1002, 0x74A1, "gpu"),  # MI300X
        (0x030000, 0x10DE, 0x515E, "gpu"),
    ],
)
def test_the_kind_of_old_devices(code: int, vendor: int, device: int | None, kind: str) -> None:
    assert kind_of(Pci(key="0000:01:00.0", pci_class=code, vendor=vendor, device=device)) == kind


def test_the_kernel_and_the_gpu_s_driver_disagree() -> None:
    gpu = Gpu(key="gpu0", address=GPU.key, pcie_width=8)
    from_driver = Pci(key=GPU.key, width=8, cites={"width": Evidence("nvmlDeviceGetCurrPcieLinkWidth", "8")})
    assert snapshot(METAL, GPU, gpu).conflicts == (Conflict(GPU, from_driver, "width"),)
    assert snapshot(METAL, GPU, replace(gpu, pcie_width=16)).conflicts == ()
    assert snapshot(Node(key="node", virtual=True), GPU, gpu).conflicts == ()


def test_a_function_without_a_name_shows_its_numbers() -> None:
    topology = snapshot(METAL, GPU).topology
    device = topology.find(GPU.key)
    assert device
    assert (device.vendor, device.device, device.pci_class) == (0x10DE, 0x2330, 0x030200)
    assert "10de:2330" in as_tree(topology)
    assert "10de:2330" not in as_tree(snapshot(METAL, replace(GPU, name="NVIDIA H100")).topology)


@pytest.mark.parametrize(
    ("machine", "product", "why"),
    [
        (None, 0xFFFF, "no machine type says"),
        (Machine(name="lab", product="Box", source="x"), 0xFFFF, "the machine type lab does not say"),
        (None, 0x2330, "only the name of the GPUs matches the machine type hgx-h100-8, so it does not say"),
    ],
)
def test_why_the_number_of_gpus_is_not_checked(machine: Machine | None, product: int, why: str) -> None:
    site = Site(machine=(machine,)) if machine else Site()
    gpus = [Gpu(key=f"gpu{n}", address=f"0000:{n + 1}0:00.0") for n in range(2)]
    functions = [replace(GPU, key=str(gpu.address), device=product, driver="nvidia") for gpu in gpus]
    seen = snapshot(replace(METAL, product="Box"), *functions, *gpus, site=site)
    assert [one.why for one in uncovered(seen) if isinstance(one, NotChecked)] == [
        f"2 were seen, and {why} how many there should be"
    ]
    for one in coverage(seen).uncorroborated:
        assert ("no machine type" in one.why) == ("no machine type" in why)


def test_the_elapsed_time_is_that_of_the_command() -> None:
    """Sources run in parallel, so their seconds do not add up."""
    runs = [
        Run(name="cached", ok=True, seconds=0.5, at=10.0),
        Run(name="a", ok=True, seconds=2.0, at=100.0),
        Run(name="b", ok=True, seconds=1.0, at=100.5),
        Run(name="c", ok=True, seconds=1.0, at=101.5),
    ]
    report = replace(evaluate(snapshot(METAL, *runs)), seconds=3.61)
    assert "Read 4 sources in 3.6 s." in " ".join(as_text(report, False).split())
    assert "Read 4 sources in 3.6 s (a 2.00 s, b 1.00 s, " in " ".join(as_text(report, False, "full").split())
