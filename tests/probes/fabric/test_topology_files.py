"""Leaves of nodes and ports from the files and outputs of other tools."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.fabric.wiring import Port, Wiring, merged, named, of_rails
from linkgauge.probes.fabric.lldp import read_lldpctl, read_networkctl
from linkgauge.probes.fabric.read import read

CONF = """\
# Tree of slurm.conf(5)
SwitchName=leaf0 Nodes=node[0-1] LinkSpeed=100
switchname=leaf1 \\
   nodes=node2,gpu[01-02]
SwitchName=spine Switches=leaf[0-1]
"""
YAML = """\
---
- topology: default
  cluster_default: true
  tree:
    switches:
      - switch: spine
        children: leaf[0-1]
      - switch: leaf0
        nodes: node[0-1]
      - switch: "leaf1"   # of rack 2
        nodes: node2,gpu[01-02]
"""
TREE = Wiring(
    {"node0": "leaf0", "node1": "leaf0", "node2": "leaf1", "gpu01": "leaf1", "gpu02": "leaf1"},
    {},
    {"leaf0": "spine", "leaf1": "spine"},
    {
        **dict.fromkeys(("node0", "node1"), {"leaf": "leaf0", "spine": "spine"}),
        **dict.fromkeys(("node2", "gpu01", "gpu02"), {"leaf": "leaf1", "spine": "spine"}),
    },
)
EC2 = {
    "Instances": [
        {"InstanceId": "i-0a", "InstanceType": "p5.48xlarge", "NetworkNodes": ["nn-1", "nn-2", "nn-3"], "ZoneId": "x"},
        {"InstanceId": "i-0b", "NetworkNodes": ["nn-1", "nn-2", "nn-4"]},
        {"InstanceId": "i-0c"},
    ]
}
IBNETDISCOVER = """\
#
# Topology file: generated on Sat Nov 21 03:00:00 2026
#
vendid=0x2c9
devid=0xd2f0
sysimgguid=0xb8cef60300aa0000
switchguid=0xb8cef60300aa0000(b8cef60300aa0000)
Switch\t41 "S-b8cef60300aa0000"\t\t# "leaf01" enhanced port 0 lid 1 lmc 0
[1]\t"H-0c42a103001b2c3d"[1](c42a103001b2c3d) \t\t# "node1 mlx5_0" lid 5 4xHDR
[2]\t"H-0c42a103001b2c4d"[1](c42a103001b2c4d) \t\t# "node2 HCA-1" lid 6 4xHDR
[36]\t"S-b8cef60300aa0002"[3]\t\t# "spine01" lid 2 4xHDR

vendid=0x2c9
devid=0xd2f0
Switch\t41 "S-b8cef60300aa0001"\t\t# "leaf02" enhanced port 0 lid 3 lmc 0
[7]\t"H-0c42a103001b2c5d"[1](c42a103001b2c5d) \t\t# "node1 mlx5_1" lid 7 4xHDR

vendid=0x2c9
Ca\t1 "H-0c42a103001b2c3d"\t\t# "node1 mlx5_0"
[1](c42a103001b2c3d) \t"S-b8cef60300aa0000"[1]\t\t# lid 5 lmc 0 "leaf01" lid 1 4xHDR
"""


@pytest.mark.parametrize("text", [CONF, YAML])
def test_both_files_of_slurm_give_the_tree(text: str) -> None:
    assert read(text) == TREE


def test_blocks_are_leaves() -> None:
    assert read("BlockName=b1 Nodes=node[1-2]\nBlockSizes=2\n").leaves == {"node1": "b1", "node2": "b1"}


def test_the_nearest_network_node_of_ec2_is_the_leaf() -> None:
    wiring = read(json.dumps(EC2))
    assert wiring.leaves == {"i-0a": "nn-3", "i-0b": "nn-4"}
    assert wiring.above == {"nn-3": "nn-2", "nn-4": "nn-2"}
    assert wiring.labels["i-0b"] == {"leaf": "nn-4", "spine": "nn-2", "core": "nn-1", "zone": ""}
    ours = named(wiring, {"node1": ("host1", "i-0a"), "node2": ("i-0b",)})
    assert ours.leaves == {"node1": "nn-3", "node2": "nn-4"}


def test_ibnetdiscover_has_each_port() -> None:
    assert read(IBNETDISCOVER) == Wiring(
        {"node1/mlx5_0/1": "leaf01", "node1/mlx5_1/1": "leaf02", "node2": "leaf01"},
        {"node1/mlx5_0/1": "port 1", "node1/mlx5_1/1": "port 7", "node2": "port 2"},
        {"leaf01": "spine01"},
    )


def test_ports_have_the_names_of_the_plan() -> None:
    rails = {"node1": {"a": "mlx5_0/1", "b": "mlx5_1/1"}, "node2": {"": "mlx5_0/1"}, "node3": {"": "eth0"}}
    wiring = of_rails(read(IBNETDISCOVER), rails)
    assert wiring.place(Port("node1", "b")) == "leaf02 port 7"
    assert wiring.place(Port("node2")) == "leaf01 port 2"
    assert wiring.place(Port("node3")) == ""


def test_the_first_source_counts() -> None:
    assert merged([Wiring({"a": "x"}), Wiring({"a": "y", "b": "z"})]).leaves == {"a": "x", "b": "z"}


@pytest.mark.parametrize("text", ["", "{}", "hello", '{"NetworkNodes": 1, "Instances": 3}', "SwitchName=a Switches=b"])
def test_other_texts_are_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read(text)


@given(st.text(max_size=200), st.sampled_from([CONF, YAML, IBNETDISCOVER, json.dumps(EC2)]), st.integers(0, 900))
def test_any_change_of_a_file_gives_leaves_or_an_error(noise: str, text: str, place: int) -> None:
    with suppress(ValueError):
        assert read(text[:place] + noise + text[place:]).leaves


ETH0 = {
    "chassis": {"leaf1": {"id": {"type": "mac", "value": "aa"}}},
    "port": {"id": {"type": "ifname", "value": "swp6"}},
}
ETH1 = {
    "chassis": {"id": {"type": "mac", "value": "bb"}, "descr": "a switch without a name"},
    "port": {"descr": "Ethernet7"},
}


def test_lldpctl_names_switch_and_port() -> None:
    several = {"lldp": {"interface": [{"eth0": ETH0}, {"eth1": ETH1}]}}
    assert read_lldpctl(json.dumps(several)) == {"eth0": ("leaf1", "swp6"), "eth1": ("bb", "Ethernet7")}
    assert read_lldpctl(json.dumps({"lldp": {"interface": {"eth0": ETH0}}})) == {"eth0": ("leaf1", "swp6")}
    assert read_lldpctl('{"lldp": {}}') == {}


def test_networkctl_names_switch_and_port() -> None:
    one = {"InterfaceName": "eth0", "Neighbors": [{"ChassisID": "aa", "SystemName": "leaf1", "PortID": "swp6"}]}
    assert read_networkctl(json.dumps({"Neighbors": [one]})) == {"eth0": ("leaf1", "swp6")}
    assert read_networkctl("{}") == {}


VALUES = st.recursive(
    st.none() | st.text(max_size=5) | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["lldp", "interface", "chassis", "id", "Neighbors", "eth0", "port"]), inner)
    ),
    max_leaves=20,
)


@given(VALUES)
def test_any_json_gives_neighbours_or_none(value: object) -> None:
    text = json.dumps(value)
    for known in (read_lldpctl(text), read_networkctl(text)):
        assert all(isinstance(device, str) and switch for device, (switch, _) in known.items())
