"""What NICs move: each to itself, which proves the adapter and its PCIe links; where it is asked, to other machines.

`plan` says which; `writes` runs in a child. Limits: docs/operate/probes.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from ....models.facts.records import Observation, Record
from ....models.facts.units import GIB
from ....models.graph.path_types import natural, nearest, nics
from ....models.graph.topology import Topology
from ....models.report import Report
from ...host.host import Unreadable
from ...host.live import Live
from ...pcie.speed_samples import LinkSamples
from ..probe import Effort, Probe, Wanted
from . import efa as efa_run
from . import iperf as iperf_run
from . import perftest as perftest_run
from .perftest import SIZE, Test

_MESSAGES = {"quick": 2_000, "full": 20_000}  # 40 ms and 0.4 s at 400 Gb/s
_EXPECTED = {"quick": 0.4, "full": 1.5}  # seconds of a port, most of them to open the device twice
_LONGEST = {"quick": 5.0, "full": 15.0}  # seconds of a tool: a port of 10 Gb/s takes 2 and 17
_TOGETHER = {"quick": 4, "full": 1}  # ports of one process: of 32 what fits into a budget is measured
_STARTING = 0.3
_SEEN = 0.2  # seconds: several looks at the links (measuring_tools.py)
_FIRST_PORT = 18515  # perftest's own; further ports of this machine go to the next ones of the peer
_TCP_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class _Port:
    name: str  # "mlx5_0/1"
    nic: str  # its function, "0000:1a:00.0"
    efa: bool


def plan(report: Report, wanted: Wanted) -> Iterator[Probe]:
    """The active RDMA ports, at the quick level a few in one process; at "full" each in its own, and to peers."""
    if wanted.effort == "passive":
        return
    topology = report.topology
    ports = [one for one in _ports(topology) if {one.name, one.nic, _device(one.name)} & wanted.ends]
    for what, several in (
        ("itself", [one.name for one in ports if not one.efa]),
        ("efa", [one.name for one in ports if one.efa]),
    ):
        step = _TOGETHER[wanted.effort]
        for start in range(0, len(several), step):
            yield _probe(what, wanted.effort, several[start : start + step], ("host", "nic"))
    if wanted.effort == "quick":
        return
    if not any(finding.code == "gdr-disabled" for finding in report.findings):
        for port, gpu in _gpus(topology, [one for one in ports if not one.efa]):
            owned = ["owned"] if wanted.owned else []
            yield _probe("gpu", wanted.effort, [port, gpu, topology.by_name[gpu].id, *owned], ("gpu", "nic"))
    for peer in wanted.peers:
        yield _probe("tcp", wanted.effort, [peer], ("host", "netdev"))
        for number, one in enumerate(one for one in ports if not one.efa):
            yield _probe("peer", wanted.effort, [peer, one.name, str(_FIRST_PORT + number)], ("nic", "port"))


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
    """Ports of hardware that are up: what is down has nothing to measure, and the rules tell of it."""
    for nic in nics(topology):
        for link in topology.links:
            if link.a == nic.device.id and link.kind == "port" and link.trained and link.b.startswith(f"{nic.name}/"):
                yield _Port(link.b, nic.device.id, link.grade == "efa")


def _gpus(topology: Topology, ports: Sequence[_Port]) -> Iterator[tuple[str, str]]:
    """Each GPU with the port that is nearest to it."""
    names = {_device(one.name): one.name for one in reversed(ports)}
    gpus = [alias for one in topology.devices if one.kind == "gpu" for alias in one.aliases if alias.startswith("gpu")]
    for gpu in sorted(gpus, key=natural):
        near = [names[nic.name] for nic, _ in nearest(topology, topology.by_name[gpu].id) if nic.name in names]
        if near:
            yield near[0], gpu


def _device(port: str) -> str:
    return port.partition("/")[0]


def writes(what: str, effort: str, *targets: str) -> Iterator[Record]:
    """RDMA writes of ports to "itself", from the memory of a "gpu" (port, GPU, its address; "owned" where it is the
    caller's), or to a "peer" (machine, port, TCP port); an "efa" to itself; "tcp" to a machine.
    """
    messages, seconds = _MESSAGES[effort], _LONGEST[effort]
    if what == "tcp":
        yield from iperf_run.rate(targets[0], _TCP_SECONDS)
    elif what == "efa":
        for device in map(_device, targets):
            yield from _watched(device, messages, partial(efa_run.rate, device, messages, seconds))
            if effort == "full":  # by another tool
                yield from efa_run.latency(device, seconds)
    else:
        for test in _tests(what, targets, messages, seconds):
            said = list(_watched(test.device, messages, partial(perftest_run.rate, test)))
            yield from said
            if effort == "full" and not test.peer and any(isinstance(one, Observation) for one in said):
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


def _watched(device: str, messages: int, ask: Callable[[Callable[[], None]], Iterator[Record]]) -> Iterator[Record]:
    """What a tool says, what it moved, and how the links above the adapter were trained meanwhile."""
    host = Live()
    try:
        folder = host.resolve(f"sys/class/infiniband/{device}") or ""
    except Unreadable:
        folder = ""
    samples = LinkSamples(host, folder)
    for said in ask(samples.sample):
        yield said
        if isinstance(said, Observation) and said.unit == "bytes_per_second":
            whole = float(messages * SIZE)
            yield Observation(
                about=device, quantity="bytes_moved", unit="bytes", value=whole, at=said.at, evidence=said.evidence
            )
            if whole / said.value >= _SEEN:  # else a look may have fallen before and behind it
                yield from samples.observations(f"{said.value / 1e9:.1f} GB/s through {device}")
