"""Writes of several GPUs that a chipset limits far below their fair share."""

from __future__ import annotations

import pytest

from linkgauge.agent.pipeline.diagnose import read_snapshot
from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.models.bandwidth.predict import predict
from linkgauge.models.facts.records import Flow
from linkgauge.models.graph.topology import Topology
from linkgauge.models.site.schema import Site
from tests.support.nodes.described import node


def topology() -> Topology:
    """Eight cards, two below each of four PEX890xx, on two EPYC Turin."""
    return read_snapshot(node("rtx-pro-6000"), SOURCES, Site()).topology


def copies(*pairs: tuple[int, int]) -> list[Flow]:
    return [Flow("copy", (f"gpu{a}", f"gpu{b}")) for a, b in pairs]


@pytest.mark.parametrize(
    ("flows", "gigabytes"),
    [
        (copies((0, 2), (1, 4)), 2.7),  # two senders below one switch, two root ports
        (copies((0, 2), (1, 4), (0, 6)), 2.7),
        (copies((0, 2), (1, 3)), 55.6),  # both below one root port
        (copies((0, 2), (0, 4)), 50.0),  # one sender, which crosses sockets with one of them
        (copies((0, 1)), 54.8),  # below one switch
        ([Flow("copy", ("gpu0", "numa0")), Flow("copy", ("gpu1", "numa1"))], 55.6),  # no peers
        (
            [Flow("copy", ("gpu2", "gpu0")), Flow("copy", ("gpu4", "gpu1"))],
            55.6,
        ),  # one sender below each switch, one receiver
    ],
)
def test_writes_from_one_switch(flows: list[Flow], gigabytes: float) -> None:
    assert sum(one.typical for one in predict(topology(), flows).values()) / 1e9 == pytest.approx(gigabytes, rel=0.12)


def test_what_holds_them_is_named_and_nothing_is_alarming_between_the_two_figures() -> None:
    flows = copies((0, 2), (1, 4))
    found = predict(topology(), flows)[flows[0]]
    assert (found.low, found.high) == pytest.approx((0.9 * 1.35e9, 18.5e9))
    assert "Broadcom PEX890xx below EPYC Turin: 2 senders and more together 2.70 GB/s" in found.source


def test_other_processors_are_not_known_to_do_so() -> None:
    other = Topology(
        tuple(d if d.kind != "package" else type(d)(d.id, d.kind, "AMD EPYC 9654") for d in topology().devices),
        topology().links,
    )
    assert sum(one.typical for one in predict(other, copies((0, 2), (1, 4))).values()) > 40e9
