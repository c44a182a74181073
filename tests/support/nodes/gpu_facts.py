"""Facts of small GPU machines for tests of rules: healthy and at rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.gpu import Driver, Gpu
from linkgauge.models.facts.machine import Node, Pci
from linkgauge.models.facts.records import Evidence, Fact, Observation, Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.inventory.snapshot import Snapshot
from linkgauge.models.report import Context, Finding, Origin, Report
from linkgauge.models.site.schema import Site

NOW = 2e9
BOOTED = NOW - 100_000
HERE = Evidence("here", "x")
BARE = Node(key="node", virtual=False, container="", booted=BOOTED)
DRIVER = Driver(key="nvidia", version="580.95.05", library="580.95.05", gpus=8)
H100 = "NVIDIA H100 80GB HBM3"
GPU = Gpu(
    key="gpu0",
    name=H100,
    recovery="none",
    virtualization="none",
    pcie_speed=32e9,
    pcie_width=16,
    pcie_max_speed=32e9,
    pcie_max_width=16,
    performance_state=0,
    clock=345e6,
    clock_max=1980e6,
    clock_reasons=("idle",),
    temperature=30.0,
    power=70.0,
    power_limit=700.0,
    power_limit_default=700.0,
    memory=85_520_809_984,
    memory_used=0,
    bar1=128 << 30,
    ecc=True,
    ecc_pending=True,
    ecc_corrected=0,
    ecc_uncorrected=0,
    ecc_corrected_lifetime=7,
    ecc_uncorrected_lifetime=2,
    sram_threshold=False,
    remapped_correctable=1,
    remapped_uncorrectable=1,
    remap_pending=False,
    remap_failed=False,
    nvlinks=18,
    nvlinks_present=18,
    nvlink_rate=25e9,
    fabric_state="completed",
    fabric_status="Success",
    mig=False,
    mig_instances=0,
    persistence=True,
    compute_mode="default",
    processes=0,
)


def address(number: int) -> str:
    """The PCI address of a GPU of these machines."""
    return f"0000:{0x10 + number:02x}:00.0"


def function(number: int, **fields: Any) -> Pci:
    """The PCI function of an H100 with a driver and without a link."""
    records = Pci(
        key=address(number),
        parent="pci0000:00",
        pci_class=0x030200,
        vendor=0x10DE,
        device=0x2330,
        driver="nvidia",
        lost=False,
    )
    return replace(records, **fields)


def gpu(number: int, **fields: Any) -> Gpu:
    """An H100 of a healthy board."""
    records = replace(GPU, key=f"gpu{number}", address=address(number), module_id=number + 1)
    return replace(records, **fields)


def switches(count: int = 4, device: int = 0x22A3) -> list[Record]:
    """NVSwitches of a board."""
    plain = Pci(key="", parent="pci0000:00", pci_class=0x068000, vendor=0x10DE, device=device, driver="nvidia-nvswitch")
    return [replace(plain, key=f"0000:{0xD0 + number:02x}:00.0") for number in range(count)]


def board(count: int = 8, **fields: Any) -> list[Record]:
    """A healthy board of H100. `fields` apply to GPU 3."""
    gpus = [gpu(number, **(fields if number == 3 else {})) for number in range(count)]
    return [BARE, DRIVER, *(function(number) for number in range(count)), *gpus, *switches()]


def without(records: Iterable[Record], *keys: str) -> list[Record]:
    """The records without the facts of these keys. The driver counts the GPUs that are left."""
    left = [one for one in records if getattr(one, "key", None) not in keys]
    gpus = sum(isinstance(one, Gpu) for one in left)
    return [replace(one, gpus=gpus) if isinstance(one, Driver) and one.gpus is not None else one for one in left]


def with_fields(records: Iterable[Record], key: str, **fields: Any) -> list[Record]:
    """The records with changed fields of one fact."""
    return [replace(one, **fields) if isinstance(one, Fact) and one.key == key else one for one in records]


def counter(about: str, quantity: str, value: float, at: float = NOW) -> Observation:
    """An observation of a count or of seconds."""
    return Observation(about=about, quantity=quantity, unit="count", value=value, at=at, evidence=HERE)


def report_of(
    records: Iterable[Record],
    past: tuple[Observation, ...] = (),
    site: Site | None = None,
    origin: Origin = "live",
    context: Context | None = None,
) -> Report:
    """The report on the machine."""
    snapshot: Snapshot = assemble(records, site or Site(), NOW, past=past, origin=origin)
    return evaluate(replace(snapshot, context=context) if context else snapshot)


def findings(records: Iterable[Record], *past: Observation, **more: Any) -> tuple[Finding, ...]:
    """The findings of the report."""
    return report_of(records, past, **more).findings


def summaries(records: Iterable[Record], *past: Observation, **more: Any) -> list[tuple[str, str, str, str]]:
    """Code, subject, severity and confidence of each finding."""
    return [(one.code, one.subject, one.severity, one.confidence) for one in findings(records, *past, **more)]
