"""The PCI tree: ports, links, and facts of any content, which raise no exception."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.machine import (
    Array,
    Disk,
    HostBridge,
    Net,
    Node,
    Numa,
    Nvme,
    Package,
    Pci,
    Port,
    Rdma,
)
from linkgauge.models.facts.merge import merge
from linkgauge.models.facts.pcie_rates import WIDTHS, rated
from linkgauge.models.facts.records import Fact
from linkgauge.models.graph.routes import routes
from linkgauge.models.graph.topology import FORWARDS, Device, Link, Topology
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.inventory.build import build_topology
from linkgauge.models.inventory.pci_tree import (
    emulated,
    functions_above,
    host_bridges,
    link_of,
    pci_links,
    port_kinds,
)
from linkgauge.models.site.schema import Site

BRIDGE, GPU, NIC, DISK = 0x060400, 0x030200, 0x020000, 0x010802
GEN4, GEN5 = rated(16e9, 16), rated(32e9, 16)
Functions = Mapping[str, Pci]


def pci(key: str, parent: str | None, pci_class: int | None = BRIDGE, **fields: Any) -> Pci:
    most = {"speed": 32e9, "width": 16, "max_speed": 32e9, "max_width": 16}
    return Pci(key=key, parent=parent, pci_class=pci_class, **{**most, "vendor": 0x8086, **fields})


def functions(*facts: Pci) -> dict[str, Pci]:
    return {fact.key: fact for fact in facts}


def links(known: Functions, trusted: bool = True) -> list[tuple[str, str, str]]:
    return [(link.a, link.b, link.kind) for link in pci_links(known, trusted)]


# A root port with two switches in a row, a GPU at each; another root port with a card of two functions.
TREE = functions(
    pci("0000:16:01.0", "pci0000:16"),
    pci("0000:17:00.0", "0000:16:01.0"),
    pci("0000:18:00.0", "0000:17:00.0"),
    pci("0000:18:01.0", "0000:17:00.0"),
    pci("0000:19:00.0", "0000:18:00.0", GPU, vendor=0x10DE, max_speed=16e9),
    pci("0000:1a:00.0", "0000:18:01.0"),
    pci("0000:1b:00.0", "0000:1a:00.0"),
    pci("0000:1c:00.0", "0000:1b:00.0", GPU, vendor=0x10DE, width=8),
    pci("0000:16:02.0", "pci0000:16"),
    pci("0000:40:00.0", "0000:16:02.0", NIC, vendor=0x15B3),
    pci("0000:40:00.1", "0000:16:02.0", NIC, vendor=0x15B3),
    pci("0000:40:00.2", "0000:16:02.0", NIC, vendor=0x15B3, physfn="0000:40:00.0"),
    pci("0000:16:1f.0", "pci0000:16", 0x060100),
)


def test_kinds_of_ports() -> None:
    assert port_kinds(TREE) == {
        "0000:16:01.0": "root-port",
        "0000:17:00.0": "upstream-port",
        "0000:18:00.0": "downstream-port",
        "0000:18:01.0": "downstream-port",
        "0000:1a:00.0": "upstream-port",
        "0000:1b:00.0": "downstream-port",
        "0000:16:02.0": "root-port",
    }


def test_what_has_functions_below_it_is_a_bridge() -> None:
    unread = {**TREE, "0000:17:00.0": replace(TREE["0000:17:00.0"], pci_class=None)}
    assert port_kinds(unread) == port_kinds(TREE)
    assert links(unread) == links(TREE)


def test_links_join_ports_to_function_0_below_them() -> None:
    """A chip connects the ports of a switch. Further functions of a card share the link of the first function."""
    assert [(link.id, link.kind, link.rated, link.trained) for link in pci_links(TREE, trusted=True)] == [
        ("pci0000:16>0000:16:01.0", "internal", None, None),
        ("0000:16:01.0>0000:17:00.0", "pcie", GEN5, GEN5),
        ("0000:17:00.0>0000:18:00.0", "internal", None, None),
        ("0000:17:00.0>0000:18:01.0", "internal", None, None),
        ("0000:18:00.0>0000:19:00.0", "pcie", GEN5, GEN5),
        ("0000:18:01.0>0000:1a:00.0", "pcie", GEN5, GEN5),
        ("0000:1a:00.0>0000:1b:00.0", "internal", None, None),
        ("0000:1b:00.0>0000:1c:00.0", "pcie", GEN5, GEN5 / 2),
        ("pci0000:16>0000:16:02.0", "internal", None, None),
        ("0000:16:02.0>0000:40:00.0", "pcie", GEN5, GEN5),
        ("0000:40:00.0>0000:40:00.1", "function", None, None),
        ("0000:40:00.0>0000:40:00.2", "function", None, None),
        ("pci0000:16>0000:16:1f.0", "internal", None, None),
    ]


def test_a_function_without_function_0_is_the_end_of_the_link() -> None:
    """As after passing a single function through to a virtual machine."""
    alone = functions(pci("0000:00:01.0", "pci0000:00"), pci("0000:01:00.3", "0000:00:01.0", NIC))
    assert links(alone)[1] == ("0000:00:01.0", "0000:01:00.3", "pcie")


def test_what_is_its_own_parent_hangs_on_nothing() -> None:
    odd = (
        pci("a", "a", GPU),
        pci("b", None, GPU),
        pci("c", "a", GPU, physfn="c"),
        HostBridge(key="d", parent="d"),
    )
    assert topology(odd).links == ()


@pytest.mark.parametrize(
    ("function", "port", "expected"),
    [
        ({}, {}, (GEN5, GEN5)),
        ({"max_speed": 16e9, "speed": 8e9, "width": 4}, {"max_width": 8}, (GEN4 / 2, rated(8e9, 4))),
        ({"max_speed": 16e9}, {"max_width": 8}, (GEN5, GEN5)),  # the link runs above its own reported maximum
        ({"max_speed": 64e9, "max_width": 32}, {}, (GEN5, GEN5)),
        ({"max_speed": None, "max_width": None}, {}, (GEN5, GEN5)),
        ({"max_width": None}, {"max_width": None}, (None, GEN5)),
        ({"speed": 16e9, "width": 8}, {}, (GEN5, GEN4 / 2)),
        ({"speed": None, "width": None}, {"speed": 16e9}, (GEN5, GEN4)),
        ({"speed": None}, {"speed": None}, (GEN5, None)),
        ({"width": None}, {"width": None}, (GEN5, None)),
    ],
)
def test_rates_of_a_link(
    function: dict[str, Any], port: dict[str, Any], expected: tuple[float | None, float | None]
) -> None:
    assert link_of(pci("b", "a", **function), pci("a", None, **port)) == expected


MADE_UP = [
    {"vendor": 0x1B36},
    {"vendor": 0x15AD},
    {"vendor": 0x104C, "device": 0x8232},
    {"vendor": 0x104C, "device": 0x8233},
    {"vendor": 0x1000, "device": 0x0001},
]
REAL = [{}, {"vendor": 0x104C}, {"vendor": 0x1000, "device": 0xC030}, {"vendor": None}]


@pytest.mark.parametrize(("port", "expected"), [*((port, True) for port in MADE_UP), *((port, False) for port in REAL)])
def test_a_made_up_port_makes_up_all_below_it(port: dict[str, Any], expected: bool) -> None:
    known = functions(
        pci("rp", "pci0000:00"), pci("up", "rp", **port), pci("dn", "up"), pci("gpu", "dn", GPU), pci("nic", "rp", NIC)
    )
    assert ("gpu" in emulated(known)) is expected
    assert "nic" not in emulated(known)
    untrusted = {link.b: link.rated for link in pci_links(known, trusted=False) if link.kind == "pcie"}
    assert untrusted == {"up": GEN5, "gpu": None if expected else GEN5, "nic": GEN5}


def test_the_root_bus_of_a_virtual_machine_is_made_up() -> None:
    known = functions(pci("gpu", "pci0000:00", GPU), pci("nic", None, NIC))
    assert emulated(known) == known.keys()


NUMAS = {name: Numa(key=name) for name in ("numa0", "numa1")}


@pytest.mark.parametrize(
    ("fields", "below", "numas", "expected"),
    [
        ({}, [1], NUMAS, (1, "numa1>root")),  # by the devices below it
        ({}, [None, 1, 0], NUMAS, (1, "numa1>root")),
        ({"numa": 0}, [1], NUMAS, (0, "numa0>root")),
        ({}, [None], NUMAS, (None, "host>root")),  # the firmware does not say: NUMA node -1
        ({}, [7], NUMAS, (7, "host>root")),
        ({}, [None], {"numa0": NUMAS["numa0"]}, (None, "numa0>root")),  # there is no other
        ({}, [None], {}, (None, "host>root")),
        ({"parent": "0000:00:0e.0"}, [1], NUMAS, (1, "0000:00:0e.0>root")),  # VMD
    ],
)
def test_host_bridges(
    fields: dict[str, Any], below: list[int | None], numas: dict[str, Numa], expected: tuple[int | None, str]
) -> None:
    known = functions(*(pci(f"0000:00:0{n}.0", "root", numa=numa) for n, numa in enumerate(below)))
    bridges = {"root": HostBridge(key="root", **fields)} if fields else {}
    ((device, link),) = host_bridges(known, bridges, numas)
    assert device == Device("root", "host-bridge", "", expected[0])
    assert link
    assert (link.id, link.b) == (expected[1], "root")


def topology(facts: Iterable[Fact], site: Site | None = None) -> Topology:
    return build_topology(merge(facts)[0], site or Site())


SERVER: list[Fact] = [
    Node(key="node", virtual=False),
    Package(key="package0", model="Xeon", cpus=(0, 1)),
    Package(key="package1", model="Xeon", cpus=(2, 3)),
    Numa(key="numa0", cpus=(0, 1), distances={"numa0": 10, "numa1": 21, "numa2": 17}),
    Numa(key="numa1", cpus=(2, 3), distances={"numa0": 21, "numa1": 10, "numa2": 14}),
    Numa(key="numa2", cpus=(), distances={"numa0": 17, "numa1": 14, "numa2": 10}),
    HostBridge(key="pci0000:16"),
    HostBridge(key="pci10000:00", parent="0000:16:0e.0"),
    pci("0000:16:0e.0", "pci0000:16", 0x010400),
    pci("0000:16:01.0", "pci0000:16", numa=1),
    pci("0000:17:00.0", "0000:16:01.0", GPU, vendor=0x10DE, name="H100"),
    pci("0000:16:02.0", "pci0000:16"),
    pci("0000:40:00.0", "0000:16:02.0", NIC),
    pci("10000:00:02.0", "pci10000:00"),
    pci("10000:01:00.0", "10000:00:02.0", DISK),
    Gpu(key="gpu0", address="0000:17:00.0"),
    Gpu(key="gpu1", address="0000:99:00.0", name="H100"),
    Gpu(key="gpu2"),
    Rdma(key="mlx5_0", address="0000:40:00.0"),
    Port(key="mlx5_0/1", device="mlx5_0", state="ACTIVE", rate=50e9, netdev="ib0"),
    Net(key="ib0", address="0000:40:00.0"),
    Net(key="eth0", address="0000:40:00.0", speed=12.5e9),
    Net(key="lo"),
    Rdma(key="rxe0"),
    Port(key="rxe0/1", device="rxe0", netdev="eth0"),
    Nvme(key="nvme0", address="10000:01:00.0"),
    Disk(key="nvme0n1", address="10000:01:00.0", model="PM9A3"),
    Disk(key="nvme0n1p1", partition_of="nvme0n1"),
    Array(key="md0", level="raid0", members=("nvme0n1p1", "gone")),
]


SERVER_DEVICES = (
    Device("package0", "package", "Xeon"),
    Device("package1", "package", "Xeon"),
    Device("numa0", "numa", "", 0),
    Device("numa1", "numa", "", 1),
    Device("numa2", "numa", "", 2),
    Device("pci0000:16", "host-bridge", "", 1),
    Device("pci10000:00", "host-bridge"),
    Device("0000:16:0e.0", "storage"),
    Device("0000:16:01.0", "root-port", "", 1),
    Device("0000:17:00.0", "gpu", "H100", None, ("gpu0",)),
    Device("0000:16:02.0", "root-port"),
    Device("0000:40:00.0", "nic", "", None, ("mlx5_0",)),
    Device("10000:00:02.0", "root-port"),
    Device("10000:01:00.0", "nvme", "", None, ("nvme0",)),
    Device("mlx5_0/1", "port"),
    Device("rxe0/1", "port"),
    Device("ib0", "netdev"),
    Device("eth0", "netdev"),
    Device("lo", "netdev"),
    Device("nvme0n1", "disk", "PM9A3"),
    Device("nvme0n1p1", "partition"),
    Device("md0", "array", "raid0"),
    Device("gpu1", "gpu", "H100"),
    Device("gpu2", "gpu"),
)
# Kind, id, rated and trained rate.
SERVER_LINKS = [
    ("disk", "10000:01:00.0>nvme0n1", None, None),
    ("disk", "nvme0n1>nvme0n1p1", None, None),
    ("function", "0000:16:0e.0>pci10000:00", None, None),
    ("function", "eth0>rxe0/1", None, None),
    ("function", "mlx5_0/1>ib0", None, None),
    ("interconnect", "numa1>numa2", None, None),
    ("interconnect", "package0>package1", None, None),
    ("internal", "numa1>pci0000:16", None, None),
    ("internal", "package0>numa0", None, None),
    ("internal", "package1>numa1", None, None),
    ("internal", "pci0000:16>0000:16:01.0", None, None),
    ("internal", "pci0000:16>0000:16:02.0", None, None),
    ("internal", "pci0000:16>0000:16:0e.0", None, None),
    ("internal", "pci10000:00>10000:00:02.0", None, None),
    ("member", "nvme0n1p1>md0", None, None),
    ("pcie", "0000:16:01.0>0000:17:00.0", GEN5, GEN5),
    ("pcie", "0000:16:02.0>0000:40:00.0", GEN5, GEN5),
    ("pcie", "10000:00:02.0>10000:01:00.0", GEN5, GEN5),
    ("port", "0000:40:00.0>eth0", None, 12.5e9),
    ("port", "0000:40:00.0>mlx5_0/1", None, 50e9),
]


def test_a_server_from_its_facts() -> None:
    built = topology(SERVER)
    unnumbered = [replace(device, vendor=None, device=None, pci_class=None) for device in built.devices]
    assert {device.id: device for device in unnumbered} == {device.id: device for device in SERVER_DEVICES}
    assert sorted((link.kind, link.id, link.rated, link.trained) for link in built.links) == SERVER_LINKS


def test_made_up_links_have_no_rates_unless_the_site_trusts_them() -> None:
    machine = [replace(fact, vendor=0x1B36) if fact.key == "0000:16:01.0" else fact for fact in SERVER]
    machine[0] = Node(key="node", virtual=True)

    def rates(site: Site | None) -> list[float | None]:
        below = topology(machine, site).link_below
        return [below[address].rated for address in ("0000:17:00.0", "0000:40:00.0")]

    assert rates(None) == [None, GEN5]
    assert rates(Site(trust_virtual_links=True)) == [GEN5, GEN5]


def test_a_machine_that_does_not_say_where_its_roots_hang() -> None:
    """Such roots are below the host, which connects the packages. So a path connects any two devices."""
    facts = [Package(key="package0"), Package(key="package1"), Numa(key="numa0"), Numa(key="numa1"), *TREE.values()]
    built = topology(facts)
    assert built.find("host") == Device("host", "host")
    assert {"package0", "package1", "0000:1c:00.0", "0000:40:00.2"} <= routes(built, "0000:19:00.0").keys()


names = st.sampled_from([f"0000:0{n}:00.{n % 3}" for n in range(9)])
odd_parents = st.none() | names | st.sampled_from(["pci0000:00", "pci0000:01", "gone", "host", "numa0", ""])
odd_functions = st.builds(
    Pci,
    key=names | st.sampled_from(["", "rubbish", "0000:01:00.1", "numa0"]),
    parent=odd_parents,
    physfn=st.none() | odd_parents,
    pci_class=st.none() | st.sampled_from([BRIDGE, GPU, NIC, DISK]),
    vendor=st.none() | st.sampled_from([0x10DE, 0x8086, 0x1B36]),
    speed=st.none() | st.sampled_from([2.5e9, 32e9]),
    width=st.none() | st.sampled_from(WIDTHS),
    max_speed=st.none() | st.sampled_from([8e9, 32e9]),
    max_width=st.none() | st.sampled_from(WIDTHS),
    numa=st.none() | st.integers(0, 2),
    lost=st.none() | st.booleans(),
)
odd_roots = st.builds(HostBridge, key=st.sampled_from(["pci0000:00", "pci0000:01"]), parent=odd_parents)


A_CYCLE = [
    Pci(key="0000:01:00.0", parent="0000:02:00.0", pci_class=BRIDGE),
    Pci(key="0000:02:00.0", parent="0000:01:00.0", pci_class=BRIDGE),
    Pci(key="0000:03:00.0", parent="0000:01:00.0", pci_class=GPU, vendor=0x10DE, width=8, max_width=16),
]


@example(A_CYCLE, [], False)
@given(st.lists(odd_functions, max_size=10), st.lists(odd_roots, max_size=2), st.booleans())
def test_any_tree_however_odd(parts: list[Pci], roots: list[HostBridge], virtual: bool) -> None:
    """Dumps may lack bridges, or have bridges that form a cycle."""
    facts: list[Fact] = [Node(key="node", virtual=virtual), Numa(key="numa0"), Numa(key="numa1"), *parts, *roots]
    built = topology(facts)
    known = merge(parts)[0].get(Pci, {})
    ids = [device.id for device in built.devices]
    assert len(ids) == len(set(ids))
    assert known.keys() <= set(ids)
    for link in built.links:
        assert {link.a, link.b} <= set(ids)
        assert link.a != link.b
    assert len({link.id for link in built.links}) == len(built.links)
    for name in known:
        assert routes(built, name)[name] == ()
    report = evaluate(assemble(facts, Site(), 0.0))
    assert report.topology == built


@given(st.lists(st.builds(pci, names, odd_parents), max_size=9, unique_by=lambda one: one.key))
def test_nothing_is_above_itself(parts: list[Pci]) -> None:
    known = functions(*parts)
    for address, kind in port_kinds(known).items():
        above = functions_above(address, known)
        assert address not in above
        assert len(above) == len(set(above))
        assert kind in FORWARDS
        assert (kind == "root-port") == (not above)


@given(st.recursive(st.just(()), lambda children: st.lists(children, max_size=3).map(tuple), max_leaves=12))
def test_every_function_of_a_proper_tree_can_be_reached(shape: tuple[Any, ...]) -> None:
    parts: list[Pci] = []

    def plant(children: tuple[Any, ...], parent: str) -> None:
        for below in children:
            key = f"0000:{len(parts):02x}:00.0"
            parts.append(pci(key, parent, BRIDGE if below else GPU, vendor=0x10DE))
            plant(below, key)

    plant(shape, "pci0000:00")
    built = topology([Numa(key="numa0"), *parts])
    assert routes(built, "numa0").keys() == {device.id for device in built.devices}
    assert len(built.links) == len(built.devices) - 1
    kinds = port_kinds(functions(*parts))
    for link in built.links:
        assert (link.kind == "pcie") == (kinds.get(link.a) in ("root-port", "downstream-port"))
        assert isinstance(link, Link)
