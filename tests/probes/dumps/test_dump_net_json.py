"""JSON of ip, rdma link and rdma dev."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import Net, Port, Rdma
from linkgauge.models.facts.records import Evidence, NotChecked, Observation, Record
from linkgauge.probes.dumps import recognise
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.network import net_json

AT = 1795230000.0
IP: list[dict[str, Any]] = [
    {"ifindex": 1, "ifname": "lo", "flags": ["LOOPBACK", "UP", "LOWER_UP"], "mtu": 65536, "link_type": "loopback"},
    {
        "ifindex": 2,
        "ifname": "eth0",
        "flags": ["BROADCAST"],
        "mtu": 9000,
        "link_type": "ether",
        "stats64": {"rx": {"bytes": 100, "packets": 5, "errors": 1, "dropped": 0}, "tx": {"bytes": 200, "errors": 0}},
    },
]
RDMA: list[dict[str, Any]] = [
    {"ifindex": 0, "ifname": "mlx5_0", "port": 1, "lid": 13, "lmc": 0, "state": "ACTIVE", "physical_state": "LINK_UP"},
    {"ifindex": 1, "ifname": "mlx5_1", "port": 2, "state": "DOWN", "physical_state": "DISABLED", "netdev": "eth2"},
]


SAMPLES = (json.dumps(IP), json.dumps(RDMA, indent=4))


def read(text: str) -> list[Record]:
    assert recognise(text)
    return list(net_json.read(Part("f", 1, text, AT)))


def at(name: str, line: int = 1) -> Evidence:
    return Evidence(f"f:{line}", name)


def seen(quantity: str, unit: str, value: float) -> Observation:
    cite = at(f"eth0 {quantity.replace('_', ' ')} {value:.0f}")
    return Observation(about="eth0", quantity=quantity, unit=unit, value=value, at=AT, evidence=cite)


def test_network_devices_and_what_they_counted() -> None:
    lo, eth = at("lo"), at("eth0")
    assert read(json.dumps(IP)) == [
        Net(
            key="lo",
            enabled=True,
            carrier=True,
            mtu=65536,
            link_type="loopback",
            cites=dict.fromkeys(("enabled", "carrier", "mtu", "link_type"), lo),
        ),
        Net(
            key="eth0",
            enabled=False,
            mtu=9000,
            link_type="ethernet",
            cites=dict.fromkeys(("enabled", "mtu", "link_type"), eth),
        ),
        seen("rx_bytes", "bytes", 100.0),
        seen("rx_errors", "count", 1.0),
        seen("tx_bytes", "bytes", 200.0),
        seen("tx_errors", "count", 0.0),
    ]


def test_rdma_devices_and_ports() -> None:
    one, two = at("mlx5_0", 2), at("mlx5_1", 2)
    assert read("\n" + json.dumps(RDMA, indent=4)) == [
        Rdma(key="mlx5_0"),
        Port(
            key="mlx5_0/1",
            device="mlx5_0",
            lid=13,
            physical_state="LinkUp",
            state="ACTIVE",
            cites=dict.fromkeys(("device", "lid", "physical_state", "state"), one),
        ),
        Rdma(key="mlx5_1"),
        Port(
            key="mlx5_1/2",
            device="mlx5_1",
            netdev="eth2",
            physical_state="Disabled",
            state="DOWN",
            cites=dict.fromkeys(("device", "netdev", "physical_state", "state"), two),
        ),
    ]
    dev = [{"ifindex": 0, "ifname": "mlx5_0", "node_type": "ca", "fw": "28.39.1002"}]
    assert read(json.dumps(dev)) == [Rdma(key="mlx5_0", firmware="28.39.1002", cites={"firmware": at("mlx5_0")})]


def test_two_outputs_in_one_file() -> None:
    told = read(json.dumps(IP) + "\n" + json.dumps(RDMA) + "\n")
    assert [one.key for one in told if isinstance(one, Net | Port)] == ["lo", "eth0", "mlx5_0/1", "mlx5_1/2"]


def test_a_text_that_was_cut() -> None:
    (only,) = read(json.dumps(IP)[:-3])
    assert isinstance(only, NotChecked)


@pytest.mark.parametrize("text", ['[{"index": 1}]', '{"ifindex":1}', "[]"])
def test_what_is_no_output(text: str) -> None:
    assert not re.search(net_json.BEGIN, text, re.MULTILINE)


values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from([*IP[1], *RDMA[0], *RDMA[1], "rx", "bytes"]), inner)
    ),
    max_leaves=8,
)


@given(st.lists(values.map(json.dumps) | st.text(max_size=9)).map("\n".join))
def test_any_text(text: str) -> None:
    for one in net_json.read(Part("f", 1, text)):
        assert decode(encode(one)) == one
