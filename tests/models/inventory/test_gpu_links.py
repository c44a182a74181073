"""Links of GPUs: their ends, rates and routes, and the loss from a link that is down."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.exporters.text.tree import as_tree
from linkgauge.models.bandwidth.expectations import levels
from linkgauge.models.catalog.gpus import products
from linkgauge.models.diagnosis.attribution import attribute
from linkgauge.models.diagnosis.impact import weigh
from linkgauge.models.facts.gpu import Gpu, GpuLink
from linkgauge.models.facts.machine import HostBridge, Numa, Package, Pci
from linkgauge.models.facts.records import Evidence, Fact, Flow, Observation
from linkgauge.models.graph.fair_share import shares
from linkgauge.models.graph.routes import active, path_type, rated, route
from linkgauge.models.graph.topology import FABRIC
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.inventory.gpu_links import gpu_links
from linkgauge.models.inventory.snapshot import Snapshot
from linkgauge.models.report import Finding
from linkgauge.models.site.schema import Site

SWITCHES = tuple(f"0000:d{n}:00.0" for n in range(4))
H100, A100_PCIE, GB200, UNKNOWN = 0x2330, 0x20F1, 0x2941, 0x9999


def address(gpu: int) -> str:
    return f"0000:{gpu + 16:02x}:00.0"


def function(key: str, pci_class: int, device: int = H100, parent: str = "") -> Pci:
    return Pci(
        key=key,
        parent=parent or f"pci{key[:7]}",
        pci_class=pci_class,
        vendor=0x10DE,
        device=device,
        driver="nvidia",
        speed=32e9,
        width=16,
        max_speed=32e9,
        max_width=16,
        lost=False,
        numa=0,
    )


def machine(gpus: int, device: int = H100, **fields: object) -> list[Fact]:
    """GPUs, each below its own root port; one NUMA node."""
    records: list[Fact] = [Package(key="package0", cpus=(0, 1)), Numa(key="numa0", cpus=(0, 1))]
    for n in range(gpus):
        port = f"0000:{n + 16:02x}:01.0"
        records.append(HostBridge(key=f"pci0000:{n + 16:02x}", numa=0))
        records += [function(port, 0x060400), function(address(n), 0x030200, device, port)]
        records.append(Gpu(key=f"gpu{n}", address=address(n), **fields))  # type: ignore[arg-type]
    return records


def link(gpu: int, number: int, remote: str | None, kind: str | None = None, up: bool = True) -> GpuLink:
    key = f"gpu{gpu}/nvlink{number}"
    return GpuLink(key=key, gpu=f"gpu{gpu}", kind="nvlink", active=up, remote=remote, remote_kind=kind)


def board(gpus: int = 4, down: Iterable[tuple[int, int]] = (), visible: bool = True) -> list[Fact]:
    """GPUs with 18 links to four switches. The driver does not show the other end of a link that is `down`."""
    records = machine(gpus, nvlinks=18)
    if visible:
        records += [function(switch, 0x068000, 0x22A3) for switch in SWITCHES]
    for n in range(gpus):
        for number in range(18):
            end = (SWITCHES[number % 4] if visible else None, "switch" if visible else None)
            records.append(link(n, number, *((None, None) if (n, number) in down else end), (n, number) not in down))
    return records


def snapshot_of(records: Iterable[Fact | Observation]) -> Snapshot:
    return assemble(records, Site(), 100.0)


def links(records: Iterable[Fact], *keys: str) -> list[tuple[str, str, str, float | None, float | None]]:
    known = gpu_links(snapshot_of(records).facts)
    return [(known[k].id, known[k].a, known[k].b, known[k].rated, known[k].trained) for k in keys or known]


def share(snapshot: Snapshot, *ends: str) -> float:
    flow = Flow("copy", ends)
    return shares(snapshot.topology, [flow], rated)[flow]


def cost(snapshot: Snapshot, limits: Iterable[str]) -> float | None:
    return weigh(snapshot, [cut(limits)])[1].factors.get("all_reduce")


def cut(ids: Iterable[str]) -> Finding:
    return Finding(code="nvlink-inactive", severity="critical", subject="x", message="", limits=dict.fromkeys(ids, 0.0))


def test_each_link_ends_at_its_switch_and_all_together_are_one_hop() -> None:
    snapshot = snapshot_of(board(down=[(2, 7)]))
    assert links(board(down=[(2, 7)]), "gpu1/nvlink5", "gpu2/nvlink7") == [
        ("gpu1/nvlink5", address(1), SWITCHES[1], 25e9, 25e9),
        ("gpu2/nvlink7", address(2), FABRIC, 25e9, 0.0),
    ]
    path = route(snapshot.topology, "gpu2", "gpu3")
    assert path
    assert [(hop.receiver, len(hop.links), rated(hop), active(hop)) for hop in path] == [
        (FABRIC, 18, 450e9, 425e9),
        (address(3), 18, 450e9, 450e9),
    ]
    assert path_type(snapshot.topology, path) == "NVL"
    assert share(snapshot, "gpu2", "gpu3") == 450e9  # the expected number, also while links are down
    assert cost(snapshot, ["gpu2/nvlink7"]) == 1.059
    assert cost(snapshot, (f"gpu0/nvlink{n}" for n in range(3, 18, 4))) == round(18 / 14, 3)  # all links to one switch


@pytest.mark.parametrize("visible", [True, False])
def test_a_gpu_without_any_link_goes_over_pcie(visible: bool) -> None:
    down = [(2, number) for number in range(18)]
    snapshot = snapshot_of(board(down=down, visible=visible))
    ids = [f"gpu2/nvlink{number}" for number in range(18)]
    assert links(board(down=down, visible=visible), *ids) == [(one, address(2), FABRIC, 25e9, 0.0) for one in ids]
    over_pcie = route(snapshot.topology, "gpu2", "gpu3", rate=active)
    assert over_pcie
    assert path_type(snapshot.topology, over_pcie) == "NODE"
    assert cost(snapshot, ids) == pytest.approx(450e9 / 63.015e9, rel=1e-3)


def test_a_copy_over_pcie_goes_under_the_finding_that_forced_it_there() -> None:
    down = [(2, number) for number in range(18)]
    copies = [
        Observation(
            about=Flow("copy", (f"gpu{a}", f"gpu{b}"), 1 << 28),
            quantity="rate",
            unit="bytes_per_second",
            value=54e9 if 2 in (a, b) else 390e9,
            at=1.0,
            busy=True,
            evidence=Evidence("here", "x"),
        )
        for a in range(4)
        for b in range(4)
        if a != b
    ]
    snapshot = snapshot_of([*board(down=down), *copies])
    state = cut([f"gpu2/nvlink{number}" for number in range(18)])
    slow = {f"bandwidth-low:gpu{a}-gpu{b}" for a in range(4) for b in range(4) if a != b and 2 in (a, b)}
    assert [(one.code, set(one.explains)) for one in attribute(snapshot, levels(snapshot), [state])] == [
        (state.code, slow)
    ]
    assert {level.trained for level in levels(snapshot) if "gpu2" in level.ends} == {0.0}


def test_both_ends_of_a_bridge_are_one_link() -> None:
    records = machine(4, A100_PCIE, nvlinks=12, name="NVIDIA A100-PCIE-40GB")
    records += [link(a, n, address(b), "gpu", (a, n) != (1, 5)) for a, b in ((0, 1), (1, 0)) for n in range(12)]
    records += [link(n, 0, None, None, up=False) for n in (2, 3)]  # a card without a bridge
    known = gpu_links(snapshot_of(records).facts)
    assert {key: one.id for key, one in known.items() if key.endswith("nvlink5")} == {
        "gpu0/nvlink5": "gpu0/nvlink5",
        "gpu1/nvlink5": "gpu0/nvlink5",
    }
    assert len(set(known.values())) == 12
    assert [one.id for one in set(known.values()) if one.trained == 0.0] == ["gpu0/nvlink5"]
    topology = snapshot_of(records).topology
    assert topology.find(FABRIC) is None
    assert share(snapshot_of(records), "gpu0", "gpu1") == 12 * 25e9
    other = route(topology, "gpu0", "gpu2")
    assert other
    assert path_type(topology, other) == "NODE"


def test_a_link_that_is_down_in_a_mesh_belongs_to_the_pair_that_misses_one() -> None:
    records = machine(4, UNKNOWN, nvlinks=12, nvlink_rate=25e9)
    for a in range(4):
        for place, b in enumerate(b for b in range(4) if b != a):
            lost = {a, b} == {1, 3}
            records += [link(a, 4 * place + n, address(b), "gpu") for n in range(3 if lost else 4)]
            records += [link(a, 4 * place + 3, None, None, up=False)] if lost else []
    topology = snapshot_of(records).topology
    paths = {ends: route(topology, *ends) for ends in (("gpu1", "gpu3"), ("gpu0", "gpu3"))}
    assert {ends: [(rated(hop), active(hop)) for hop in path or ()] for ends, path in paths.items()} == {
        ("gpu1", "gpu3"): [(100e9, 75e9)],
        ("gpu0", "gpu3"): [(100e9, 100e9)],
    }


def test_links_without_another_end_are_none() -> None:
    elsewhere = [link(0, 0, "0000:ff:00.0", "gpu"), link(0, 1, address(0), "gpu"), link(0, 2, None, None, up=False)]
    assert links([*machine(1, nvlinks=2), *elsewhere]) == []
    assert links([*machine(2, UNKNOWN), link(0, 0, None, None, up=False)]) == []


def test_nothing_is_up_on_a_board_with_switches() -> None:
    records = [*machine(2), link(0, 0, None, None, up=False), link(1, 0, None, None, up=False)]
    assert links(records) == [
        ("gpu0/nvlink0", address(0), FABRIC, 25e9, 0.0),
        ("gpu1/nvlink0", address(1), FABRIC, 25e9, 0.0),
    ]


def test_links_that_were_only_counted() -> None:
    records = [Gpu(key="gpu0", nvlinks=2, nvlink_rate=25e9), Gpu(key="gpu1", nvlinks=1)]
    assert links(records) == [
        ("gpu0/nvlink0", "gpu0", FABRIC, 25e9, None),
        ("gpu0/nvlink1", "gpu0", FABRIC, 25e9, None),
        ("gpu1/nvlink0", "gpu1", FABRIC, None, None),
    ]


def test_rates_are_those_of_the_product_else_what_the_driver_says() -> None:
    first_link = link(0, 0, SWITCHES[0], "switch")
    assert [
        links([*machine(1, device, nvlink_rate=rate), first_link])[0][3]
        for device, rate in ((H100, 26.562e9), (UNKNOWN, 20e9), (UNKNOWN, None))
    ] == [25e9, 20e9, None]


def test_c2c_leads_to_the_processor() -> None:
    numas = [Numa(key="numa0", cpus=(0,)), Numa(key="numa1", cpus=(1,)), Numa(key="numa2", cpus=())]
    records = [Package(key="package0", cpus=(0,)), Package(key="package1", cpus=(1,)), *numas]
    records += [Gpu(key="gpu0", numa=2, cpus=(1,), c2c_links=2, c2c_rate=40e9), Gpu(key="gpu1", numa=0, c2c_links=1)]
    c2c = GpuLink(key="gpu1/c2c0", gpu="gpu1", kind="c2c", active=False)
    assert links([*records, c2c]) == [
        ("gpu0/c2c0", "gpu0", "numa1", 40e9, 40e9),
        ("gpu0/c2c1", "gpu0", "numa1", 40e9, 40e9),
        ("gpu1/c2c0", "gpu1", "numa0", None, 0.0),
    ]
    topology = snapshot_of(records).topology
    path = route(topology, "gpu0", "numa1")
    assert path
    assert path_type(topology, path) == "C2C"
    assert share(snapshot_of(records), "numa1", "gpu0") == 80e9


def test_c2c_without_a_rate_of_one_link() -> None:
    known = links(machine(1, GB200, c2c_links=5))
    assert [one[0] for one in known] == [f"gpu0/c2c{n}" for n in range(5)]
    assert sum(one[3] or 0 for one in known) == next(one.c2c_rate for one in products() if one.name == "GB200")


def shown(records: Iterable[Fact], gpu: str) -> str:
    tree = " ".join(as_tree(snapshot_of(records).topology).split())
    return tree.partition(f"GPU {gpu}, 63.0 GB/s, ")[2].partition(" pci0000")[0]


def test_in_the_tree() -> None:
    records = board(down=[(0, 0), (3, 17), *((2, n) for n in range(18))])
    records = [replace(one, active=False, remote=SWITCHES[3]) if one.key == "gpu0/nvlink7" else one for one in records]
    assert [shown(records, f"gpu{n}") for n in range(4)] == [
        f"10de:2330, memory 3350.0 GB/s, {links}"
        for links in (
            "16 of 18 x NVLink 400.0 of 450.0 GB/s to 4 NVSwitches; down: gpu0/nvlink0, gpu0/nvlink7 to 0000:d3:00.0",
            "18 x NVLink 450.0 GB/s to 4 NVSwitches",
            "0 of 18 x NVLink to nvfabric",
            "17 of 18 x NVLink 425.0 of 450.0 GB/s to 4 NVSwitches; down: gpu3/nvlink17",
        )
    ]
    pair = [*machine(2, UNKNOWN), *(link(a, n, address(1 - a), "gpu") for a in range(2) for n in range(2))]
    assert [shown(pair, f"gpu{n}") for n in range(2)] == [f"10de:9999, 2 x NVLink to gpu{n}" for n in (1, 0)]


@st.composite
def driver_facts(draw: st.DrawFn) -> list[Fact]:
    """Four GPUs and a switch, and links with any other end."""
    remotes = st.sampled_from([None, *(address(n) for n in range(4)), SWITCHES[0], "0000:ff:00.0", "odd"])
    kinds = st.sampled_from([None, "gpu", "switch", "cpu"])
    keys = draw(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), unique=True, max_size=20))
    records = machine(4, draw(st.sampled_from([H100, A100_PCIE, UNKNOWN])), nvlinks=draw(st.none() | st.integers(0, 3)))
    records.append(function(SWITCHES[0], 0x068000))
    media = st.sampled_from(["nvlink", "c2c", "xgmi", None])
    up = st.sampled_from([True, False, None])
    for gpu, number in keys:
        one = replace(link(gpu, number, draw(remotes), draw(kinds)), active=draw(up), kind=draw(media))
        records.append(one)
    return records


@given(driver_facts())
def test_whatever_drivers_tell(records: list[Fact]) -> None:
    snapshot = snapshot_of(records)
    known = gpu_links(snapshot.facts)
    devices = {device.id for device in snapshot.topology.devices}
    for key, one in known.items():
        assert one.a != one.b
        assert {one.a, one.b} <= devices
        assert key == one.id or known[one.id] is one  # a link whose two ends have the same name
        assert one in snapshot.topology.links
    ids = [one.id for one in snapshot.topology.links]
    assert len(ids) == len(set(ids))
