"""libfabric's tools on an EFA device: fi_rma_bw (fabtests) for the rate, fi_pingpong for the latency.

Both ends are the same device. FI_EFA_ENABLE_SHM_TRANSFER (fi_efa(7)) stops libfabric from using shared memory between
them. Output tables: libfabric, util/pingpong.c and fabtests/common/shared.c.
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
_SMALL = 8  # bytes of a message in the latency test
_TRIES = 1000
_ROW = re.compile(
    r"\s*(?P<size>\d{1,9})(?P<unit>[kmg]?)\s+\S+\s+=?\S+\s+\S+\s+[0-9.]{1,12}s"
    r"\s+(?P<rate>\d{1,9}\.\d{1,6})\s+(?P<latency>\d{1,9}\.\d{1,6})\s+[0-9.]{1,12}\s*"
)
_UNITS = {"": 1, "k": KIB, "m": MIB, "g": GIB}


def rate(
    device: str, messages: int, seconds: float, watch: Callable[[], None] | None = None, provider: str = "efa"
) -> Iterator[Record]:
    """Yield the rate of RDMA writes of 1 MiB from the device to itself."""
    port = free_port()
    options = ["-o", "write", "-S", str(MIB), "-I", str(messages), f"-E={port}"]
    yield from _measured("fi_rma_bw", device, provider, options, options, port, seconds, "rate", watch)


def latency(device: str, seconds: float, provider: str = "efa") -> Iterator[Record]:
    """Yield the one-way latency of a small message."""
    port = free_port()
    options = ["-S", str(_SMALL), "-I", str(_TRIES)]
    server, client = [*options, "-B", str(port)], [*options, "-P", str(port)]
    yield from _measured("fi_pingpong", device, provider, server, client, port, seconds, "latency")


def _measured(
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
    domain = ["-d", f"{device}-rdm"] if provider == "efa" else []  # the name that fi_info prints
    command = [program, "-p", provider, "-e", "rdm", *domain]
    try:
        commands = [*command, *server], [*command, *client, "127.0.0.1"]
        text = both_ends(*commands, port, seconds, _ENVIRONMENT, watch)
    except ToolFailed as failed:
        yield NotChecked(what="port_loopback", subject=device, reason=failed.reason, detail=str(failed))
        return
    info = found("fi_info")
    command_text = f"{version(info) if info else 'libfabric'}, {tool} {' '.join(client)}"
    observations = list(rows(text, device, command_text, quantity))
    yield from observations
    if not observations:
        yield NotChecked(
            what="port_loopback",
            subject=device,
            reason=Reason.UNREADABLE,
            path=tool,
            detail="its output contains no result",
        )


def rows(text: str, device: str, command_text: str, quantity: str) -> Iterator[Observation]:
    """Yield the "rate" or the "latency" of each row of a table. `command` is the evidence."""
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
                evidence=Evidence(command_text, line.strip()),
            )
