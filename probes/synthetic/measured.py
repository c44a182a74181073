"""Results of copy probes on a synthetic node with described rates, for the calls that the probes plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase

from ...models.facts.records import Evidence, Flow, Observation, Record
from ...models.facts.units import as_transfers, from_gigabytes
from ...models.inventory.assemble import assemble
from ...models.report import Report
from ...models.site.schema import Site
from ..gpu.gpus import read_gpu_wiring, read_gpus
from ..host.host import Host
from ..measure.gpu import device_memory, host_copy, peer_copy
from ..measure.gpu.copy_request import Run, flows, parsed
from ..measure.probe import Plan, Probe, Scope
from ..network.net import read_net
from ..network.rdma import read_rdma
from ..parsing.parsers import pcie_speed
from ..pcie.pci import read_pci
from ..system.cpu import read_cpu
from ..system.node import read_node
from ..system.numa import read_numa
from .pci import Function
from .schema import Node
from .tree_writer import TreeWriter

# The plan of each call.
PLANS: Mapping[str, Plan] = {
    "host_copy": host_copy.plan,
    "peer_copy": peer_copy.plan,
    "device_memory": device_memory.plan,
}
_SIZES = {"host_copy": host_copy.SIZE, "peer_copy": peer_copy.SIZE, "device_memory": device_memory.SIZE}
# Sources of the devices and their connections.
_READERS = (read_node, read_cpu, read_numa, read_pci, read_gpus, read_gpu_wiring, read_net, read_rdma)


def probes_of(host: Host) -> Iterator[Probe]:
    """Yield all probes of this machine, for both efforts."""
    snapshot = assemble([record for read in _READERS for record in read(host)], Site(), host.now(), origin="capture")
    report = Report(
        node=None,
        taken_at=None,
        source="capture",
        context="host",
        profile=None,
        verdict="unknown",
        topology=snapshot.topology,
    )
    ends = frozenset(device.id for device in snapshot.topology.devices)
    for effort in ("quick", "full"):
        scope = Scope(effort="full" if effort == "full" else "quick", ends=ends)
        yield from (probe for plan in PLANS.values() for probe in plan(report, scope))


def copies(
    name: str, tree: TreeWriter, node: Node, functions: Iterable[Function], at: float, *words: str
) -> Iterator[Record]:
    """Yield the results of a call: the described rates of copies, and the states of links meanwhile."""
    request = parsed(words)
    by_address = {function.address: function for function in functions}
    for run in request.runs:
        described = [(flow, rate) for flow in flows(run, _size(name, run)) if (rate := _rate(node, flow)) is not None]
        for flow, rate in described:
            yield _observed(flow, "rate", "bytes_per_second", from_gigabytes(rate), at, "cuMemcpyAsync", f"{rate} GB/s")
        if name == "host_copy" and len(run) == 1 and described:
            gpu = next(end for end in run[0] if end in request.gpus)
            yield from _links(tree, by_address, request.gpus[gpu], at)


def _rate(node: Node, flow: Flow) -> float | None:
    """Return the rate of the last matching row; None without one."""
    source, to = flow.ends[0], flow.ends[1] if len(flow.ends) > 1 else ""
    about = (
        row
        for row in reversed(node.measured)
        if fnmatchcase(source, row.source) and fnmatchcase(to, row.to) and len(flow.beside) >= row.beside
    )
    return next((row.rate for row in about), None)


def _size(name: str, run: Run) -> int:
    return peer_copy.copy_size(_SIZES[name], run) if name == "peer_copy" else _SIZES[name]


def _links(tree: TreeWriter, by_address: Mapping[str, Function], address: str, at: float) -> Iterator[Observation]:
    """Yield the speeds of the links above a GPU: the maximum of both ends, or the described busy speed."""
    parts = by_address[address].folder.split("/")
    for depth, name in enumerate(parts, 1):
        function = by_address.get(name)
        if function is None:
            continue
        folder = "/".join(parts[:depth])
        speed = _busy(tree, function, folder)
        if speed is not None:
            text = f"{as_transfers(speed)}, copies of 64 MiB"
            yield _observed(name, "link_speed", "transfers_per_second", speed, at, f"{folder}/current_link_speed", text)


def _busy(tree: TreeWriter, function: Function, folder: str) -> float | None:
    ends = [function, *(one for one in (function.port, function.below) if one)]
    seen = [end.change.busy_speed for end in ends if end.change.busy_speed is not None]
    if seen:
        return min(seen) * 1e9
    able = [tree.entries.get(f"{end.folder}/max_link_speed") for end in ends]
    return min((speed for text in able if isinstance(text, str) and (speed := pcie_speed(text))), default=None)


def _observed(
    about: Flow | str, quantity: str, unit: str, value: float, at: float, source: str, text: str
) -> Observation:
    return Observation(
        about=about, quantity=quantity, unit=unit, value=value, at=at, busy=True, evidence=Evidence(source, text)
    )
