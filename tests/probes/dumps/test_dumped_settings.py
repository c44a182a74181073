"""Settings in dumps that show little else of the machine."""

from __future__ import annotations

import pytest

from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.gpu import Gpu, GpuPair
from linkgauge.models.facts.machine import Node, Package, Rdma
from linkgauge.models.facts.records import Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Origin
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.host import host_text

GPUS = [Gpu(key=f"gpu{number}", name="NVIDIA L40S") for number in range(2)]
GEFORCE = [Gpu(key=f"gpu{number}", name="NVIDIA GeForce RTX 4090") for number in range(2)]
TRANSLATES = "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro intel_iommu=on"
LIMIT = "max locked memory           (kbytes, -l) 64"


def codes(text: str, *beside: Record, origin: Origin = "dumps") -> list[str]:
    said = [*host_text.read(Part("host.txt", 1, text)), *beside]
    return [one.code for one in evaluate(assemble(said, Site(), 2e9, origin=origin)).findings]


def pair(path: str) -> GpuPair:
    return GpuPair(key="gpu0-gpu1", a="gpu0", b="gpu1", path=path)


def test_a_command_line_that_switches_translation_on() -> None:
    assert codes(TRANSLATES, *GPUS, pair("PIX")) == ["iommu-translation"]
    assert codes(f"{TRANSLATES} iommu=pt", *GPUS, pair("PIX")) == []


@pytest.mark.parametrize(
    "beside",
    [
        [*GPUS, pair("NV4")],
        [*GPUS, Node(key="node", virtual=True)],
        [*GPUS, Package(key="package0", vendor="ARM")],
        GPUS[:1],
        GEFORCE,
    ],
)
def test_where_translation_does_no_harm(beside: list[Record]) -> None:
    assert "iommu-translation" not in codes(TRANSLATES, *beside)


def test_translation_without_a_device_is_information() -> None:
    said = [*host_text.read(Part("host.txt", 1, TRANSLATES))]
    report = evaluate(assemble(said, Site(), 2e9, origin="dumps"))
    assert [(one.code, one.severity) for one in report.findings] == [("iommu-translation", "info")]


def test_a_limit_on_locked_memory_beside_an_adapter() -> None:
    adapter = Rdma(key="mlx5_0")
    assert codes(LIMIT, adapter) == ["memlock-low"]
    assert codes(LIMIT.replace("64", "unlimited"), adapter) == []
    assert codes(LIMIT, Rdma(key="rxe0")) == []
    assert codes(LIMIT) == ["memlock-low"]  # only informs: nothing says that the machine has an adapter


def test_live_machines_are_not_guessed_at() -> None:
    assert codes(TRANSLATES, *GPUS, pair("PIX"), origin="live") == []
