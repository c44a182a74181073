"""Logs of NCCL and RCCL (NCCL_DEBUG=INFO, or warnings only): hardware that the library detects, and its choices.

Source of the log lines: NVIDIA/nccl src/misc/param.cc, src/init.cc, src/graph/topo.cc, src/transport,
src/include/shm.h, versions 2.4 to 2.30. Ranks are GPUs of their hosts. Facts are about the host of the first line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....models.catalog.settings import settings
from ....models.facts.gpu import Gpu
from ....models.facts.machine import Nccl, Port, Rdma, Setting, Transport
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, NotChecked, Record
from ..core.part import Part
from ..host import nccl_graph
from ..host.nccl_graph import address
from .log_text import LogText
from .nccl_failures import failures, unexplained
from .nccl_networks import CHANNEL, HOST, NETWORK, PORTS, networks, uses_verbs

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
_VARIABLE = re.compile(r"(?P<name>NCCL_[A-Z0-9_]{1,60}) set (?:by environment )?to (?P<value>\S+)[ \t]*$", re.MULTILINE)
_VERSION = re.compile(r"NCCL version (?P<version>\d+\.\d+(?:\.\d+)?)(?:\+(?:cuda|hip)(?P<cuda>\d+\.\d+))?\b")
_RANK = re.compile(
    r"comm 0x[0-9a-f]+ rank (?P<rank>\d+) n[Rr]anks (?P<ranks>\d+) cudaDev (?P<cuda>\d+)"
    r"(?: nvmlDev (?P<nvml>\d+))?(?: busId (?P<bus>[0-9a-f]{4,12}))? "
)
_PORT = re.compile(r"\[(?P<number>\d{1,4})\](?P<device>[\w.-]+):(?P<port>\d+)/(?P<layer>IB|RoCE)\b")
# "NET/Socket : GPU Direct RDMA Disabled for HCA 0 'eth0'" is about a network device without RDMA.
_DIRECT = re.compile(r"(?<!NET/Socket : )GPU Direct RDMA (?P<state>Enabled|Disabled) for HCA \d+ '(?P<device>[\w.-]+)")
_LAYERS = {"IB": "InfiniBand", "RoCE": "Ethernet"}
_MOST_PAIRS = 4096


def read(part: Part) -> Iterator[Record]:
    """The library, its variables, GPUs and network devices, the transports between GPUs of the host, and failures."""
    log = LogText(part)
    yield from _library(log)
    yield from _variables(log)
    gpus = dict(_ranks(log))
    yield from gpus.values()
    yield from _devices(log)
    yield from _transports(log, {rank: gpu.key for rank, gpu in gpus.items()})
    yield from failures(log)
    yield from unexplained(log)
    yield from networks(log)
    places = {gpu.address: gpu.key for gpu in gpus.values() if gpu.address}
    yield from nccl_graph.read(log.text, log.cite, places, _numbers(log))


def _library(log: LogText) -> Iterator[Nccl]:
    cites: dict[str, Evidence] = {}
    version, network, rank = _VERSION.search(log.text), NETWORK.search(log.text), _RANK.search(log.text)
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


def _variables(log: LogText) -> Iterator[Record]:
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
        if name == "NCCL_IB_DISABLE" and several.keys() - {"0"} and uses_verbs(log):
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


def _ranks(log: LogText) -> Iterator[tuple[int, Gpu]]:
    """The GPU of each rank on the first host."""
    first = None
    for found in _RANK.finditer(log.text):
        line = log.cite(found)
        host = named[1] if (named := HOST.search(line.text)) else None
        first = first or host
        rank, number = _count(found["rank"]), _count(found["nvml"] or found["cuda"])
        if host == first and rank is not None and number is not None:
            place = address(int(found["bus"], 16)) if found["bus"] else None
            yield rank, Gpu(key=f"gpu{number}", address=place, cites={"address": line} if place else {})


def _devices(log: LogText) -> Iterator[Record]:
    """RDMA devices and ports that NCCL uses, and whether all ranks use GPU memory with them (GPUDirect RDMA)."""
    ports: dict[str, Port] = {}
    direct: dict[str, tuple[bool, Evidence]] = {}
    for found in PORTS.finditer(log.text):
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


def _numbers(log: LogText) -> dict[int, str]:
    """The ports of the first list, by the numbers that NCCL gives them: its graph has only these."""
    found = PORTS.search(log.text)
    ports = _PORT.finditer(found["ports"]) if found else ()
    return {int(port["number"]): f"{port['device']}/{port['port']}" for port in ports}


def _transports(log: LogText, gpus: dict[int, str]) -> Iterator[Transport]:
    """The transports between GPUs of the first host. The log does not show the hosts of other ranks."""
    transports: dict[str, dict[str, Evidence]] = {}
    known = {str(rank): key for rank, key in gpus.items()}
    for found in CHANNEL.finditer(log.text):
        one, two, via = found.groups()
        via = "SHM/direct" if " " in via else via
        if one in known and two in known and one != two and len(transports) < _MOST_PAIRS:
            pair = "-".join(sorted((known[one], known[two]), key=lambda name: int(name[3:])))
            several = transports.setdefault(pair, {})
            if via not in several:
                several[via] = log.cite(found)
    for pair, several in transports.items():
        yield Transport(key=pair, via=tuple(several), cites={"via": next(iter(several.values()))})


def _count(digits: str) -> int | None:
    return int(digits) if len(digits) < 7 else None
