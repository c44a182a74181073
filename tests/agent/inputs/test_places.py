"""Files of other systems that say where a node is, as labels of linkgauge_node_info and cables in tickets."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.agent.cli.main import main
from linkgauge.agent.inputs.places import place_of
from linkgauge.agent.inputs.site_file import BadInput, site
from linkgauge.probes.fabric.place import Place
from linkgauge.probes.host.recorded import dump
from tests.support.nodes.described import node

NODES = frozenset({"n017", "i-0abc"})
TREE = """
- topology: topo1
  cluster_default: true
  tree:
    switches:
      - switch: core1
        children: spine[1-2]
      - switch: spine1
        children: leaf[1-2]
      - switch: leaf1
        nodes: n[001-016]
      - switch: leaf2
        nodes: n[017-032]
"""
BLOCK = """
- topology: topo2
  block:
    block_sizes: [18, 36]
    blocks:
      - block: b1
        nodes: n[001-018]
      - block: b2
        nodes: n[019-036]
"""
CONF = """
SwitchName=s1 Nodes=n[001-016] # the first rack
SwitchName=s2 Nodes=n[017-032]
SwitchName=top Switches=s[1-2]
"""
FABRIC = """
vendid=0x2c9
devid=0xd2f2
sysimgguid=0xb8599f0300fc6de4
switchguid=0xb8599f0300fc6de4(b8599f0300fc6de4)
Switch\t65 "S-b8599f0300fc6de4"\t\t# "leaf3" enhanced port 0 lid 1 lmc 0
[17]\t"H-ec0d9a03007d7f0a"[1](ec0d9a03007d7f0a) \t\t# "n017 mlx5_0" lid 3 4xNDR

Ca\t1 "H-ec0d9a03007d7f0a"\t\t# "n017 mlx5_0"
[1](ec0d9a03007d7f0a) \t"S-b8599f0300fc6de4"[17]\t\t# lid 3 lmc 0 "leaf3" lid 1 4xNDR

Ca\t1 "H-ec0d9a03007d7f0b"\t\t# "n018 mlx5_0"
[1](ec0d9a03007d7f0b) \t"S-b8599f0300fc6de4"[18]\t\t# lid 4 lmc 0 "leaf3" lid 1 4xNDR
"""
LABELS = {
    "fabric.topograph.run/tier-1": "sw11",
    "fabric.topograph.run/tier-2": "sw21",
    "accelerator.topograph.run/domain": "nvl1",
    "topology.kubernetes.io/rack": "r7",
}
KUBERNETES = {"kind": "Node", "metadata": {"name": "n017", "labels": LABELS}}
OLDER = {"kind": "Node", "metadata": {"name": "n017", "labels": {"network.topology.nvidia.com/leaf": "l"}}}
EC2 = {
    "Instances": [{"InstanceId": "i-0abc", "NetworkNodes": ["nn-1", "nn-2", "nn-3"], "AvailabilityZone": "us-east-1a"}]
}
GRAPH = {
    "instances": [
        {
            "id": "n017",
            "network_layers": ["sw11", "sw21"],
            "labels": {"accelerator.topograph.run/domain": "nvl1"},
        }
    ]
}
CHASSIS = {"leaf4": {"id": {"type": "mac", "value": "00:11"}}}
LLDP = {"lldp": {"interface": [{"eth0": {"chassis": CHASSIS, "port": {"id": {"type": "ifname", "value": "swp17"}}}}]}}


@pytest.mark.parametrize(
    ("text", "labels", "ports"),
    [
        (TREE, {"leaf": "leaf2", "spine": "spine1", "core": "core1"}, {}),
        (BLOCK, {"block": "b1"}, {}),
        (CONF, {"leaf": "s2", "spine": "top"}, {}),
        (TREE + BLOCK, {"leaf": "leaf2", "spine": "spine1", "core": "core1", "block": "b1"}, {}),
        (FABRIC, {}, {"mlx5_0/1": "leaf3 port 17"}),
        (json.dumps(KUBERNETES), {"leaf": "sw11", "spine": "sw21", "nvlink_domain": "nvl1", "rack": "r7"}, {}),
        (json.dumps({"kind": "List", "items": [OLDER]}), {"leaf": "l"}, {}),
        (json.dumps(EC2), {"leaf": "nn-3", "spine": "nn-2", "core": "nn-1", "zone": "us-east-1a"}, {}),
        (json.dumps(GRAPH), {"leaf": "sw11", "spine": "sw21", "nvlink_domain": "nvl1"}, {}),
        (json.dumps(LLDP), {}, {"eth0": "leaf4 port swp17"}),
        (json.dumps({"lldp": {"interface": LLDP["lldp"]["interface"][0]}}), {}, {"eth0": "leaf4 port swp17"}),
    ],
    ids=[
        "tree",
        "block",
        "topology.conf",
        "tree and block",
        "ibnetdiscover",
        "topograph",
        "older labels",
        "EC2",
        "topograph graph",
        "LLDP",
        "one interface",
    ],
)
def test_each_file(text: str, labels: dict[str, str], ports: dict[str, str]) -> None:
    place = place_of(text, NODES)
    assert place is not None
    assert (place.labels, place.ports) == (labels, ports)
    other = place_of(text, frozenset({"elsewhere"}))
    assert other is not None
    assert other.labels == {}  # the file does not name this node


@pytest.mark.parametrize("text", ["", "{}", "[1]", "hello: world\n", '{"kind": "Pod"}'])
def test_other_files_are_refused(text: str) -> None:
    assert place_of(text, NODES) is None


VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def is_printable(place: Place | None) -> bool:
    values = [*place.labels.values(), *place.ports.values()] if place else []
    return all(value and value.isprintable() for value in values)


@given(st.sampled_from([KUBERNETES, EC2, GRAPH, LLDP]), st.data())
def test_any_value_in_any_place(document: dict[str, Any], data: st.DataObject) -> None:
    def changed(value: Any) -> Any:
        if data.draw(st.integers(0, 9)) == 0:
            return data.draw(VALUES)
        if isinstance(value, dict):
            return {name: changed(one) for name, one in value.items()}
        return [changed(one) for one in value] if isinstance(value, list) else value

    place = None
    with suppress(ValueError):
        place = place_of(json.dumps(changed(document)), NODES)
    assert is_printable(place)


@given(st.text(alphabet="switchnodes: []-,=\n\t0123\"'Ca#", max_size=200))
def test_any_text(text: str) -> None:
    place = None
    with suppress(ValueError):
        place = place_of(text, NODES)
    assert is_printable(place)


def test_labels_and_cables_of_the_site_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURMD_NODENAME", "n017")
    for name, text in (("topology.yaml", TREE), ("lldp.json", json.dumps(LLDP)), ("fabric", FABRIC)):
        (tmp_path / name).write_text(text)
    paths = [str(tmp_path / name) for name in ("topology.yaml", "lldp.json", "fabric")]
    (path := tmp_path / "site.toml").write_text(
        f'places = {paths}\n[labels]\nleaf = "mine"\n[cables]\neth1 = "console"\n'
    )
    known = site(str(path))
    assert known.labels == {"leaf": "mine", "spine": "spine1", "core": "core1"}
    assert known.cables == {"eth0": "leaf4 port swp17", "mlx5_0/1": "leaf3 port 17", "eth1": "console"}
    (capture := tmp_path / "node").write_text(dump(node("hgx-h100")))
    arguments = ["--from", str(capture), "--site", str(path)]
    ticket = CliRunner().invoke(main, ["ticket", "mlx5_0/1", *arguments]).output
    assert "place                 leaf mine, spine spine1, core core1" in ticket
    assert "cable of mlx5_0/1     leaf3 port 17" in ticket
    metrics = CliRunner().invoke(main, ["diagnose", "--format", "prometheus", *arguments]).output
    assert 'linkgauge_node_info{core="core1",leaf="mine",' in metrics


def test_mistakes(tmp_path: Path) -> None:
    (path := tmp_path / "site.toml").write_text(f'places = ["{tmp_path}/none"]\n')
    with pytest.raises(BadInput, match="places: .*none: No such file or directory"):
        site(str(path))
    (tmp_path / "none").write_text("hello")
    with pytest.raises(BadInput, match=r"places: .*none: not one of: kubectl get node"):
        site(str(path))
    assert os.path.exists(tmp_path / "none")
    (tmp_path / "none").write_text("SwitchName=s1 Nodes=n[1-999999999]\n")
    with pytest.raises(BadInput, match=r"places: .*none: a list of more than 100,000 names"):
        site(str(path))
