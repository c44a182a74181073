"""Routes, shares and rates: properties of any machine."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.models.facts.pcie_rates import WIDTHS, generation, rated, speed_of
from linkgauge.models.facts.records import Flow
from linkgauge.models.graph.fair_share import shares
from linkgauge.models.graph.routes import PATH_TYPES, RateOf, Route, active, limited, path_type, route, routes
from linkgauge.models.graph.routes import rated as rate_of
from linkgauge.models.graph.topology import FORWARDS, INSIDE, Device, Hop, Link, Topology
from tests.support.nodes.drawn_nodes import nodes as drawn

GPUS = tuple(f"gpu{number}" for number in range(6))


@st.composite
def machines(draw: st.DrawFn) -> Topology:
    """Two sockets, some switches, six GPUs under them, NVLink or not, links of any rate."""
    rates = st.floats(1e9, 1e12)
    switches = draw(st.integers(1, 3))
    devices = [Device("numa0", "numa"), Device("numa1", "numa"), Device("package", "package")]
    links = [Link(f"package>numa{n}", "package", f"numa{n}", "memory") for n in range(2)]
    for number in range(switches):
        devices.append(Device(f"switch{number}", "upstream-port"))
        home = f"numa{number % 2}"
        links.append(Link(f"{home}>switch{number}", home, f"switch{number}", "pcie", draw(rates)))
    for number, gpu in enumerate(GPUS):
        devices.append(Device(gpu, "gpu"))
        above = f"switch{number % switches}"
        links.append(Link(f"{above}>{gpu}", above, gpu, "pcie", draw(rates), None, draw(st.none() | rates)))
    if draw(st.booleans()):
        devices.append(Device("fabric", "fabric"))
        links += [
            Link(f"{gpu}/{n}", gpu, "fabric", "nvlink", 25e9) for gpu in GPUS for n in range(draw(st.integers(1, 4)))
        ]
    return Topology(tuple(devices), tuple(links))


ends = st.permutations(GPUS).map(lambda order: (order[0], order[1]))
flows = st.lists(
    st.builds(Flow, st.just("copy"), ends, via=st.sampled_from(["", "pcie"])), min_size=1, max_size=12, unique=True
)


def load(topology: Topology, got: Mapping[Flow, float]) -> dict[Hop, float]:
    loads: dict[Hop, float] = {}
    for flow, share in got.items():
        for hop in route(topology, flow.ends[0], flow.ends[1], flow.via) or ():
            loads[hop] = loads.get(hop, 0.0) + share
    return loads


@given(machines(), flows)
def test_no_hop_is_filled_beyond_its_rate(topology: Topology, together: list[Flow]) -> None:
    for hop, filled in load(topology, shares(topology, together, rate_of)).items():
        assert filled <= rate_of(hop) * (1 + 1e-9)


@given(machines(), flows)
def test_every_flow_is_stopped_by_a_full_hop(topology: Topology, together: list[Flow]) -> None:
    got = shares(topology, together, rate_of)
    loads = load(topology, got)
    for flow in together:
        path = route(topology, flow.ends[0], flow.ends[1], flow.via) or ()
        assert any(loads[hop] >= rate_of(hop) * (1 - 1e-9) for hop in path)


@given(machines(), flows, st.randoms())
def test_the_order_of_flows_does_not_matter(topology: Topology, together: list[Flow], random: object) -> None:
    shuffled = list(together)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert shares(topology, shuffled, rate_of) == pytest.approx(shares(topology, together, rate_of))


@given(machines(), flows, st.data())
def test_a_narrower_hop_never_raises_the_smallest_share(
    topology: Topology, together: list[Flow], data: st.DataObject
) -> None:
    link = data.draw(st.sampled_from([link for link in topology.links if link.rated]))
    before = min(shares(topology, together, rate_of).values())
    after = min(shares(topology, together, limited({link.id: (link.rated or 0) / 3})).values())
    assert after <= before * (1 + 1e-9)


@given(machines(), st.data())
def test_a_further_parallel_link_never_lowers_a_hop(topology: Topology, data: st.DataObject) -> None:
    link = data.draw(st.sampled_from([link for link in topology.links if link.rated]))
    more = Topology(topology.devices, (*topology.links, replace(link, id="further")))
    path = route(topology, link.a, link.b)
    wider = route(more, link.a, link.b)
    assert path
    assert wider
    assert rate_of(wider[0]) == pytest.approx(rate_of(path[0]) + (link.rated or 0))


def plainly(topology: Topology, source: str, via: str, rate: RateOf) -> dict[str, Route]:
    """The rules of routes(), without its optimisations."""
    found: dict[str, Route] = {source: ()}
    waiting = [source]
    for here in waiting:  # which grows
        last = found[here][-1].links[0].kind if found[here] else "member"
        if topology.by_name[here].kind == "array" and found[here]:
            continue  # no path leads from one member to another through the array
        for hop in topology.hops.get(here, ()):
            kind = hop.links[0].kind
            passes = topology.by_name[here].kind in FORWARDS or last in INSIDE or kind in INSIDE
            wanted = kind not in ("nvlink", "xgmi", "c2c") if via == "pcie" else via in ("", kind) or kind in INSIDE
            if hop.receiver not in found and passes and wanted and rate(hop) > 0:
                found[hop.receiver] = (*found[here], hop)
                waiting.append(hop.receiver)
    return found


@given(drawn(), st.data())
def test_earlier_calls_do_not_change_a_path(topology: Topology, data: st.DataObject) -> None:
    names = st.sampled_from([device.id for device in topology.devices])
    dead = limited({link.id: 0.0 for link in data.draw(st.lists(st.sampled_from(topology.links), max_size=3))})
    for _ in range(8):
        source, target = data.draw(names), data.draw(names)
        via = data.draw(st.sampled_from(["", "pcie", "nvlink"]))
        rate = data.draw(st.sampled_from([rate_of, active, dead]))
        expected = plainly(topology, source, via, rate)
        assert route(topology, source, target, via, rate) == expected.get(target)
        if data.draw(st.booleans()):
            assert list(routes(topology, source, via, rate).items()) == list(expected.items())
        assert next(iter(routes(topology, source, via, rate))) == source
        assert len(routes(topology, source, via, rate)) == len(expected)


def test_searches_are_forgotten_when_there_are_many() -> None:
    gpus = [f"gpu{n}" for n in range(300)]
    devices = (Device("switch", "upstream-port"), *(Device(gpu, "gpu") for gpu in gpus))
    topology = Topology(devices, tuple(Link(gpu, "switch", gpu, "pcie", 1e9) for gpu in gpus))
    for _ in range(2):
        assert all(len(route(topology, gpu, "gpu7") or ()) == 2 for gpu in gpus if gpu != "gpu7")
    assert len(topology.searches) <= 256


@given(machines())
def test_gpus_never_forward(topology: Topology) -> None:
    for path in routes(topology, "gpu0").values():
        assert not {hop.sender for hop in path[1:]} & set(GPUS)


def test_both_directions_have_their_own_rate() -> None:
    c2c = Link("c2c", "numa0", "gpu0", "c2c", 450e9, None, 400e9)
    topology = Topology((Device("numa0", "numa"), Device("gpu0", "gpu")), (c2c,))
    down, up = Flow("copy", ("numa0", "gpu0")), Flow("copy", ("gpu0", "numa0"))
    assert shares(topology, [down, up], rate_of) == {down: 450e9, up: 400e9}


TREE = Topology(
    tuple(
        Device(name, kind)
        for name, kind in {
            "package0": "package",
            "package1": "package",
            "numa0": "numa",
            "numa1": "numa",
            "root0": "host-bridge",
            "root1": "host-bridge",
            "root2": "host-bridge",
            "rp0": "root-port",
            "rp1": "root-port",
            "rp2": "root-port",
            "rp3": "root-port",
            "up0": "upstream-port",
            "dn0": "downstream-port",
            "dn1": "downstream-port",
            "up1": "upstream-port",
            "dn2": "downstream-port",
            "a": "gpu",
            "b": "gpu",
            "c": "gpu",
            "d": "gpu",
            "e": "gpu",
            "f": "gpu",
            "a1": "nic",
            "x": "gpu",
            "y": "gpu",
            "fabric": "fabric",
            "cpu": "numa",
            "grace": "gpu",
        }.items()
    ),
    tuple(
        Link(f"{a}>{b}", a, b, kind)
        for a, b, kind in (
            ("package0", "package1", "interconnect"),
            ("package0", "numa0", "memory"),
            ("package1", "numa1", "memory"),
            ("numa0", "root0", "internal"),
            ("numa0", "root1", "internal"),
            ("numa1", "root2", "internal"),
            ("root0", "rp0", "internal"),
            ("root0", "rp1", "internal"),
            ("root1", "rp2", "internal"),
            ("root2", "rp3", "internal"),
            ("rp0", "up0", "pcie"),
            ("up0", "dn0", "internal"),
            ("up0", "dn1", "internal"),
            ("dn0", "a", "pcie"),
            ("a", "a1", "function"),
            ("dn1", "up1", "pcie"),
            ("up1", "dn2", "internal"),
            ("dn2", "b", "pcie"),
            ("dn1", "c", "pcie"),
            ("rp1", "d", "pcie"),
            ("rp2", "e", "pcie"),
            ("rp3", "f", "pcie"),
            ("x", "fabric", "nvlink"),
            ("y", "fabric", "nvlink"),
            ("cpu", "grace", "c2c"),
        )
    ),
)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("a", "a", "LOC"),
        ("a", "a1", "LOC"),
        ("a", "c", "PIX"),
        ("a", "b", "PXB"),
        ("a", "d", "PHB"),
        ("a", "e", "NODE"),
        ("a", "f", "SYS"),
        ("a1", "f", "SYS"),
        ("x", "y", "NVL"),
        ("cpu", "grace", "C2C"),
        ("a", "numa0", "PHB"),
    ],
)
def test_path_types(source: str, target: str, expected: str) -> None:
    path = route(TREE, source, target)
    assert path is not None
    assert path_type(TREE, path) == expected
    assert expected in PATH_TYPES


def test_equal_hops_are_one() -> None:
    one, two = (route(Topology(TREE.devices, TREE.links), "a", "f") or () for _ in range(2))
    assert len({*one, *two}) == len(one) == 11


def test_no_path() -> None:
    assert route(TREE, "a", "x") is None
    assert route(TREE, "a", "nothing") is None
    assert route(TREE, "nothing", "a") is None


# hwloc's private/misc.h and the specifications: one direction, x16.
@pytest.mark.parametrize(
    ("number", "gigabytes"), [(1, 4.0), (2, 8.0), (3, 15.754), (4, 31.508), (5, 63.015), (6, 121.0), (7, 242.0)]
)
def test_rates_of_each_generation(number: int, gigabytes: float) -> None:
    assert rated(speed_of(number), 16) == pytest.approx(gigabytes * 1e9, rel=1e-4)
    assert generation(speed_of(number)) == number


@given(st.integers(1, 7), st.sampled_from(WIDTHS), st.sampled_from(WIDTHS))
def test_rates_grow_with_width_and_generation(number: int, width: int, other: int) -> None:
    assert (rated(speed_of(number), width) < rated(speed_of(number), other)) == (width < other)
    if number < 7:
        assert rated(speed_of(number + 1), width) > rated(speed_of(number), width)


def test_no_such_generation() -> None:
    assert generation(3e9) is None
    with pytest.raises(IndexError):
        speed_of(8)
    with pytest.raises(IndexError):
        speed_of(0)
