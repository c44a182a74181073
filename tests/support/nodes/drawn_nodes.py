"""Hypothesis strategies for nodes and flows, for properties that must hold on all links."""

from __future__ import annotations

from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.models.facts.records import EGRESS, Flow
from linkgauge.models.graph.topology import Device, Link, Topology

GIGA = 1e9
RATES = st.sampled_from([4 * GIGA, 16 * GIGA, 32 * GIGA, 63 * GIGA])
KNOWN = st.none() | RATES
GRADES = st.sampled_from(["pcie3x16", "pcie4x16", "pcie5x4", ""])


@st.composite
def nodes(draw: st.DrawFn) -> Topology:
    """One or two sockets; up to four roots with or without switches; GPUs, NICs with ports, disks and an array; NVLink
    to a fabric or between neighbors, or C2C.

    Some links have no rate.
    """
    sockets = draw(st.integers(1, 2))
    devices = [Device(f"package{n}", "package") for n in range(sockets)]
    links = [Link("socket", "package0", "package1", "interconnect", draw(KNOWN))] if sockets > 1 else []
    for number in range(sockets):
        numa = f"numa{number}"
        devices.append(Device(numa, "numa"))
        links.append(Link(f"{numa}<", f"package{number}", numa, "internal"))
        links += [Link(f"{numa}/memory", numa, numa, "memory", 300 * GIGA, grade="ddr5")] * draw(st.integers(0, 1))
    for number in range(draw(st.integers(1, 4))):
        below = draw(st.lists(st.sampled_from(["gpu", "nic", "nvme"]), min_size=1, max_size=4))
        _root(draw, devices, links, f"root{number}", f"numa{number % sockets}", below)
    _gpu_links(draw, links, devices, sockets)
    disks = [device.id for device in devices if device.kind == "nvme"]
    if len(disks) > 1:
        devices.append(Device("md0", "array"))
        links += [Link(f"{disk}>md0", disk, "md0", "member") for disk in disks]
    return Topology(tuple(devices), tuple(links))


def _root(draw: st.DrawFn, devices: list[Device], links: list[Link], root: str, numa: str, below: list[str]) -> None:
    devices += [Device(f"{root}/bridge", "host-bridge"), Device(f"{root}/port", "root-port")]
    links.append(Link(f"{root}/bridge<", numa, f"{root}/bridge", "internal"))
    links.append(Link(f"{root}/port<", f"{root}/bridge", f"{root}/port", "internal"))
    switch = f"{root}/port"
    if len(below) > 1:
        switch = f"{root}/switch"
        devices.append(Device(switch, "upstream-port"))
        links.append(Link(f"{switch}<", f"{root}/port", switch, "pcie", draw(KNOWN), grade=draw(GRADES)))
    alike = Link("", "", "", "pcie", draw(KNOWN), draw(KNOWN), grade=draw(GRADES))
    for place, kind in enumerate(below):
        port, name = f"{root}/{place}", f"{kind}{root.removeprefix('root')}.{place}"
        other = Link("", "", "", "pcie", draw(RATES), None, draw(st.none() | RATES), "pcie4x16")
        own = alike if draw(st.booleans()) else other
        if len(below) > 1:
            devices.append(Device(port, "downstream-port"))
            links.append(Link(f"{port}<", switch, port, "internal"))
        else:
            port = switch
        devices.append(Device(name, kind))
        links.append(replace(own, id=f"{name}<", a=port, b=name))
        if kind == "nic":
            virtual = [f"{name}v{number}" for number in range(draw(st.integers(0, 3)))]
            devices += [Device(f"{name}/1", "port"), *(Device(function, "nic") for function in virtual)]
            links.append(Link(f"{name}/1<", name, f"{name}/1", "port", draw(KNOWN), 12 * GIGA, grade="roce"))
            links += [Link(f"{function}<", name, function, "function") for function in virtual]


def _gpu_links(draw: st.DrawFn, links: list[Link], devices: list[Device], sockets: int) -> None:
    gpus = [device.id for device in devices if device.kind == "gpu"]
    wiring = draw(st.sampled_from(["none", "fabric", "neighbours", "c2c"]))
    count = draw(st.integers(1, 3))
    if wiring == "fabric":
        devices.append(Device("nvfabric", "fabric"))
        links += [_nvlink(gpu, n, "nvfabric") for gpu in gpus for n in range(count)]
    if wiring == "neighbours":
        links += [_nvlink(one, n, two) for one, two in zip(gpus, gpus[1:], strict=False) for n in range(count)]
    for number, gpu in enumerate(gpus):
        if wiring == "c2c":
            numa = f"numa{number % sockets}"
            links.append(Link(f"{gpu}/c2c", gpu, numa, "c2c", 450 * GIGA, None, 400 * GIGA, "c2c4"))
        links.append(Link(f"{gpu}/memory", gpu, gpu, "memory", 3350 * GIGA, grade="hbm"))


def _nvlink(gpu: str, number: int, other: str) -> Link:
    return Link(f"{gpu}/nvlink{number}", gpu, other, "nvlink", 25 * GIGA, grade="nvlink4")


@st.composite
def loaded(draw: st.DrawFn) -> tuple[Topology, list[Flow]]:
    """A node, and concurrent flows of all kinds."""
    topology = draw(nodes())
    return topology, draw(st.lists(flows(topology), min_size=1, max_size=8, unique=True))


def flows(topology: Topology) -> st.SearchStrategy[Flow]:
    """Copies over any path, memory, egress, collectives."""
    ends = [device.id for device in topology.devices if device.kind in ("gpu", "nic", "nvme", "numa", "array", "port")]
    gpus = tuple(device.id for device in topology.devices if device.kind == "gpu")
    kinds = [copies(topology)] + [st.builds(Flow, st.just("triad"), st.sampled_from(ends).map(lambda end: (end,)))]
    if gpus:
        some = st.lists(st.sampled_from(gpus), min_size=1, unique=True).map(tuple)
        kinds += [st.builds(Flow, st.sampled_from([EGRESS, "all_reduce"]), some)]
    return st.one_of(kinds)


def copies(
    topology: Topology, vias: tuple[str, ...] = ("", "pcie", "nvlink", "host", "net")
) -> st.SearchStrategy[Flow]:
    """Copies from one end to another."""
    kinds = ("gpu", "nic", "nvme", "numa", "array", "port")
    ends = [device.id for device in topology.devices if device.kind in kinds]
    pair = st.lists(st.sampled_from(ends), min_size=2, max_size=2, unique=True).map(tuple)
    return st.builds(Flow, st.sampled_from(["copy", "read", "write", "copy-sm"]), pair, via=st.sampled_from(vias))
