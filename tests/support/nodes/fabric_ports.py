"""InfiniBand ports and GPUs as facts, and the findings of a node that has them."""

from __future__ import annotations

from msgspec.structs import replace

from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.machine import Pci, Port, Rdma
from linkgauge.models.facts.records import Evidence, Observation, Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Finding
from linkgauge.models.site.schema import Site

NOW = 2e9
HERE = Evidence("here", "x")
PORT_0, GPU_0 = "0000:00:01.0", "0000:01:00.0"
BRIDGE = Pci(key=PORT_0, parent="pci0000:00", pci_class=0x060400, vendor=0x8086, max_speed=32e9, max_width=16)
GPU = Pci(
    key=GPU_0,
    parent=PORT_0,
    pci_class=0x030200,
    vendor=0x10DE,
    device=0x2330,
    driver="nvidia",
    speed=32e9,
    width=16,
    max_speed=32e9,
    max_width=16,
    lost=False,
)


def findings(*records: Record, site: Site | None = None, past: tuple[Observation, ...] = ()) -> tuple[Finding, ...]:
    return evaluate(assemble(records, site or Site(), NOW, past=past)).findings


def summaries(
    *records: Record, site: Site | None = None, past: tuple[Observation, ...] = ()
) -> list[tuple[str, str, str]]:
    return [(one.code, one.subject, one.severity) for one in findings(*records, site=site, past=past)]


def nic(number: int, **fields: object) -> list[Record]:
    """An InfiniBand NIC with its port, Active at 400 Gb/s unless `fields` has other values."""
    address = f"0000:{number:02x}:00.0"
    up: dict[str, object] = {"state": "ACTIVE", "physical_state": "LinkUp", "rate": 50e9, "link_layer": "InfiniBand"}
    cites = dict.fromkeys(("state", "rate"), HERE)
    return [
        Pci(key=address, parent="pci0000:00", pci_class=0x020700, vendor=0x15B3, device=0x1021),
        Rdma(key=f"mlx5_{number}", address=address, driver="mlx5_core", board_id="MT_0000000838"),
        Port(key=f"mlx5_{number}/1", device=f"mlx5_{number}", cites=cites, **{**up, **fields}),  # type: ignore[arg-type]
    ]


def gpus(number: int) -> list[Record]:
    """GPUs that nothing is wrong with, on no link."""
    plain = replace(GPU, parent="pci0000:80", speed=None, width=None, max_speed=None, max_width=None)
    return [replace(plain, key=f"0000:{0x80 + index:02x}:00.0") for index in range(number)]


DOWN = {"state": "DOWN", "physical_state": "Polling"}
