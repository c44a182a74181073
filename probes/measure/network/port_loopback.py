"""The probe `port_loopback`: the rate of each NIC to itself and, on request, to other machines.

Loopback tests the adapter and its PCIe links. `plan` selects the ports; `writes` runs in a child process. Limits:
docs/operate/probes.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from msgspec import Struct

from ....models.facts.records import Observation, Record
from ....models.facts.units import GIB
from ....models.graph.path_types import natural, nearest, nics
from ....models.graph.topology import Topology
from ....models.report import Report
from ...host.host import Unreadable
from ...host.live import Live
from ...pcie.speed_samples import LinkSamples
from ..probe import Effort, Probe, Scope
from . import efa as efa_run
from . import iperf as iperf_run
from . import perftest as perftest_run
from .perftest import SIZE, Test

_MESSAGES = {"quick": 2_000, "full": 20_000}  # 40 ms and 0.4 s at 400 Gb/s
_EXPECTED = {"quick": 0.4, "full": 1.5}  # seconds for a port, mostly for opening the device twice
_LONGEST = {"quick": 5.0, "full": 15.0}  # seconds for a tool; a port of 10 Gb/s takes 2 and 17
_PORTS_PER_PROCESS = {"quick": 4, "full": 1}  # ports in one process, so that a budget can cover a part of 32 ports
_STARTING = 0.3
_SHORTEST = 0.2  # seconds that several samples of the links take (external_tools.py)
_FIRST_PORT = 18515  # perftest's default; each further RDMA port uses the next TCP port of the peer
_TCP_SECONDS = 20.0


class _Port(Struct, frozen=True):
    name: str  # "mlx5_0/1"
    nic: str  # its function, "0000:1a:00.0"
    efa: bool


def plan(report: Report, scope: Scope) -> Iterator[Probe]:
    """Yield probes of the active RDMA ports: at "quick" a few in one process, at "full" one each, and to peers."""
    if scope.effort == "passive":
        return
    topology = report.topology
    ports = [one for one in _ports(topology) if {one.name, one.nic, _device(one.name)} & scope.ends]
    for what, names in (
        ("itself", [one.name for one in ports if not one.efa]),
        ("efa", [one.name for one in ports if one.efa]),
    ):
        step = _PORTS_PER_PROCESS[scope.effort]
        for start in range(0, len(names), step):
            yield _probe(what, scope.effort, names[start : start + step], ("host", "nic"))
    if scope.effort == "quick":
        return
    if not any(finding.code == "gdr-disabled" for finding in report.findings):
        for port, gpu in _gpus(topology, [one for one in ports if not one.efa]):
            owned = ["owned"] if scope.owned else []
            yield _probe("gpu", scope.effort, [port, gpu, topology.by_name[gpu].id, *owned], ("gpu", "nic"))
    for peer in scope.peers:
        yield _probe("tcp", scope.effort, [peer], ("host", "netdev"))
        for number, one in enumerate(one for one in ports if not one.efa):
            yield _probe("peer", scope.effort, [peer, one.name, str(_FIRST_PORT + number)], ("nic", "port"))


def _probe(what: str, effort: Effort, targets: Sequence[str], kinds: tuple[str, ...]) -> Probe:
    count = len(targets) if what in ("itself", "efa") else 1
    seconds = _STARTING + (4.0 if what == "tcp" else count * _EXPECTED[effort])
    longest = 2 * _TCP_SECONDS if what == "tcp" else count * 2 * _LONGEST[effort]
    most = 20 * GIB if what == "tcp" else count * _MESSAGES[effort] * SIZE
    return Probe(
        name="port_loopback",
        args=(what, effort, *targets),
        kinds=frozenset({kinds}),
        seconds=seconds,
        bytes=most,
        deadline=_STARTING + longest + 5,
    )


def _ports(topology: Topology) -> Iterator[_Port]:
    """Yield the hardware ports that are up. The rules report ports that are down."""
    for nic in nics(topology):
        for link in topology.links:
            if link.a == nic.device.id and link.kind == "port" and link.trained and link.b.startswith(f"{nic.name}/"):
                yield _Port(link.b, nic.device.id, link.grade == "efa")


def _gpus(topology: Topology, ports: Sequence[_Port]) -> Iterator[tuple[str, str]]:
    """Yield each GPU with its nearest port, as (port, GPU)."""
    names = {_device(one.name): one.name for one in reversed(ports)}
    gpus = [alias for one in topology.devices if one.kind == "gpu" for alias in one.aliases if alias.startswith("gpu")]
    for gpu in sorted(gpus, key=natural):
        nearest_ports = [names[nic.name] for nic, _ in nearest(topology, topology.by_name[gpu].id) if nic.name in names]
        if nearest_ports:
            yield nearest_ports[0], gpu


def _device(port: str) -> str:
    return port.partition("/")[0]


def writes(what: str, effort: str, *targets: str) -> Iterator[Record]:
    """Measure the targets; `what` selects the test.

    "itself": RDMA writes of ports to themselves. "gpu": the same from GPU memory; targets are port, GPU, its address,
    and "owned" if the caller owns the GPU. "peer": RDMA writes to a machine; targets are machine, port, TCP port.
    "efa": EFA ports to themselves. "tcp": TCP to a machine.
    """
    messages, seconds = _MESSAGES[effort], _LONGEST[effort]
    if what == "tcp":
        yield from iperf_run.rate(targets[0], _TCP_SECONDS)
    elif what == "efa":
        for device in map(_device, targets):
            yield from _watched(device, messages, partial(efa_run.rate, device, messages, seconds))
            if effort == "full":  # another tool measures it
                yield from efa_run.latency(device, seconds)
    else:
        for test in _tests(what, targets, messages, seconds):
            record = list(_watched(test.device, messages, partial(perftest_run.rate, test)))
            yield from record
            if effort == "full" and not test.peer and any(isinstance(one, Observation) for one in record):
                yield from perftest_run.latency(test)


def _tests(what: str, targets: Sequence[str], messages: int, seconds: float) -> Iterator[Test]:
    if what == "gpu":
        port, gpu, bus, *owned = targets
        yield Test(port, messages, seconds, gpu, bus, owned=bool(owned))
    elif what == "peer":
        peer, port, at = targets
        yield Test(port, messages, seconds, peer=peer, at=int(at))
    else:
        yield from (Test(port, messages, seconds) for port in targets)


def _watched(device: str, messages: int, measure: Callable[[Callable[[], None]], Iterator[Record]]) -> Iterator[Record]:
    """Yield the tool's records, the bytes moved, and the trained speeds of the links above the adapter meanwhile."""
    host = Live()
    try:
        folder = host.resolve(f"sys/class/infiniband/{device}") or ""
    except Unreadable:
        folder = ""
    samples = LinkSamples(host, folder)
    for record in measure(samples.sample):
        yield record
        if isinstance(record, Observation) and record.unit == "bytes_per_second":
            total = float(messages * SIZE)
            yield Observation(
                about=device, quantity="bytes_moved", unit="bytes", value=total, at=record.at, evidence=record.evidence
            )
            if total / record.value >= _SHORTEST:  # during a shorter run a sample may fall before or after it
                yield from samples.observations(f"{record.value / 1e9:.1f} GB/s through {device}")
