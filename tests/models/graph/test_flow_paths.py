"""The paths of flows and their predictions, on a small machine with simple numbers."""

from __future__ import annotations

import pytest

from linkgauge.models.bandwidth.predict import predict
from linkgauge.models.facts.records import Flow
from linkgauge.models.graph.flow_paths import sub_flows
from linkgauge.models.graph.topology import Device, Link, Topology

GB = 1e9


def pcie(parent: str, device: str, rate: float, grade: str) -> Link:
    return Link(f"{parent}>{device}", parent, device, "pcie", rate * GB, None, None, grade)


def inside(parent: str, device: str, kind: str = "internal") -> Link:
    return Link(f"{parent}>{device}", parent, device, kind)


def group(number: int, numa: str) -> tuple[list[Device], list[Link]]:
    """A switch below a Gen4 x8 link, and below it a GPU and four EFA devices of 100 Gb/s: one eighth of an AWS p5."""
    root, up, gpu = f"root{number}", f"up{number}", f"gpu{number}"
    devices = [
        Device(root, "root-port"),
        Device(up, "upstream-port"),
        Device(gpu, "gpu"),
        Device(f"d{gpu}", "downstream-port"),
    ]
    links = [
        inside(numa, root),
        pcie(root, up, 15.754, "pcie4x8"),
        inside(up, f"d{gpu}"),
        pcie(f"d{gpu}", gpu, 63.015, "pcie5x16"),
    ]
    for n in range(4 * number, 4 * number + 4):
        devices += [
            Device(f"d{n}", "downstream-port"),
            Device(f"nic{n}", "nic", aliases=(f"efa_{n}",)),
            Device(f"efa_{n}/1", "port"),
        ]
        links += [inside(up, f"d{n}"), pcie(f"d{n}", f"nic{n}", 15.754, "pcie4x8")]
        links += [Link(f"nic{n}>efa_{n}/1", f"nic{n}", f"efa_{n}/1", "port", None, 12.5 * GB, None, "efa")]
    links += [Link(f"{gpu}/nvlink{n}", gpu, "nvfabric", "nvlink", 25 * GB, None, None, "nvlink4") for n in range(18)]
    return devices, links


def p5() -> Topology:
    """Two such groups, one a socket, joined by NVLink; and a striped pair of disks."""
    devices = [Device("numa0", "numa"), Device("numa1", "numa"), Device("nvfabric", "fabric")]
    links = [Link("numa0>numa1", "numa0", "numa1", "interconnect")]
    links += [
        Link(f"numa{n}/memory", f"numa{n}", f"numa{n}", "memory", 204.8 * GB, None, None, "ddr4") for n in range(2)
    ]
    for number in range(2):
        more, joined = group(number, f"numa{number}")
        devices, links = devices + more, links + joined
    for n in range(2):
        devices += [Device(f"rootd{n}", "root-port"), Device(f"nvme{n}", "nvme"), Device(f"disk{n}", "disk")]
        links += [inside("numa0", f"rootd{n}"), pcie(f"rootd{n}", f"nvme{n}", 7.877, "pcie4x4")]
        links += [inside(f"nvme{n}", f"disk{n}", "disk"), inside(f"disk{n}", "md0", "member")]
    return Topology((*devices, Device("md0", "array")), tuple(links))


MACHINE = p5()


def predicted(*flows: Flow) -> list[tuple[float, float, str]]:
    """The rated and the typical rate in GB/s, and the bottleneck."""
    found = predict(MACHINE, flows)
    return [
        (round(one.rated / GB, 2), round(one.typical / GB, 1), one.bottleneck.links[0].id)
        for one in map(found.__getitem__, flows)
    ]


def test_from_the_processor_to_a_gpu_the_switch_is_the_bottleneck() -> None:
    assert predicted(Flow("copy", ("numa0", "gpu0"))) == [(15.75, 14.2, "root0>up0")]


def test_gpu_to_gpu_over_three_paths() -> None:
    pair = ("gpu0", "gpu1")
    assert predicted(Flow("copy", pair)) == [(450.0, 396.4, "gpu0/nvlink0")]
    assert predicted(Flow("copy", pair, via="net")) == [(50.0, 40.0, "nic0>efa_0/1")]
    assert predicted(Flow("copy", pair, via="host")) == [(15.75, 3.2, "root0>up0")]


def test_four_nics_and_a_gpu_share_the_uplink_of_their_switch() -> None:
    flows = [Flow("write", (f"efa_{n}", "numa0")) for n in range(4)] + [Flow("copy", ("gpu0", "numa0"))]
    assert sum(one.typical for one in predict(MACHINE, flows).values()) == pytest.approx(14.2 * GB)
    assert {bottleneck for _, _, bottleneck in predicted(*flows)} == {"root0>up0"}


def test_directions_are_independent_without_a_measurement_of_both() -> None:
    down, up = Flow("copy", ("numa0", "gpu0")), Flow("copy", ("gpu0", "numa0"))
    assert predicted(down, up) == [*predicted(down), *predicted(up)]


def test_all_gpus_leave_by_all_their_nics() -> None:
    assert predicted(Flow("egress", ("gpu0", "gpu1"))) == [(100.0, 80.0, "nic0>efa_0/1")]


def test_a_striped_array_reads_both_its_disks() -> None:
    assert predicted(Flow("read", ("md0", "numa0"))) == [(15.75, 13.8, "rootd0>nvme0")]


def test_memory_alone() -> None:
    assert predicted(Flow("triad", ("numa0",))) == [(204.8, 170.0, "numa0/memory")]
    assert predict(MACHINE, [Flow("copy", ("numa0",))]) == {}


def test_memory_that_is_written_and_read_counts_twice() -> None:
    (sub_flow,) = sub_flows(MACHINE, Flow("copy", ("gpu0", "gpu1"), via="host"))
    assert [hop.links[0].id for hop in sub_flow[0]].count("numa0/memory") == 2


def test_a_ring_over_nvlink_uses_all_links() -> None:
    assert predicted(Flow("all_reduce", ("gpu0", "gpu1"))) == [(450.0, 355.9, "gpu0/nvlink0")]


def test_messages_of_a_mebibyte_do_not_reach_the_rate() -> None:
    long, short = Flow("copy", ("numa0", "gpu0")), Flow("copy", ("numa0", "gpu0"), 1 << 20)
    rate = predict(MACHINE, [long])[long].typical
    found = predict(MACHINE, [short])[short]
    assert 0.45 * rate < found.low < found.typical < found.high < 0.8 * rate
    assert "64% of that with messages of 1.05 MB" in found.source


def test_a_few_bytes_take_the_latency() -> None:
    flow = Flow("copy", ("numa0", "gpu0"), 8)
    assert predict(MACHINE, [flow])[flow].high <= 8 / 1.4e-6


@pytest.mark.parametrize(
    "flow",
    [
        Flow("copy", ("gpu0", "nowhere")),
        Flow("copy", ("nowhere",)),
        Flow("copy", ()),
        Flow("all_reduce", ("gpu0",)),
        Flow("all_reduce", ("gpu0", "rank7")),
        Flow("copy", ("gpu0", "numa0"), via="nvlink"),
        Flow("copy", ("numa0", "numa1", "gpu0")),
    ],
    ids=str,
)
def test_without_a_path_nothing_is_predicted(flow: Flow) -> None:
    assert predict(MACHINE, [flow]) == {}


def joined(*links: Link) -> Topology:
    """A GPU and memory of the processor, joined by these links; both memories are known."""
    kinds = {
        "gpu0": "gpu",
        "gpu1": "gpu",
        "numa0": "numa",
        "numa1": "numa",
        "nic0": "nic",
        "nic0/1": "port",
        "root": "host-bridge",
    }
    memories = [
        Link(f"{name}/memory", name, name, "memory", 4000 * GB, None, None, "hbm") for name in ("gpu0", "numa0")
    ]
    return Topology(tuple(Device(name, kind) for name, kind in kinds.items()), (*links, *memories))


@pytest.mark.parametrize("kind", ["internal", "pcie"])
def test_memory_is_not_what_holds_a_link_that_a_hypervisor_hides(kind: str) -> None:
    guest = joined(Link("root>gpu0", "root", "gpu0", kind), inside("numa0", "root"))
    flow = Flow("copy", ("numa0", "gpu0"))
    assert [hop.links[0].kind for hop in sub_flows(guest, flow)[0][0]] == ["internal", kind]
    assert predict(guest, [flow]) == {}


def test_one_link_of_unknown_rate_may_be_the_slowest() -> None:
    known, hidden = pcie("root", "gpu0", 31.508, "pcie4x16"), Link("root>nic0", "root", "nic0", "pcie")
    silent = Link("nic0>nic0/1", "nic0", "nic0/1", "port", None, None, None, "roce")
    flow = Flow("write", ("gpu0", "nic0/1"))
    assert predict(joined(known, hidden, silent), [flow]) == {}
    port = Link("nic0>nic0/1", "nic0", "nic0/1", "port", 12.5 * GB, None, None, "roce")
    found = predict(joined(known, hidden, port), [flow])[flow]
    assert (round(found.typical / GB, 2), found.bottleneck.links) == (12.24, (port,))


def test_across_sockets_only_pcie_was_measured() -> None:
    far = (Link("numa0>numa1", "numa0", "numa1", "interconnect", 100 * GB), inside("numa0", "root"))
    c2c = Link("gpu0/c2c0", "gpu0", "numa0", "c2c", 450 * GB, None, None, "c2c4")
    assert predict(joined(*far, c2c), [Flow("copy", ("numa1", "gpu0")), Flow("copy", ("numa0", "numa1"))]) == {}
    slot = pcie("root", "gpu0", 31.508, "pcie4x16")
    for op, ends in (("copy", ("numa1", "gpu0")), ("write", ("gpu0", "numa1"))):
        flow = Flow(op, ends)
        assert round(predict(joined(*far, slot), [flow])[flow].typical / GB, 1) == 22.2


def test_a_short_message_is_expected_only_where_its_curve_is_published() -> None:
    sizes = (4096, 1 << 20, 1 << 26, None)
    copies = [
        predict(MACHINE, [flow])[flow].low / GB for flow in (Flow("copy", ("gpu0", "gpu1"), size) for size in sizes)
    ]
    assert copies == sorted(copies)
    assert copies[1] < 60
    disks = [Flow("read", ("nvme0", "numa0"), size) for size in sizes]
    assert [bool(predict(MACHINE, [flow])) for flow in disks] == [False, False, True, True]


@pytest.mark.parametrize("ends", [("numa0", "gpu0"), ("gpu0", "numa0")])
@pytest.mark.parametrize("generation", range(3, 6))
def test_half_the_width_is_below_low(generation: int, ends: tuple[str, str]) -> None:
    rate = {3: 15.754, 4: 31.508, 5: 63.015}[generation]
    flow = Flow("copy", ends, 256 << 20)
    whole, half = (
        predict(joined(inside("numa0", "root"), pcie("root", "gpu0", rate / n, f"pcie{generation}x{16 // n}")), [flow])
        for n in (1, 2)
    )
    assert half[flow].high < whole[flow].low


def test_what_joins_sockets_limits_nothing_whatever_its_grade() -> None:
    link = Link("0>1", "numa0", "numa1", "interconnect", GB, None, None, "pcie5x16")
    topology = Topology((Device("numa0", "numa"), Device("numa1", "numa")), (link,))
    assert predict(topology, [Flow("copy", ("numa0", "numa1"))]) == {}
