"""Facts of machines with NVLink for tests of rules: healthy and at rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from linkgauge.models.catalog.gpus import products
from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.gpu import Gpu, GpuLink, GpuPair
from linkgauge.models.facts.machine import Node, Pci, Service
from linkgauge.models.facts.records import Evidence, Observation, Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Context, Finding, Report
from linkgauge.models.site.schema import Site
from tests.support.nodes.gpu_facts import with_fields

NOW = 2e9
HERE = Evidence("here", "x")
MINE = {
    "nvlink-inactive",
    "nvlink-errors",
    "nvlink-fabric-incomplete",
    "fabric-manager-down",
    "nvswitch-error",
    "imex-not-ready",
    "p2p-disabled",
    "driver-mismatch",
}
BARE = Node(key="node", virtual=False, booted=NOW - 86400, container="")
GUEST = replace(BARE, virtual=True)
H100, H200, A100, V100, B200, GB200, GH200 = 0x2330, 0x2335, 0x20B2, 0x1DB5, 0x2901, 0x2941, 0x2342
A100_PCIE, H100_NVL, RTX_3090, T4 = 0x20F1, 0x2321, 0x2204, 0x1EB8
SWITCHES = {A100: (0x1AF1, 6), H100: (0x22A3, 4), H200: (0x22A3, 4)}
MANAGER = "nvidia-fabricmanager"


def report_of(records: Iterable[Record], past: Iterable[Observation] = (), context: Context = "host") -> Report:
    return evaluate(replace(assemble(records, Site(), NOW, past=past), context=context))


def findings(records: Iterable[Record], past: Iterable[Observation] = (), context: Context = "host") -> list[Finding]:
    return [one for one in report_of(records, past, context).findings if one.code in MINE]


def summaries(records: Iterable[Record], **more: Any) -> list[tuple[str, str, str]]:
    return [(one.code, one.subject, one.severity) for one in findings(records, **more)]


def address(gpu: int) -> str:
    return f"0000:{0x10 + gpu:02x}:00.0"


def switch(number: int) -> str:
    return f"0000:{0xD0 + number:02x}:00.0"


def function(gpu: int, device: int) -> Pci:
    return Pci(
        key=address(gpu),
        parent=f"pci0000:{0x10 + gpu:02x}",
        pci_class=0x030200,
        vendor=0x10DE,
        device=device,
        driver="nvidia",
        lost=False,
    )


def links_of(device: int) -> int:
    return next(one.links for one in products() if f"10de:{device:04x}" in one.ids)


def machine(device: int, count: int = 8, node: Node = BARE, hidden: bool = False, **fields: Any) -> list[Record]:
    """A healthy machine whose GPUs are attached to switches.

    `fields` apply to each GPU. `hidden` hides the switches.
    """
    number, switches = SWITCHES.get(device, (0, 0))
    hidden = hidden or not switches
    records: list[Record] = [node]
    for one in range(0 if hidden else switches):
        records.append(Pci(key=switch(one), parent="pci0000:d0", pci_class=0x068000, vendor=0x10DE, device=number))
    usual: dict[str, Any] = {"nvlinks": links_of(device)}
    if device not in (A100, V100):
        usual |= {"fabric_state": "completed", "fabric_status": "Success"}
    for gpu in range(count):
        cites = dict.fromkeys(("nvlinks", "fabric_state", "fabric_status", "fabric_faults"), HERE)
        records.append(function(gpu, device))
        records.append(
            Gpu(key=f"gpu{gpu}", name=f"{device:x}", address=address(gpu), cites=cites, **{**usual, **fields})
        )
        for link in range(links_of(device)):
            remote = None if hidden else switch(link % switches)
            records.append(nvlink(gpu, link, remote=remote, remote_kind="switch"))
    return records


def nvlink(gpu: int, number: int, **fields: Any) -> GpuLink:
    defaults: dict[str, Any] = {
        "gpu": f"gpu{gpu}",
        "kind": "nvlink",
        "active": True,
        "cites": {"active": HERE, "remote": HERE},
    }
    return GpuLink(key=f"gpu{gpu}/nvlink{number}", **{**defaults, **fields})


def cards(device: int, active: Iterable[int], node: Node = BARE) -> list[Record]:
    """PCIe cards with these numbers of active NVLinks over bridges, without facts about single links."""
    records: list[Record] = [node]
    for gpu, links in enumerate(active):
        records += [
            function(gpu, device),
            Gpu(key=f"gpu{gpu}", name=f"{device:x}", address=address(gpu), nvlinks=links),
        ]
    return records


def cut(records: Iterable[Record], gpu: int, *numbers: int) -> list[Record]:
    """The records with inactive NVLinks of a GPU. An inactive link shows no other end."""
    records = list(records)
    for number in numbers:
        records = with_fields(records, f"gpu{gpu}/nvlink{number}", active=False, remote=None, remote_kind=None)
    up = sum(1 for one in records if isinstance(one, GpuLink) and one.gpu == f"gpu{gpu}" and one.active)
    return with_fields(records, f"gpu{gpu}", nvlinks=up)


def pairs(count: int, **fields: str) -> list[GpuPair]:
    usual: dict[str, Any] = {"read": "ok", "write": "ok", "nvlink": "ok", "path": "SYS", **fields}
    return [GpuPair(key=f"gpu{a}-gpu{b}", a=f"gpu{a}", b=f"gpu{b}", **usual) for b in range(count) for a in range(b)]


def service(name: str, running: bool, version: str | None = None) -> Service:
    return Service(key=name, running=running, version=version, cites={"running": HERE, "version": HERE})


def counter(about: str, quantity: str, value: float, at: float = NOW) -> Observation:
    unit = "ratio" if quantity.endswith("ber") else "count"
    return Observation(
        about=about, quantity=quantity, unit=unit, value=value, at=at, evidence=Evidence("nvml", f"{value}")
    )
