"""What a node does before it measures: diagnose itself, check that it is idle, list its ports."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from ...exporters.formats.json import as_json
from ...models.graph.path_types import nics
from ...models.report import Report
from ...probes.fabric.lldp import neighbours
from ...probes.host.host import Host, Unreadable
from ...probes.measure.external_tools import found
from ...probes.measure.network.addresses import addresses_of, interface_of
from ..inputs import resolve
from ..inputs.site_file import site
from ..measuring.idle import busy_reason
from ..measuring.session import NOTHING
from ..pipeline.diagnose import diagnose
from .messages import Prepared, Rail


class NodeOptions(Struct, frozen=True, kw_only=True):
    """How a node takes part."""

    rails: tuple[str, ...] = ()  # none: all RDMA ports if perftest is installed, else the device to the coordinator
    force: bool = False  # measure although the node is busy
    owner: str | None = None  # "slurm:4711": the caller's own job
    site: str | None = None


def prepared(options: NodeOptions, local: str) -> Prepared:
    """The report of this node, its rails, and why it must not measure. `local`: its address to the coordinator."""
    target = resolve.of("/", ())
    _, report = diagnose(target.host, target.readers, target.session(NOTHING).probes, site(options.site))
    busy = busy_reason(report, target.host, options.owner)
    heard = neighbours()
    rails = tuple(_heard(one, heard) for one in _rails(report, target.host, options.rails, local))
    return Prepared(
        rails=rails,
        report=as_json(report).encode(),
        busy=busy,
        aliases=tuple(_aliases(report, target.host)),
    )


def _heard(rail: Rail, heard: Mapping[str, tuple[str, str | None]]) -> Rail:
    switch, port = heard.get(rail.name, (None, None))
    return replace(rail, switch=switch, socket=port)


def _rails(report: Report, host: Host, wanted: Sequence[str], local: str) -> Iterator[Rail]:
    """The rails that are wanted and that this node has."""
    ports = {one.name: one for one in _rdma_ports(report, local)} if found("ib_write_bw") else {}
    for name in wanted or [*ports]:
        if name in ports:
            yield ports[name]
        elif addresses := addresses_of(name):
            yield Rail(name=name, address=addresses[0], rate=_speed(host, name))
    if not wanted and not ports:
        name = interface_of(local) or "network"
        yield Rail(name=name, address=local, rate=_speed(host, name))


def _rdma_ports(report: Report, local: str) -> Iterator[Rail]:
    """The RDMA ports that are up, without those of EFA, which perftest does not support."""
    for nic in nics(report.topology):
        for link in report.topology.links:
            own = link.a == nic.device.id and link.kind == "port" and link.b.startswith(f"{nic.name}/")
            if own and link.trained and link.grade != "efa":
                yield Rail(name=link.b, address=local, tool="perftest", rate=link.trained)


def _speed(host: Host, name: str) -> float | None:
    """The nominal bytes per second of a network device. None: its driver does not know it."""
    try:
        megabits = int(host.read(f"sys/class/net/{name}/speed") or 0)
    except (ValueError, Unreadable):
        return None
    return megabits * 1e6 / 8 if megabits > 0 else None


def _aliases(report: Report, host: Host) -> Iterator[str]:
    """Further names of this node in topologies: its full host name, and the instance ID (EC2, Nitro)."""
    name = socket.gethostname()
    yield from dict.fromkeys(one for one in (name, name.partition(".")[0], report.node or "") if one)
    with suppress(Unreadable):
        asset = host.read("sys/class/dmi/id/board_asset_tag") or ""
        if asset.startswith("i-"):
            yield asset
