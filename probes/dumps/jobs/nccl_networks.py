"""What NCCL sends over between nodes, in its log: RDMA devices, host memory in front of them, or TCP sockets.

Source of the log lines: NVIDIA/nccl src/init.cc, src/transport/net_ib.cc and net_socket.cc; aws/aws-ofi-nccl
src/nccl_ofi_net.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....models.facts.machine import NcclFailure
from ....models.facts.records import NotChecked
from .log_text import LogText

HOST = re.compile(r"(?<![\w.-])([\w.-]{1,253})(?::\d+:\d+)? \[\d+\] NCCL INFO ")
NETWORK = re.compile(r"Using network (?P<network>[^\n]+)")
# Until 2.7, NCCL writes "Ring" for "Channel", and a sentence instead of "SHM".
CHANNEL = re.compile(
    r"(?:(?:Channel|Ring) \d+(?:/\d+)? ?: |^[ \t]*)(\d+)\[\w+\] -> (\d+)\[\w+\](?: \[(?:send|receive)\])? "
    r"via (direct shared memory|\S+)",
    re.MULTILINE,
)
PORTS = re.compile(r"NET/IB ?: Using (?P<ports>[^\n]*)")
# "comm 0x55 rank 0 nRanks 16 nNodes 2": communicators of several nodes
_NODES = re.compile(r" n[Nn]odes (?P<nodes>\d{1,6})\b")
_PROVIDER = re.compile(r"NET/OFI [Ss]elected [Pp]rovider is (?P<network>[\w;.-]{2,40})")
_BOOTSTRAP = re.compile(r"NET/Socket ?: Using \[0\](?P<network>[\w.-]{1,20})")
_SLOW = ("Socket", "tcp", "sockets", "udp", "net")  # networks and providers of libfabric without RDMA
_HOW = "keep the lines with nNodes and with 'via': NCCL_DEBUG=INFO"


def uses_verbs(log: LogText) -> bool:
    """Whether all communicators use the RDMA devices. Logs that are cut name the devices, but not the choice."""
    chosen = {found["network"].strip() for found in NETWORK.finditer(log.text)}
    return chosen == {"IB"} if chosen else PORTS.search(log.text) is not None


def networks(log: LogText) -> Iterator[NcclFailure | NotChecked]:
    """Whether the library sends between nodes over TCP sockets, or by RDMA from host memory. A gap, if it would use
    sockets and the log does not show the number of nodes.
    """
    channels = list(CHANNEL.finditer(log.text))
    yield from _host_memory(log, channels)
    found = next((one for one in channels if one[3].startswith("NET/Socket")), None)
    chosen = [*NETWORK.finditer(log.text), *_PROVIDER.finditer(log.text)]
    slow = chosen[0] if chosen and all(one["network"].startswith(_SLOW) for one in chosen) else None
    if found is None and _has_several_nodes(log):
        found = slow
    if found:
        line = log.cite(found)
        yield NcclFailure(key="sockets", error="TCP sockets", text=line.text, count=1, cites={"text": line})
        return
    first = slow or (None if chosen or PORTS.search(log.text) else _BOOTSTRAP.search(log.text))
    if first and not channels and not _NODES.search(log.text):
        why = "between nodes NCCL would use sockets; the log does not show the number of nodes"
        yield log.part.gap(log.cite(first).source, why, "Transport", how=_HOW)


def _host_memory(log: LogText, channels: list[re.Match[str]]) -> Iterator[NcclFailure]:
    received = [one for one in channels if one[3].startswith("NET/IB") and "[receive]" in one[0]]
    if received and not any("GDRDMA" in one[3] for one in received):
        line = log.cite(received[0])
        direct = any("GDRDMA" in one[3] for one in channels)
        key = "host memory on one side" if direct else "host memory"
        yield NcclFailure(key=key, error=received[0][3], text=line.text, count=len(received), cites={"text": line})


def _has_several_nodes(log: LogText) -> bool:
    """Whether a communicator has several nodes, or the provider of libfabric was chosen on several hosts."""
    if any(int(one["nodes"]) > 1 for one in _NODES.finditer(log.text)):
        return True
    lines = (log.cite(one).text for one in _PROVIDER.finditer(log.text))
    return len({found[1] for line in lines if (found := HOST.search(line))}) > 1
