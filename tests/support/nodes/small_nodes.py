"""Small nodes: GPUs under switches, their records, and their reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from linkgauge.agent.pipeline.source import Source
from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.machine import Pci
from linkgauge.models.facts.records import Evidence, Flow, Observation, Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.inventory.snapshot import Snapshot
from linkgauge.models.report import Origin, Report
from linkgauge.models.site.schema import Site

HERE = Evidence("here", "x")
NOTE = 2330  # PCI device id of an H100


def gpus_under_switches(gpus: int = 2, nvlinks: int = 0) -> list[Record]:
    """Two GPUs per switch, each switch under its own root port, all links 32 GT/s x16, and NVLinks of 25 GB/s."""
    records: list[Record] = []
    for switch in range((gpus + 1) // 2):
        root, upstream = f"0000:{switch}0:01.0", f"0000:{switch}1:00.0"
        records += [bridge(root, "pci0000:00"), bridge(upstream, root)]
    for gpu in range(gpus):
        port, address = f"0000:{gpu // 2}2:0{gpu % 2}.0", gpu_address(gpu)
        records += [bridge(port, f"0000:{gpu // 2}1:00.0"), function(address, port)]
        records.append(Gpu(key=f"gpu{gpu}", address=address, name="H100 PCIe", nvlinks=nvlinks, nvlink_rate=25e9))
    return records


def gpu_address(gpu: int) -> str:
    return f"0000:{gpu // 2}{3 + gpu % 2}:00.0"


def bridge(address: str, parent: str) -> Pci:
    return replace(function(address, parent), pci_class=0x060400, vendor=0x1000)


def function(address: str, parent: str) -> Pci:
    return Pci(
        key=address,
        parent=parent,
        pci_class=0x030200,
        vendor=0x10DE,
        device=NOTE,
        driver="nvidia",
        speed=32e9,
        width=16,
        max_speed=32e9,
        max_width=16,
        lost=False,
    )


def with_fields(records: Iterable[Record], key: str, **fields: object) -> list[Record]:
    """The records with changed fields of the PCI function `key`."""
    return [replace(s, **fields) if isinstance(s, Pci) and s.key == key else s for s in records]


def copy(ends: tuple[str, ...], gigabytes: float, **flow: object) -> Observation:
    about = Flow("copy", ends, 1 << 28, **flow)  # type: ignore[arg-type]
    return observation(about, "rate", gigabytes * 1e9)


def observation(about: Flow | str, quantity: str, value: float, at: float = 1.0, busy: bool = True) -> Observation:
    return Observation(about=about, quantity=quantity, unit="1", value=value, at=at, busy=busy, evidence=HERE)


def snapshot_of(
    records: Iterable[Record], site: Site | None = None, origin: Origin = "live", **more: object
) -> Snapshot:
    return assemble(records, site or Site(), 100.0, origin=origin, **more)  # type: ignore[arg-type]


def report_of(records: Iterable[Record], site: Site | None = None, origin: Origin = "live", **more: object) -> Report:
    return evaluate(snapshot_of(records, site, origin, **more))


class Clock:
    """A host that only has a clock."""

    origin: Origin = "live"
    at = 0.0

    def now(self) -> float:
        self.at += 1
        return self.at

    def read(self, path: str) -> str | None:
        return None

    def list(self, path: str) -> list[str]:
        return []

    def resolve(self, path: str) -> str | None:
        return None

    def call(self, what: str, *args: str, deadline: float) -> Iterator[Record]:
        return iter(())


def source_of(*records: Record, name: str = "all") -> Source:
    return Source(name, lambda _: records)


ROOT = "pci0000:00"


def peers(rate: float, pairs: Iterable[tuple[int, int]]) -> list[Observation]:
    return [copy((f"gpu{a}", f"gpu{b}"), rate, via="pcie") for a, b in pairs]
