"""From all collected records to a snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..facts.gpu import Gpu
from ..facts.gpu_identity import with_gpu_numbers
from ..facts.machine import Node, Pci
from ..facts.merge import Conflict, Facts, merge, of
from ..facts.records import Evidence, Fact, NotChecked, Observation, Record, Run
from ..report import Context, Origin
from ..site.schema import Site
from .build import build_topology
from .inventory import Inventory
from .machine_type import recognise
from .snapshot import Snapshot


def assemble(
    records: Iterable[Record],
    site: Site,
    now: float,
    past: Iterable[Observation] = (),
    baseline: Iterable[Observation] = (),
    origin: Origin = "live",
    context: Context = "host",
    accepted: float | None = None,
    inventory: Inventory | None = None,
    listed: frozenset[str] = frozenset(),
) -> Snapshot:
    """Merge the facts, build the topology and recognise the machine. `now` and `accepted` are seconds since 1970."""
    read, observations, not_checked, runs = _sorted(with_gpu_numbers(records))
    facts, conflicts = merge((Node(key="node"), *read))
    machine, matched_by = recognise(facts, site)
    return Snapshot(
        facts=facts,
        conflicts=(*conflicts, *_with_driver(facts)),
        topology=build_topology(facts, site, machine),
        observations=tuple(observations),
        not_checked=tuple(dict.fromkeys(not_checked)),
        runs=tuple(runs),
        machine=machine,
        matched_by=matched_by,
        site=site,
        past=tuple(past),
        baseline=tuple(baseline),
        now=now,
        origin=origin,
        context="dumps" if origin == "dumps" else context,
        accepted=accepted,
        inventory=inventory,
        listed=listed,
    )


def _sorted(records: Iterable[Record]) -> tuple[list[Fact], list[Observation], list[NotChecked], list[Run]]:
    """The records by their type, in one pass."""
    facts: list[Fact] = []
    observations: list[Observation] = []
    not_checked: list[NotChecked] = []
    runs: list[Run] = []
    for one in records:
        if isinstance(one, Observation):
            observations.append(one)
        elif isinstance(one, Fact):
            facts.append(one)
        elif isinstance(one, NotChecked):
            not_checked.append(one)
        else:
            runs.append(one)
    return facts, observations, not_checked, runs


def _with_driver(facts: Facts) -> Iterator[Conflict]:
    """GPU links whose width differs between the kernel and the GPU's driver.

    A hypervisor may show a PCI tree of its own, while the driver asks the device. So nothing is compared there.
    """
    node = of(facts, Node).get("node")
    if node is None or node.virtual is not False:
        return
    for gpu in of(facts, Gpu).values():
        function = of(facts, Pci).get(gpu.address or "")
        if function and function.width and gpu.pcie_width and function.width != gpu.pcie_width:
            cite = gpu.cites.get("pcie_width", Evidence("nvmlDeviceGetCurrPcieLinkWidth", str(gpu.pcie_width)))
            yield Conflict(function, Pci(key=function.key, width=gpu.pcie_width, cites={"width": cite}), "width")
