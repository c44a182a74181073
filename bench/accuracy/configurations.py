"""Topologies and flows for the rows of ../shared/facts/achievable.csv."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from linkgauge.models.facts.pcie_rates import rated, speed_of
from linkgauge.models.facts.records import Flow
from linkgauge.models.graph.topology import FABRIC, Device, Link, Topology

Row = Mapping[str, str]
NUMA, GPUS = Device("numa0", "numa"), tuple(Device(f"gpu{n}", "gpu") for n in range(16))
_NVLINK = {"NVLink2": (2, 25e9), "NVLink3": (3, 25e9), "NVLink4": (4, 25e9), "NVLink5": (5, 50e9)}
# Texts in rows that cannot be expressed as topology and flow, with the reason.
UNSTATED = {
    "4-GPU hives": "hives joined over PCIe: the source does not give the path of the ring between them",
    "host limited": "held back by the host: two of its four NICs give 14 GB/s, two give 23",
    "8xV100 tsa": "sum of two directions, by the source's own words: above the wire",
    "c5n.18xlarge": "one endpoint of libfabric with tagged messages: the tool's limit, not the link's",
    "EFA v1 allreduce": "collective between nodes; the two published runs differ by a third (57 and 78 GB/s)",
    "EFA v2 allreduce": "collective between nodes, reduced in the NVSwitches: above what the NICs carry",
    "EFA v4 allreduce": "collective between nodes",
    "Gen4 (capped cloud disk)": "the cloud caps its disks",
    "NDm A100 v4 8 drives": "the cloud caps its disks",
    "RTX6k build": "RAID 10 of disks that are not named",
}

# Machines of rows that have a different name and number format in links.toml.
MACHINES = {"4xGH200 mesh": "4xGH200", "4xA100 mesh": "4xA100 mesh", "Azure ND H100 v5 (": "Azure NDv5 H100"}


class Configuration(Struct, frozen=True):
    """A flow, the concurrent flows, and the topology."""

    topology: Topology
    flow: Flow
    flows: tuple[Flow, ...]
    halved: bool = False  # the row adds both directions


def measured(row: Row) -> float | None:
    """GB/s of a row with a number or a range (its mean); None for others."""
    if not re.fullmatch(r"\d+(\.\d+)?(-\d+(\.\d+)?)?", row["achieved_GBps"].strip()):
        return None
    ends = [float(end) for end in row["achieved_GBps"].split("-")]
    return sum(ends) / len(ends)


def state(row: Row) -> Configuration | str:
    """The configuration of a row, or the reason for its absence."""
    text = " ".join(row.values())
    for part, why in UNSTATED.items():
        if part in text:
            return why
    for family in (_pcie, _nvlink, _xgmi, _c2c, _network, _memory, _disk):
        found = family(row["link"], row)
        if found:
            return found
    return "of a kind that the model does not know"


def _one(topology: Topology, flow: Flow, *beside: Flow, halved: bool = False) -> Configuration:
    return Configuration(topology, flow, (flow, *beside), halved)


def _pcie(link: str, row: Row) -> Configuration | None:
    found = re.search(r"Gen(\d)", row["generation"])
    if not link.startswith("PCIe") or not found:
        return None
    generation = int(found[1])
    rate, grade = rated(speed_of(generation), 16), f"pcie{generation}x16"
    far = "across" in link or "cross-NUMA" in link
    count = 8 if "8 GPUs" in row["width_or_count"] else 2
    numas = [NUMA, *([Device("numa1", "numa")] if far else [])]
    ports = [Device(f"port{n}", "root-port") for n in range(count)]
    links = [Link("socket", "numa0", "numa1", "interconnect")] if far else []
    for n in range(count):
        links += [Link(f"root{n}", f"numa{n % len(numas)}", f"port{n}", "internal")]
        links += [Link(f"port{n}>gpu{n}", f"port{n}", f"gpu{n}", "pcie", rate, None, None, grade)]
    topology = Topology((*numas, *ports, *GPUS[:count]), tuple(links))
    op = "copy-sm" if "SM" in link or "(SM" in link else "copy"
    if "allreduce" in link:
        return _one(topology, Flow("all_reduce", tuple(gpu.id for gpu in GPUS[:count])))
    down, up = Flow(op, ("numa0", "gpu0")), Flow(op, ("gpu0", "numa0"))
    if "GPU-GPU" in link:
        there, back = Flow(op, ("gpu0", "gpu1")), Flow(op, ("gpu1", "gpu0"))
        both = "bidirectional" in link
        return _one(topology, there, *([back] if both else []), halved=both)
    if "bidirectional" in link:
        return _one(topology, down, up)
    return _one(topology, up if "D2H" in link and "H2D/" not in link else down)


def _nvlink(link: str, row: Row) -> Configuration | None:
    if not link.startswith("NVLink") or row["generation"] not in _NVLINK:
        return None
    version, rate = _NVLINK[row["generation"]]
    mesh = "mesh" in row["platform"] or "mesh" in row["width_or_count"]
    ranks = 4 if mesh else 2 if "pair" in row["platform"] else 8
    per_pair = {3: 4, 4: 6}.get(version, 18)
    each = 18 if version > 3 else 12
    if mesh:
        pairs = [(a, b) for a in range(ranks) for b in range(a)]
        links = [_nv(f"gpu{b}-gpu{a}/{n}", b, f"gpu{a}", version, rate) for a, b in pairs for n in range(per_pair)]
        topology = Topology(GPUS[:ranks], tuple(links))
    else:
        ends = [(gpu, n) for gpu in range(ranks) for n in range(each)]
        fabric = "switches" if "ring" in link else FABRIC  # a ring: the switches only forward
        links = [_nv(f"gpu{gpu}/nvlink{n}", gpu, fabric, version, rate) for gpu, n in ends]
        topology = Topology((*GPUS[:ranks], Device(fabric, "fabric")), tuple(links))
    if "busbw" in link:
        op = "all_reduce-nvls" if "NVLS" in link else "all_reduce"
        return _one(topology, Flow(op, tuple(gpu.id for gpu in GPUS[:ranks])))
    both = "bidirectional" in link
    op = "copy-sm" if "(SM)" in link else "send" if "send/recv" in link else "copy"
    if "fan-out" in link:
        return Configuration(topology, Flow("sum", ()), tuple(Flow(op, ("gpu0", f"gpu{n}")) for n in range(1, ranks)))
    there, back = Flow(op, ("gpu0", "gpu1")), Flow(op, ("gpu1", "gpu0"))
    return _one(topology, there, *([back] if both else []), halved=both)


def _nv(name: str, gpu: int, other: str, version: int, rate: float) -> Link:
    return Link(name, f"gpu{gpu}", other, "nvlink", rate, None, None, f"nvlink{version}")


def _xgmi(link: str, row: Row) -> Configuration | None:
    if not link.startswith("xGMI"):
        return None
    ranks = 8 if "8 GPUs" in row["width_or_count"] else 2
    pairs = [(a, b) for a in range(ranks) for b in range(a)]
    links = [Link(f"gpu{b}-gpu{a}", f"gpu{b}", f"gpu{a}", "xgmi", 64e9, None, None, "xgmi") for a, b in pairs]
    topology = Topology(GPUS[:ranks], tuple(links))
    if "busbw" in link:
        return _one(topology, Flow("all_reduce", tuple(gpu.id for gpu in GPUS[:ranks])))
    return _one(topology, Flow("copy", ("gpu0", "gpu1")))


def _c2c(link: str, row: Row) -> Configuration | None:
    if not link.startswith("NVLink-C2C"):
        return None
    grade = "c2c5" if "GB300" in row["platform"] else "c2c4"
    topology = Topology((NUMA, GPUS[0]), (Link("gpu0/c2c0", "gpu0", "numa0", "c2c", 450e9, None, None, grade),))
    down, up = Flow("copy", ("numa0", "gpu0")), Flow("copy", ("gpu0", "numa0"))
    return _one(topology, down, up) if "bidirectional" in link else _one(topology, up if "D2H" in link else down)


def _network(link: str, row: Row) -> Configuration | None:
    grades = {"InfiniBand": "infiniband", "RoCE": "roce", "Slingshot": "slingshot", "GPUDirect": "ethernet"}
    grade = next((grade for begin, grade in grades.items() if link.startswith(begin)), None)
    if grade is None:
        return None
    rate = float(row["theoretical_GBps_unidir"]) * 1e9
    port = Link("nic0>nic0/1", "nic0", "nic0/1", "port", rate, None, None, grade)
    topology = Topology((Device("nic0", "nic"), Device("nic0/1", "port")), (port,))
    return _one(topology, Flow("write", ("nic0", "nic0/1")))


def _memory(link: str, row: Row) -> Configuration | None:
    if not link.startswith(("HBM", "Host DRAM")):
        return None
    kind = row["generation"].lower()
    grade = "hbm" if link.startswith("HBM") else "lpddr5x" if "lpddr" in kind else kind[:4]
    memory = Link("it/memory", "it", "it", "memory", float(row["theoretical_GBps_unidir"]) * 1e9, None, None, grade)
    plain = "-allocate" if "plain stores" in row["tool"] else ""
    op = "copy" if "d2d" in link else "stream-copy" if "copy" in link else f"triad{plain}"
    return _one(Topology((Device("it", "gpu"),), (memory,)), Flow(op, ("it",)))


def _disk(link: str, row: Row) -> Configuration | None:
    if not link.startswith("NVMe") or "8 drives" not in row["width_or_count"]:
        return None
    disks = [Device(f"nvme{n}", "nvme") for n in range(8)]
    rate = rated(speed_of(4), 4)
    ports = [Device(f"port{n}", "root-port") for n in range(8)]
    links = [Link(f"root{n}", "numa0", f"port{n}", "internal") for n in range(8)]
    links += [Link(f"port{n}>nvme{n}", f"port{n}", f"nvme{n}", "pcie", rate, None, None, "pcie4x4") for n in range(8)]
    links += [Link(f"nvme{n}>md0", f"nvme{n}", "md0", "member") for n in range(8)]
    topology = Topology((NUMA, *ports, *disks, Device("md0", "array")), tuple(links))
    return _one(topology, Flow("write", ("numa0", "md0")) if "write" in link else Flow("read", ("md0", "numa0")))
