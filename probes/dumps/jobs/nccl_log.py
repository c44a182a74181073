"""Logs of NCCL and RCCL (NCCL_DEBUG=INFO, or warnings only): hardware that the library detects, and its choices.

Source of the log lines: NVIDIA/nccl src/misc/param.cc, src/init.cc, src/graph/topo.cc, src/transport,
src/include/shm.h, versions 2.4 to 2.30. Ranks are GPUs of their hosts. Facts are about the host of the first line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from ....models.catalog.log_messages import KERNEL, PROGRAMS
from ....models.catalog.settings import settings
from ....models.facts.gpu import Gpu
from ....models.facts.machine import Nccl, NcclFailure, Port, Rdma, Setting, Transport
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, NotChecked, Record
from ...kernel_log.messages import catalog, find_messages
from ..core.part import Part
from ..host import nccl_graph
from ..host.nccl_graph import address

BEGIN = (
    r"^(?:[^N\n]{0,160}N){1,8}?CCL(?: (?:INFO|WARN|version(?! \S{1,40} compiled)) "
    r"|_[A-Z0-9_]{1,60} set (?:by environment )?to )"
)
# Lines without "host:pid:tid [0] NCCL INFO", and the printed graph: the system, trees and rings.
ANY_LINE = (
    r"^[ \t]*(?:(?:Channel|Ring) \d+(?:/\d+)? ?: (?:\d+\[\w+\] -> |[ \d]{3,}$)|Trees \[\d+\] |NET/(?:IB|Socket|OFI) ?: "
    r"|\d+\[\w+\] -> \d+\[\w+\] \[(?:send|receive)\] via \S"
    r"|Using network \S|comm 0x[0-9a-f]+ rank \d|GPU Direct RDMA (?:Enabled|Disabled) for |=== System : maxBw"
    r"|[+ ]{1,60}(?:PCI|NVL|NET|SYS|QPI|LOC)\[[0-9.]{1,8}\] - |CPU/[0-9A-F]{1,4} \(\d|Pattern \d, crossNic"
    r"|\d+ coll channels|NCCL_[A-Z0-9_]{1,60} set by environment to )"
)
_HOST = re.compile(r"(?<![\w.-])([\w.-]{1,253})(?::\d+:\d+)? \[\d+\] NCCL INFO ")
_VARIABLE = re.compile(r"(?P<name>NCCL_[A-Z0-9_]{1,60}) set (?:by environment )?to (?P<value>\S+)[ \t]*$", re.MULTILINE)
_VERSION = re.compile(r"NCCL version (?P<version>\d+\.\d+(?:\.\d+)?)(?:\+(?:cuda|hip)(?P<cuda>\d+\.\d+))?\b")
_NETWORK = re.compile(r"Using network (?P<network>[^\n]+)")
_RANK = re.compile(
    r"comm 0x[0-9a-f]+ rank (?P<rank>\d+) n[Rr]anks (?P<ranks>\d+) cudaDev (?P<cuda>\d+)"
    r"(?: nvmlDev (?P<nvml>\d+))?(?: busId (?P<bus>[0-9a-f]{4,12}))? "
)
# Until 2.7, NCCL writes "Ring" for "Channel", and a sentence instead of "SHM".
_CHANNEL = re.compile(
    r"(?:(?:Channel|Ring) \d+(?:/\d+)? ?: |^[ \t]*)(\d+)\[\w+\] -> (\d+)\[\w+\](?: \[(?:send|receive)\])? "
    r"via (direct shared memory|\S+)",
    re.MULTILINE,
)
_PORTS = re.compile(r"NET/IB ?: Using (?P<ports>[^\n]*)")
_PORT = re.compile(r"\[(?P<number>\d{1,4})\](?P<device>[\w.-]+):(?P<port>\d+)/(?P<layer>IB|RoCE)\b")
# "NET/Socket : GPU Direct RDMA Disabled for HCA 0 'eth0'" is about a network device without RDMA.
_DIRECT = re.compile(r"(?<!NET/Socket : )GPU Direct RDMA (?P<state>Enabled|Disabled) for HCA \d+ '(?P<device>[\w.-]+)")
_WARNING = re.compile(
    r"NCCL WARN [^\n]{0,300}?(?:"
    r"\b(?:ibv_reg_\w{0,9}mr\w{0,9}|fi_mr_reg\w{0,9}) failed[^\n]{0,200}?(?P<registration>Cannot allocate memory)"
    r"|(?P<shared>posix_fallocate|shared memory segment|failed to extend /dev/shm)"
    r"|\bibv_modify_qp failed with (?:error )?(?P<pair>[^\n]+)"
    r"|Got completion [^\n]{0,200}?(?P<completion>(?:status=|error )\d+)"
    r"|Cuda failure [^\n']{0,99}'(?P<cuda>[^\n']+)"
    r"|(?P<provider>NET/OFI (?:Could not find any optimal provider|Only EFA provider is supported|"
    r"No eligible providers were found|Unable to find a protocol that worked))"
    r"|(?P<connection>Connection (?:refused|reset by peer|timed out|closed by remote peer)|No route to host)"
    r")[^\n]*"
)
_ANY_WARNING = re.compile(r"NCCL WARN (?P<text>[^\n]{1,300})")
# "NCCL INFO init.cc:1393 -> 3": a function returned an error. The warning that tells why may be cut off.
_RETURNED = re.compile(r"NCCL INFO (?P<text>[\w./-]{3,60}\.(?:cc|cu|h|c):\d{1,5} -> [1-7]\b[^\n]{0,60})")
# Warnings of healthy logs: the library asks for what a virtual machine, or a host without InfiniBand, does not have.
_HARMLESS = re.compile(r"Could not find real path|KV Convert to int|libibverbs|No device found|libnccl-net|No plugin")
# "comm 0x55 rank 0 nRanks 16 nNodes 2": communicators of several nodes
_NODES = re.compile(r" n[Nn]odes (?P<nodes>\d{1,6})\b")
_KINDS = {
    "registration": "memory registration",
    "shared": "shared memory",
    "pair": "queue pair",
    "completion": "completion",
    "cuda": "CUDA",
    "connection": "connection",
    "provider": "provider",
}
_SIZE = re.compile(r"\(size (\d{1,15})\)| to (\d{1,15}) bytes")
_NO_SPACE = "No space left on device"
_LAYERS = {"IB": "InfiniBand", "RoCE": "Ethernet"}
_MOST_PAIRS = 4096
_MOST_WARNINGS = 64  # warnings that are compared with the catalog


def read(part: Part) -> Iterator[Record]:
    """The library, its variables, GPUs and network devices, the transports between GPUs of the host, and failures."""
    log = _Log(part)
    yield from _library(log)
    yield from _variables(log)
    gpus = dict(_ranks(log))
    yield from gpus.values()
    yield from _devices(log)
    yield from _transports(log, {rank: gpu.key for rank, gpu in gpus.items()})
    yield from _failures(log)
    yield from _unexplained(log)
    yield from _sockets(log)
    places = {gpu.address: gpu.key for gpu in gpus.values() if gpu.address}
    yield from nccl_graph.read(log.text, log.cite, places, _numbers(log))


class _Log:
    """The text of a part, with line numbers for matches."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.text = part.text
        self._seen = (0, 0)  # a position in the text, and its line number

    def cite(self, found: re.Match[str]) -> Evidence:
        """The line that contains the end of a match."""
        place = max(found.start(), found.end() - 1)
        start = self.text.rfind("\n", 0, place) + 1
        since, number = self._seen if self._seen[0] <= start else (0, 0)
        number += self.text.count("\n", since, start)
        self._seen = start, number
        end = self.text.find("\n", start)
        return self.part.cite(number, self.text[start : end if end >= 0 else None])


def _library(log: _Log) -> Iterator[Nccl]:
    cites: dict[str, Evidence] = {}
    version, network, rank = _VERSION.search(log.text), _NETWORK.search(log.text), _RANK.search(log.text)
    for field, found in (("version", version), ("network", network), ("ranks", rank)):
        if found:
            cites[field] = log.cite(found)
    if cites:
        yield Nccl(
            key="nccl",
            version=version["version"] if version else None,
            cuda=version["cuda"] if version else None,
            network=network["network"].strip() if network else None,
            ranks=_count(rank["ranks"]) if rank else None,
            cites=cites,
        )


def _variables(log: _Log) -> Iterator[Record]:
    """The effective values of variables in the catalog. If ranks differ: "0, 1".

    With NCCL_IB_DISABLE, NCCL opens no RDMA device (ncclIbInit in src/transport/net_ib.cc). So a log that also uses
    "IB" is of several runs, and which of them counts is unknown.
    """
    values: dict[str, dict[str, Evidence]] = {}
    for found in _VARIABLE.finditer(log.text):
        several = values.setdefault(found["name"], {}) if found["name"] in settings() else {}
        value = found["value"].removesuffix(".")
        if value not in several:
            several[value] = log.cite(found)
    for name, several in values.items():
        cite = next(iter(several.values()))
        if name == "NCCL_IB_DISABLE" and several.keys() - {"0"} and _uses_verbs(log):
            yield NotChecked(
                what="Setting.value",
                subject=name,
                reason=Reason.OTHER,
                path=cite.source,
                detail=f"{name}={', '.join(several)}, but NCCL uses the RDMA devices in the same log",
                how="keep the log of one run",
            )
            continue
        yield Setting(key=name, value=", ".join(several), cites={"value": cite})


def _uses_verbs(log: _Log) -> bool:
    """Whether all communicators use the RDMA devices. Logs that are cut name the devices, but not the choice."""
    chosen = {found["network"].strip() for found in _NETWORK.finditer(log.text)}
    return chosen == {"IB"} if chosen else _PORTS.search(log.text) is not None


def _ranks(log: _Log) -> Iterator[tuple[int, Gpu]]:
    """The GPU of each rank on the first host."""
    first = None
    for found in _RANK.finditer(log.text):
        line = log.cite(found)
        host = named[1] if (named := _HOST.search(line.text)) else None
        first = first or host
        rank, number = _count(found["rank"]), _count(found["nvml"] or found["cuda"])
        if host == first and rank is not None and number is not None:
            place = address(int(found["bus"], 16)) if found["bus"] else None
            yield rank, Gpu(key=f"gpu{number}", address=place, cites={"address": line} if place else {})


def _devices(log: _Log) -> Iterator[Record]:
    """RDMA devices and ports that NCCL uses, and whether all ranks use GPU memory with them (GPUDirect RDMA)."""
    ports: dict[str, Port] = {}
    direct: dict[str, tuple[bool, Evidence]] = {}
    for found in _PORTS.finditer(log.text):
        for port in _PORT.finditer(found["ports"]):
            key = f"{port['device']}/{port['port']}"
            if key not in ports:
                layer = _LAYERS[port["layer"]]
                ports[key] = Port(
                    key=key, device=port["device"], link_layer=layer, cites={"link_layer": log.cite(found)}
                )
    for found in _DIRECT.finditer(log.text):
        enabled = found["state"] == "Enabled"
        if found["device"] not in direct or (direct[found["device"]][0] and not enabled):
            direct[found["device"]] = enabled, log.cite(found)
    for device in dict.fromkeys([*(str(port.device) for port in ports.values()), *direct]):
        if device in direct:
            enabled, line = direct[device]
            yield Rdma(key=device, gpu_direct=enabled, cites={"gpu_direct": line})
        else:
            yield Rdma(key=device)
    yield from ports.values()


def _numbers(log: _Log) -> dict[int, str]:
    """The ports of the first list, by the numbers that NCCL gives them: its graph has only these."""
    found = _PORTS.search(log.text)
    ports = _PORT.finditer(found["ports"]) if found else ()
    return {int(port["number"]): f"{port['device']}/{port['port']}" for port in ports}


def _transports(log: _Log, gpus: dict[int, str]) -> Iterator[Transport]:
    """The transports between GPUs of the first host. The log does not show the hosts of other ranks."""
    transports: dict[str, dict[str, Evidence]] = {}
    known = {str(rank): key for rank, key in gpus.items()}
    for found in _CHANNEL.finditer(log.text):
        one, two, via = found.groups()
        via = "SHM/direct" if " " in via else via
        if one in known and two in known and one != two and len(transports) < _MOST_PAIRS:
            pair = "-".join(sorted((known[one], known[two]), key=lambda name: int(name[3:])))
            several = transports.setdefault(pair, {})
            if via not in several:
                several[via] = log.cite(found)
    for pair, several in transports.items():
        yield Transport(key=pair, via=tuple(several), cites={"via": next(iter(several.values()))})


def _failures(log: _Log) -> Iterator[NcclFailure]:
    """One record per kind of failure, with its first line. Error and size come from the first line that has them."""
    counts, first, sizes, errors = Counter[str](), dict[str, Evidence](), dict[str, int](), dict[str, str]()
    for found in _WARNING.finditer(log.text):
        group = found.lastgroup or ""
        kind = _KINDS[group]
        counts[kind] += 1
        if kind not in first:
            first[kind] = log.cite(found)
        if group != "shared":
            errors.setdefault(kind, found[group].strip())
            continue
        if _NO_SPACE in found[0]:
            errors[kind] = _NO_SPACE
        if size := _SIZE.search(found[0]):
            sizes.setdefault(kind, int(size[1] or size[2]))
    for kind, line in first.items():
        yield NcclFailure(
            key=kind,
            error=errors.get(kind),
            size=sizes.get(kind),
            text=line.text,
            count=counts[kind],
            cites={"text": line},
        )


def _unexplained(log: _Log) -> Iterator[NcclFailure]:
    """The first warning that neither a kind of failure above nor a message of the catalog explains."""
    known = {found.start() for found in _WARNING.finditer(log.text)}
    lines = [found for found in _ANY_WARNING.finditer(log.text) if found.start() not in known]
    lines = [found for found in lines if not _HARMLESS.search(found["text"])][:_MOST_WARNINGS]
    if others := _alone(log, lines):
        line = log.cite(others[0])
        text = others[0]["text"].strip()
        yield NcclFailure(key="warning", error=text, text=line.text, count=len(others), cites={"text": line})


def _alone(log: _Log, lines: Sequence[re.Match[str]]) -> Sequence[re.Match[str]]:
    """The warnings that no message of the catalog explains. Of a log without any warning: the failed calls."""
    if _ANY_WARNING.search(log.text):
        return [found for found in lines if not find_messages(found[0], catalog(*KERNEL, *PROGRAMS))]
    return list(islice(_RETURNED.finditer(log.text), _MOST_WARNINGS))


def _sockets(log: _Log) -> Iterator[NcclFailure | NotChecked]:
    """Whether the library sends between nodes over TCP sockets, or by RDMA from host memory. A gap, if it would use
    sockets and the log does not show the number of nodes.
    """
    found = next((one for one in _CHANNEL.finditer(log.text) if one[3].startswith("NET/Socket")), None)
    received = [one for one in _CHANNEL.finditer(log.text) if one[3].startswith("NET/IB") and "[receive]" in one[0]]
    if received and not any("GDRDMA" in one[3] for one in received):
        line = log.cite(received[0])
        direct = any("GDRDMA" in one[3] for one in _CHANNEL.finditer(log.text))
        key = "host memory on one side" if direct else "host memory"
        yield NcclFailure(key=key, error=received[0][3], text=line.text, count=len(received), cites={"text": line})
    networks = list(_NETWORK.finditer(log.text))
    first = networks[0] if networks and all(one["network"].startswith("Socket") for one in networks) else None
    if found is None and any(int(one["nodes"]) > 1 for one in _NODES.finditer(log.text)):
        found = first
    if first and not found and not _NODES.search(log.text) and not _CHANNEL.search(log.text):
        line, why = log.cite(first), "between nodes NCCL would use sockets; the log does not show the number of nodes"
        how = "keep the lines with nNodes and with 'via': NCCL_DEBUG=INFO"
        where = line.source
        yield NotChecked(what="Transport", subject="node", reason=Reason.INCOMPLETE, path=where, detail=why, how=how)
    if found:
        line = log.cite(found)
        yield NcclFailure(key="sockets", error="TCP sockets", text=line.text, count=1, cites={"text": line})


def _count(digits: str) -> int | None:
    return int(digits) if len(digits) < 7 else None
