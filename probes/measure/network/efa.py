"""libfabric's tools on an EFA device: fi_rma_bw (fabtests) for the rate, fi_pingpong for the latency.

Both ends are one device, and libfabric would take shared memory between them: it is forbidden to
(FI_EFA_ENABLE_SHM_TRANSFER, fi_efa(7)). Tables: libfabric, util/pingpong.c and fabtests/common/shared.c.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

from ....models.facts.reason import Reason
from ....models.facts.records import LOOPBACK, Evidence, Flow, NotChecked, Observation, Record
from ....models.facts.units import GIB, KIB, MIB
from ..external_tools import ToolFailed, absent, found, version
from .client_server import both_ends, free_port

_ENVIRONMENT = {"FI_EFA_ENABLE_SHM_TRANSFER": "0"}
_SMALL = 8  # bytes of a message whose latency is measured
_TRIES = 1000
_ROW = re.compile(
    r"\s*(?P<size>\d{1,9})(?P<unit>[kmg]?)\s+\S+\s+=?\S+\s+\S+\s+[0-9.]{1,12}s"
    r"\s+(?P<rate>\d{1,9}\.\d{1,6})\s+(?P<latency>\d{1,9}\.\d{1,6})\s+[0-9.]{1,12}\s*"
)
_UNITS = {"": 1, "k": KIB, "m": MIB, "g": GIB}


def rate(
    device: str, messages: int, seconds: float, watch: Callable[[], None] | None = None, provider: str = "efa"
) -> Iterator[Record]:
    """What RDMA writes of 1 MiB reach from the device to itself."""
    port = free_port()
    options = ["-o", "write", "-S", str(MIB), "-I", str(messages), f"-E={port}"]
    yield from _said("fi_rma_bw", device, provider, options, options, port, seconds, "rate", watch)


def latency(device: str, seconds: float, provider: str = "efa") -> Iterator[Record]:
    """How long a small message takes, one way."""
    port = free_port()
    options = ["-S", str(_SMALL), "-I", str(_TRIES)]
    server, client = [*options, "-B", str(port)], [*options, "-P", str(port)]
    yield from _said("fi_pingpong", device, provider, server, client, port, seconds, "latency")


def _said(
    tool: str,
    device: str,
    provider: str,
    server: list[str],
    client: list[str],
    port: int,
    seconds: float,
    quantity: str,
    watch: Callable[[], None] | None = None,
) -> Iterator[Record]:
    program = found(tool)
    if program is None:
        yield absent(tool, "port_loopback", device)
        return
    domain = ["-d", f"{device}-rdm"] if provider == "efa" else []  # as fi_info calls it
    command = [program, "-p", provider, "-e", "rdm", *domain]
    try:
        commands = [*command, *server], [*command, *client, "127.0.0.1"]
        text = both_ends(*commands, port, seconds, _ENVIRONMENT, watch)
    except ToolFailed as failed:
        yield NotChecked(what="port_loopback", subject=device, reason=failed.reason, detail=str(failed))
        return
    info = found("fi_info")
    told = f"{version(info) if info else 'libfabric'}, {tool} {' '.join(client)}"
    said = list(rows(text, device, told, quantity))
    yield from said
    if not said:
        yield NotChecked(
            what="port_loopback",
            subject=device,
            reason=Reason.UNREADABLE,
            path=tool,
            detail="nothing that it printed is a result",
        )


def rows(text: str, device: str, told: str, quantity: str) -> Iterator[Observation]:
    """The "rate" or the "latency" of each row of a table."""
    for line in text.splitlines():
        row = _ROW.fullmatch(line)
        if row is None:
            continue
        size = int(row["size"]) * _UNITS[row["unit"]]
        is_rate = quantity == "rate"
        value = float(row["rate"]) * 1e6 if is_rate else float(row["latency"]) * 1e-6
        if value:
            yield Observation(
                about=Flow(LOOPBACK, ("host", device), None if is_rate else size),
                quantity="hca_loopback" if is_rate else "latency",
                unit="bytes_per_second" if is_rate else "seconds",
                value=value,
                at=time.time(),
                busy=True,
                evidence=Evidence(told, line.strip()),
            )
