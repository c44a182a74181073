"""The topology as a tree: the expected text of one machine, and that no device of any machine is lost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from linkgauge.exporters.text.terminal import cells
from linkgauge.exporters.text.tree import as_tree
from linkgauge.models.graph.topology import FORWARDS, INSIDE, Device, Link, Topology

GOLDEN = Path(__file__).parents[2] / "golden"
GEN5, GEN5_X8, GEN4_X4, NDR = 63.015384615e9, 31.507692307e9, 7.876923076e9, 50e9


def below(parent: str, device: Device, kind: str, rated: float | None = None, trained: float | None = None) -> Link:
    return Link(f"{parent}>{device.id}", parent, device.id, kind, rated, trained)


def server() -> Topology:
    """Two packages, each with a switch that carries two GPUs and a NIC; NVLink; two NVMe disks in an array."""
    devices = [Device("package0", "package", "Intel(R) Xeon(R) Platinum 8480C"), Device("package1", "package")]
    links = [Link("package0>package1", "package0", "package1", "interconnect")]

    def add(parent: str | None, device: Device, kind: str = "internal", *rates: float | None) -> str:
        devices.append(device)
        if parent:
            links.append(below(parent, device, kind, *rates))
        return device.id

    for n in range(2):
        numa = add(f"package{n}", Device(f"numa{n}", "numa", "", n), "memory")
        bridge = add(numa, Device(f"pci0000:{n}0", "host-bridge", "", n))
        root = add(bridge, Device(f"0000:{n}0:01.0", "root-port", "", n))
        up = add(root, Device(f"0000:{n}1:00.0", "upstream-port", "PEX890xx Switch", n), "pcie", GEN5, GEN5)
        for g in range(2):
            port = add(up, Device(f"0000:{n}2:0{g}.0", "downstream-port", "", n))
            gpu = Device(f"0000:{n}{3 + g}:00.0", "gpu", "GH100 [H100 SXM5 80GB]", n, (f"gpu{2 * n + g}",))
            add(port, gpu, "pcie", GEN5, GEN5_X8 if (n, g) == (1, 1) else GEN5)
            links += [Link(f"{gpu.id}/{k}", gpu.id, "fabric0", "nvlink", 25e9, 25e9) for k in range(18)]
        port = add(up, Device(f"0000:{n}2:02.0", "downstream-port", "", n))
        nic = add(port, Device(f"0000:{n}5:00.0", "nic", "MT2910 Family [ConnectX-7]", n, (f"mlx5_{n}",)), "pcie", GEN5)
        rdma = add(nic, Device(f"mlx5_{n}/1", "port"), "port", None, NDR)
        add(rdma, Device(f"ib{n}", "netdev"), "function")
        add(up, Device(f"0000:{n}2:03.0", "downstream-port", "", n))
        add(up, Device(f"0000:{n}2:04.0", "downstream-port", "", n))
        port = add(bridge, Device(f"0000:{n}0:02.0", "root-port", "", n))
        drive = Device(f"0000:{n}7:00.0", "nvme", "PM9A3 \x1b[2J", 1 - n, (f"nvme{n}",))
        disk = add(add(port, drive, "pcie", GEN4_X4, GEN4_X4), Device(f"nvme{n}n1", "disk", "SAMSUNG"), "disk")
        add(disk, Device(f"nvme{n}n1p1", "partition"), "disk")
        links.append(Link(f"nvme{n}n1>md0", f"nvme{n}n1", "md0", "member"))
        add(bridge, Device(f"0000:{n}0:00.0", "pci", "Ice Lake Memory Map/VT-d", n))
        add(bridge, Device(f"0000:{n}0:00.1", "pci", "Ice Lake Mesh 2 PCIe", n))
    add(None, Device("fabric0", "fabric"))
    for loose in (Device("md0", "array", "raid0"), Device("lo", "netdev"), Device("docker0", "netdev")):
        add(None, loose)
    return Topology(tuple(devices), tuple(links))


def test_a_server(golden: Callable[[Path, str], None]) -> None:
    golden(GOLDEN / "tree_server.txt", as_tree(server()))


def test_colour_only_adds_escape_sequences() -> None:
    coloured = as_tree(server(), colour=True)
    assert "\x1b[33m31.5 of 63.0 GB/s\x1b[0m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == as_tree(server())


def test_what_is_joined_to_something_is_not_folded_away() -> None:
    devices = (Device("lo", "netdev"), Device("bond0", "netdev"), Device("eth0", "netdev"))
    tree = as_tree(Topology(devices, (Link("eth0>bond0", "eth0", "bond0", "member"),)))
    assert tree == "not attached\n  bond0  network device, members eth0\n  network devices: lo, eth0\n"


KINDS = sorted({*FORWARDS, "gpu", "nic", "nvme", "pci", "port", "netdev", "disk", "partition", "array", "novel"})
LINKS = sorted({*INSIDE, "pcie", "nvlink", "c2c", "memory", "interconnect", "internal", "net", "novel"})


@st.composite
def topologies(draw: st.DrawFn, ids: st.SearchStrategy[str], names: st.SearchStrategy[str]) -> Topology:
    """Any devices and links: cycles, links from a device to itself, links to absent devices."""
    aliases = st.lists(names, max_size=2).map(tuple)
    device = st.builds(Device, ids, st.sampled_from(KINDS), names, st.none() | st.integers(0, 3), aliases)
    devices = draw(st.lists(device, max_size=12, unique_by=lambda one: one.id))
    ends = st.sampled_from([*(one.id for one in devices), "elsewhere"])
    rates = st.none() | st.floats(0, 1e12)
    link = st.builds(Link, st.text(max_size=3), ends, ends, st.sampled_from(LINKS), rates, rates, rates)
    return Topology(tuple(devices), tuple(draw(st.lists(link, max_size=14))))


def entries(tree: str) -> list[str]:
    """The ids of the entries, without those that are only the other end of a link."""
    found: list[str] = []
    for line in tree.splitlines():
        folded = re.fullmatch(r" *[a-z ]+: (.*)", line)
        if folded:
            found += folded[1].split(", ")
        elif "  " in line.strip():  # otherwise the rest of an entry that is longer than a line
            found += line.strip().split("  ")[0].split(" > ")
    return found


@given(topologies(st.from_regex(r"\A[a-e][0-9]\Z"), st.just("")))
def test_every_device_is_one_entry(topology: Topology) -> None:
    assert Counter(entries(as_tree(topology))) == Counter(device.id for device in topology.devices)


@given(topologies(st.text(max_size=150), st.text(max_size=150)))
def test_a_line_fits_and_only_prints(topology: Topology) -> None:
    for line in as_tree(topology).splitlines():
        assert cells(line) < 100
        assert line.isprintable()


@given(topologies(st.text(max_size=5), st.text(max_size=5)))
def test_an_escape_sequence_is_ours_or_none(topology: Topology) -> None:
    assert re.sub(r"\x1b\[[0-9;]+m", "", as_tree(topology, colour=True)) == as_tree(topology)
