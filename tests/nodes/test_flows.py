"""Sub-flows, shares and predictions of flows: laws that hold for any node and any flows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.models.bandwidth.collectives import bus_factor
from linkgauge.models.bandwidth.contention import able
from linkgauge.models.bandwidth.efficiency import ABOVE_THE_WIRE
from linkgauge.models.bandwidth.predict import predict
from linkgauge.models.catalog.links import Links, links
from linkgauge.models.facts.records import Flow
from linkgauge.models.graph.fair_share import fill, shares
from linkgauge.models.graph.flow_paths import sub_flows
from linkgauge.models.graph.routes import RateOf, Route, limited
from linkgauge.models.graph.routes import rated as rate_of
from linkgauge.models.graph.topology import Hop, Topology
from tests.support.nodes.drawn_nodes import copies, flows, loaded, nodes

Loaded = tuple[Topology, list[Flow]]
MORE = 1 + 1e-9  # rounding


def paths_of(topology: Topology, together: Iterable[Flow]) -> list[Route]:
    return [path for flow in together for sub_flow in sub_flows(topology, flow) for path in sub_flow]


def filled(paths: list[Route], rate: RateOf) -> dict[int, float]:
    """The share of each path, each as its own flow."""
    alone = [Flow("copy", (str(number),)) for number in range(len(paths))]
    got = fill({flow: ((path,),) for flow, path in zip(alone, paths, strict=True)}, rate)
    return {number: got[flow].rate for number, flow in enumerate(alone) if flow in got}


def load(paths: list[Route], got: Mapping[int, float]) -> Mapping[Hop, float]:
    loads = Counter[Hop]()
    for number, share in got.items():
        for hop in paths[number]:
            loads[hop] += share  # type: ignore[assignment]
    return loads


def narrowed(topology: Topology, data: st.DataObject) -> RateOf:
    """A link has a third left; one of unknown rate, some."""
    link = data.draw(st.sampled_from(topology.links))
    return limited({link.id: (link.rated or 3e9) / 3})


@given(loaded())
def test_no_hop_is_filled_beyond_its_rate(drawn: Loaded) -> None:
    paths = paths_of(*drawn)
    for hop, full in load(paths, filled(paths, able)).items():
        assert full <= able(hop) * MORE


@given(loaded())
def test_every_path_has_a_full_hop_on_which_no_other_path_has_more(drawn: Loaded) -> None:
    """Max-min fair: a path gets more only if a path with less would get less."""
    paths = paths_of(*drawn)
    got = filled(paths, able)
    loads = load(paths, got)
    for number, share in got.items():
        full = [hop for hop in paths[number] if loads[hop] * MORE >= able(hop)]
        assert any(all(share * MORE >= got[n] for n, path in enumerate(paths) if hop in path) for hop in full)
    for number in set(range(len(paths))) - got.keys():
        assert all(able(hop) == float("inf") for hop in paths[number])


@given(loaded())
def test_a_flow_is_as_fast_as_its_slowest_sub_flow(drawn: Loaded) -> None:
    topology, together = drawn
    got = filled(paths_of(topology, together), able)
    number = 0
    taken = {flow: sub_flows(topology, flow) for flow in together}
    whole = fill(taken, able)
    for flow, several in taken.items():
        sums = []
        for sub_flow in several:
            each = [got.get(number + n, float("inf")) for n in range(len(sub_flow))]
            number += len(sub_flow)
            sums.append(sum(each))
        slowest = min(sums, default=float("inf"))
        assert (whole[flow].rate if flow in whole else float("inf")) == pytest.approx(slowest)


@given(loaded(), st.randoms())
def test_the_order_of_flows_does_not_matter(drawn: Loaded, random: object) -> None:
    topology, together = drawn
    shuffled = list(together)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert shares(topology, shuffled, able) == pytest.approx(shares(topology, together, able))


@given(loaded(), st.data())
def test_a_narrower_hop_never_raises_the_smallest_share(drawn: Loaded, data: st.DataObject) -> None:
    """Of ways: a flow of several may gain on one what it loses on another."""
    topology, together = drawn
    paths = paths_of(topology, together)
    before, after = filled(paths, rate_of), filled(paths, narrowed(topology, data))
    assert min(after.values(), default=0) <= min(before.values(), default=float("inf")) * MORE


@given(loaded(), st.data())
def test_a_fault_is_never_routed_around(drawn: Loaded, data: st.DataObject) -> None:
    topology, together = drawn
    rate = narrowed(topology, data)
    for flow in together:
        assert sub_flows(topology, flow, rate) == sub_flows(topology, flow)


@given(loaded(), st.data())
def test_only_a_hop_without_any_link_left_is_left_out(drawn: Loaded, data: st.DataObject) -> None:
    topology, together = drawn
    link = data.draw(st.sampled_from(topology.links))
    dead = limited({link.id: 0.0})
    for flow in together:
        before, after = sub_flows(topology, flow), sub_flows(topology, flow, dead)
        gone = any(link in hop.links and dead(hop) == 0 for sub_flow in before for path in sub_flow for hop in path)
        assert gone or after == before
        hops = {hop for sub_flow in after for path in sub_flow for hop in path if hop.sender != hop.receiver}
        assert all(dead(hop) > 0 for hop in hops)


@given(nodes(), st.data())
def test_a_further_parallel_link_lowers_no_copy(topology: Topology, data: st.DataObject) -> None:
    flow = data.draw(copies(topology, ("", "pcie", "nvlink", "host")))
    link = data.draw(st.sampled_from([link for link in topology.links if link.a != link.b]))
    more = Topology(topology.devices, (*topology.links, replace(link, id="further")))
    before, after = predict(topology, [flow]).get(flow), predict(more, [flow]).get(flow)
    if before and after:  # a wider hop may leave the copy to one of which nothing is published
        assert after.rated >= before.rated / MORE
        assert after.typical >= before.typical / MORE
    assert before or not after or after.typical <= after.rated * MORE


def carries(hop: Hop) -> float:
    """The rate of a hop. Links between sockets limit no prediction (contention.py)."""
    return float("inf") if hop.links[0].kind == "interconnect" else able(hop)


@given(nodes(), st.data())
def test_what_is_expected_lies_in_order_and_below_what_the_links_can_do(
    topology: Topology, data: st.DataObject
) -> None:
    flow = data.draw(flows(topology))
    assume(flow.op not in ABOVE_THE_WIRE)
    most = fill({flow: sub_flows(topology, flow)}, carries)
    for one in predict(topology, [flow]).values():
        assert 0 < one.low <= one.typical * MORE
        assert one.typical <= one.high * MORE
        # Switches that reduce send each byte once: the bus bandwidth can be above the rate of the wire.
        reduced = "reductions in the switches" in one.source
        factor = max(1.0, bus_factor(flow.op, len(flow.ends))) if reduced else 1.0
        assert one.high <= most[flow].rate * factor * MORE


@given(loaded())
def test_what_is_expected_of_flows_at_once_fits_into_every_hop(drawn: Loaded) -> None:
    topology, together = drawn
    single = [flow for flow in together if [len(sub_flow) for sub_flow in sub_flows(topology, flow)] == [1]]
    predicted = predict(topology, single)
    paths = [sub_flows(topology, flow)[0][0] for flow in predicted]
    for bound in ("low", "typical"):  # high is the most that each may get, not all of them
        rates = {number: getattr(one, bound) for number, one in enumerate(predicted.values())}
        assert all(rate > 0 for rate in rates.values())
        for hop, full in load(paths, rates).items():
            assert full <= carries(hop) * MORE


@given(nodes(), st.data())
def test_better_measurements_lower_no_copy(topology: Topology, data: st.DataObject) -> None:
    flow = data.draw(copies(topology, ("", "pcie", "nvlink", "host")))
    assume(all(len(sub_flow) == 1 for sub_flow in sub_flows(topology, flow)))
    better = data.draw(st.sets(st.integers(0, len(links().measured) - 1), max_size=20))
    rows = (
        msgspec.structs.replace(row, rate=row.rate * 1.1) if number in better else row
        for number, row in enumerate(links().measured)
    )
    known = Links(like=links().like, measured=tuple(rows), sized=links().sized)
    before, after = predict(topology, [flow]).get(flow), predict(topology, [flow], known).get(flow)
    if before and after:
        assert (after.low, after.typical, after.high) >= (before.low, before.typical, before.high)
