"""JSON files that say where a node is: a Kubernetes node with Topograph's labels, Topograph's own JSON, EC2's instance
topology, and LLDP.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .place import TIERS, Place, known, word

_TOPOGRAPH = "fabric.topograph.run/tier-"
_DOMAIN = "accelerator.topograph.run/domain"
# Labels of earlier versions of Topograph.
_OLDER = {
    "network.topology.nvidia.com/leaf": "leaf",
    "network.topology.nvidia.com/spine": "spine",
    "network.topology.nvidia.com/core": "core",
    "network.topology.nvidia.com/accelerator": "nvlink_domain",
}
_RACK = "topology.kubernetes.io/rack"
_ZONE = "topology.kubernetes.io/zone"


def read_json(document: object, nodes: frozenset[str]) -> Place | None:
    """The place of the node with one of these names. None: the document is of no known kind."""
    if not isinstance(document, dict):
        return None
    if isinstance(document.get("lldp"), dict):
        return Place(ports=dict(_lldp(document["lldp"].get("interface"))))
    if isinstance(document.get("Instances"), list):
        return _ec2(document["Instances"], nodes)
    if isinstance(document.get("instances"), list):
        return _graph(document["instances"], nodes)
    if (kind := word(document.get("kind"))) in ("Node", "NodeList", "List"):
        several = [document] if kind == "Node" else document.get("items")
        return _topograph(several if isinstance(several, list) else [], nodes)
    return None


def _topograph(several: list[Any], nodes: frozenset[str]) -> Place:
    """`kubectl get node NODE -o json`, or of all nodes. Tier 1 is next to the node."""
    for one in several:
        metadata = one.get("metadata") if isinstance(one, dict) else None
        labels = metadata.get("labels") if isinstance(metadata, dict) else None
        if isinstance(metadata, dict) and isinstance(labels, dict) and word(metadata.get("name")) in nodes:
            tiers = {name: word(labels.get(f"{_TOPOGRAPH}{number}")) for number, name in enumerate(TIERS, 1)}
            older = {name: word(labels.get(label)) for label, name in _OLDER.items()}
            others = {"nvlink_domain": word(labels.get(_DOMAIN)), "rack": word(labels.get(_RACK))}
            return Place(known({**known(older), **known(tiers), **known(others), "zone": word(labels.get(_ZONE))}))
    return Place()


def _graph(instances: list[Any], nodes: frozenset[str]) -> Place:
    """The JSON of Topograph's engine "graph" (version 1.0), which lists the switches from the node upwards."""
    for one in instances:
        if isinstance(one, dict) and word(one.get("id")) in nodes:
            layers, labels = one.get("network_layers"), one.get("labels")
            switches = map(word, layers) if isinstance(layers, list) else ()
            domain = labels.get(_DOMAIN) if isinstance(labels, dict) else None
            return Place(known({**dict(zip(TIERS, switches, strict=False)), "nvlink_domain": word(domain)}))
    return Place()


def _ec2(instances: list[Any], nodes: frozenset[str]) -> Place:
    """`aws ec2 describe-instance-topology`. The last network node is the one that the instance is connected to."""
    for one in instances:
        if isinstance(one, dict) and word(one.get("InstanceId")) in nodes:
            above = one.get("NetworkNodes")
            switches = [word(name) for name in reversed(above)] if isinstance(above, list) else []
            labels = dict(zip(TIERS, switches, strict=False))
            return Place(known({**labels, "zone": word(one.get("AvailabilityZone"))}))
    return Place()


def _lldp(interfaces: object) -> Iterator[tuple[str, str]]:
    """`lldpctl -f json`: an object for each interface, or a list of such objects."""
    several = interfaces if isinstance(interfaces, list) else [interfaces]
    for group in several:
        for name, one in group.items() if isinstance(group, dict) else ():
            if isinstance(one, dict) and word(name):
                switch, port = _chassis(one.get("chassis")), _port(one.get("port"))
                if switch and port:
                    yield name, f"{switch} port {port}"


def _chassis(chassis: object) -> str:
    """The name of a switch; the key of the object is the name, except for switches without one."""
    if not isinstance(chassis, dict):
        return ""
    named = next((name for name, value in chassis.items() if isinstance(value, dict) and name not in ("id", "ttl")), "")
    return word(named) or _value(chassis.get("id"))


def _port(port: object) -> str:
    return (_value(port.get("id")) or word(port.get("descr"))) if isinstance(port, dict) else ""


def _value(one: Mapping[str, Any] | object) -> str:
    return word(one.get("value")) if isinstance(one, dict) else ""
