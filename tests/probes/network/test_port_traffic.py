"""How much jobs send through ports: the highest rate of a second, from counters as they stand."""

from __future__ import annotations

import errno

from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.counters import TRAFFIC
from linkgauge.models.facts.jsonl import encode
from linkgauge.models.facts.records import Evidence, Observation
from linkgauge.probes.host.entries import Entry, UnreadableFile
from linkgauge.probes.network.net import read_net
from linkgauge.probes.network.port_traffic import PortTraffic, read_traffic
from linkgauge.probes.network.rdma import read_rdma
from linkgauge.probes.sysfs.counter_peaks import Peaks
from tests.support.nodes.daemon_nodes import Breaking
from tests.support.nodes.described import node
from tests.support.nodes.trees import tree

PORT = "sys/class/infiniband/mlx5_0/ports/1"
SENT, RECEIVED = f"{PORT}/counters/port_xmit_data", f"{PORT}/counters/port_rcv_data"
EFA = "sys/class/infiniband/rdmap79s0/ports/1/hw_counters/tx_bytes"
GIGABYTE = 250_000_000  # of units of four bytes


class Traffic:
    """Looks at counters that stand as the test says, when it says."""

    def __init__(self) -> None:
        self.now = 0.0
        self.host = Breaking(tree({}))
        self.traffic = PortTraffic(lambda: self.now)

    def at(self, now: float, **counters: int | Entry) -> None:
        names = {"sent": SENT, "received": RECEIVED, "efa": EFA}
        texts = {names[name]: str(n) if isinstance(n, int) else n for name, n in counters.items()}
        self.now, self.host.recorded = now, tree(texts)
        self.traffic.sample(self.host)

    def rates(self) -> dict[str, float]:
        return {str(one.about): one.value for one in self.traffic.peaks(self.host)}


def test_the_highest_second_of_either_direction() -> None:
    traffic = Traffic()
    for now, sent, received in ((0, 0, 0), (1, 10, 5), (2, 30, 5), (3, 31, 35), (4, 32, 36)):
        traffic.at(now, sent=sent * GIGABYTE, received=received * GIGABYTE)
    assert list(traffic.traffic.peaks(traffic.host)) == [
        Observation(
            about="mlx5_0/1",
            quantity="port_traffic",
            unit="bytes_per_second",
            value=30e9,
            at=1000,
            busy=True,
            evidence=Evidence(RECEIVED, "30.00 GB/s in one second of a job's traffic"),
        )
    ]
    assert traffic.rates() == {}  # since it was asked last


def test_each_port_in_its_own_unit() -> None:
    traffic = Traffic()
    traffic.at(0, sent=0, efa=0)
    traffic.at(2, sent=2 * GIGABYTE, efa=6 * 10**9)
    assert traffic.rates() == {"mlx5_0/1": 1e9, "rdmap79s0/1": 3e9}


def test_over_a_longer_time_a_full_second_is_not_seen() -> None:
    traffic = Traffic()
    traffic.at(0, sent=0)
    traffic.at(4, sent=100 * GIGABYTE)
    assert traffic.rates() == {}
    traffic.at(5, sent=101 * GIGABYTE)
    assert traffic.rates() == {"mlx5_0/1": 1e9}


def test_management_is_no_job() -> None:
    traffic = Traffic()
    traffic.at(0, sent=0)
    traffic.at(1, sent=GIGABYTE // 25)
    assert traffic.rates() == {}


def test_counters_that_are_reset_refused_or_no_numbers_say_nothing() -> None:
    for after in (0, "N/A (not supported)", "", UnreadableFile(errno.EINVAL, "Invalid argument"), "9" * 5000):
        traffic = Traffic()
        traffic.at(0, sent=9 * GIGABYTE)
        traffic.at(1, sent=after)
        traffic.at(2, sent=after)
        assert traffic.rates() == {}


def test_ports_that_come_and_go() -> None:
    traffic = Traffic()
    traffic.at(0, sent=0)
    traffic.at(1)
    traffic.at(2, sent=9 * GIGABYTE)  # counted from nothing to that in no second
    assert traffic.rates() == {}
    traffic.at(3, sent=9 * GIGABYTE, efa=0)
    traffic.at(4, sent=10 * GIGABYTE, efa=10**9)
    assert traffic.rates() == {"mlx5_0/1": 1e9, "rdmap79s0/1": 1e9}


@given(st.lists(st.tuples(st.floats(0.01, 9), st.integers(0, 10**13)), max_size=20))
def test_no_rate_is_above_what_was_counted(steps: list[tuple[float, int]]) -> None:
    traffic, now, sent, most = Traffic(), 0.0, 0, 0.0
    traffic.at(now, sent=sent)
    for span, units in steps:
        now, sent = now + span, sent + units
        traffic.at(now, sent=sent)
        most = max(most, units * 4 / span)
    assert all(50e6 < rate <= most * 1.001 for rate in traffic.rates().values())


def test_a_stall_between_two_ports_makes_no_rate() -> None:
    """Each count has its own time: what is read later has counted longer."""
    peaks = Peaks()
    for now in range(4):
        late = 0.25 if now == 2 else 0.0
        peaks.sample("first", "sent", now, 31 * now)
        peaks.sample("second", "sent", now + late, 31 * 10**9 * now + round(31e9 * late))
    assert {thing: round(rate) for thing, (rate, _) in peaks.taken().items()} == {"second": 31 * 10**9}


def test_the_byte_counters_are_those_of_the_complete_sources() -> None:
    host = node(
        "hgx-h100", "[device.mlx5_2]\ncounters = {port_rcv_data = 5}\n[device.eth0]\ncounters = {rx_bytes = 7}\n"
    )
    every = [one for one in (*read_rdma(host), *read_net(host)) if isinstance(one, Observation)]
    counted = [one for one in every if one.quantity in TRAFFIC]
    found = list(read_traffic(host))
    assert sorted(map(encode, found)) == sorted(map(encode, counted))
    assert {one.value for one in counted} == {0.0, 7.0, 20.0}
