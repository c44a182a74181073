"""Places of nodes in JSON: Kubernetes nodes with Topograph's labels, and Topograph's own JSON.

https://github.com/NVIDIA/topograph
"""

from __future__ import annotations

from typing import Any

from .place import TIERS, Place, known, tiers, word

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


def read(document: object, nodes: frozenset[str]) -> Place | None:
    """The place of the node with one of these names. None: the document is of no known kind."""
    if not isinstance(document, dict):
        return None
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
            numbered = {name: word(labels.get(f"{_TOPOGRAPH}{number}")) for number, name in enumerate(TIERS, 1)}
            older = {name: word(labels.get(label)) for label, name in _OLDER.items()}
            others = {"nvlink_domain": word(labels.get(_DOMAIN)), "rack": word(labels.get(_RACK))}
            return Place(known({**known(older), **known(numbered), **known(others), "zone": word(labels.get(_ZONE))}))
    return Place()


def _graph(instances: list[Any], nodes: frozenset[str]) -> Place:
    """The JSON of Topograph's engine "graph" (version 1.0), which lists the switches from the node upwards."""
    for one in instances:
        if isinstance(one, dict) and word(one.get("id")) in nodes:
            layers, labels = one.get("network_layers"), one.get("labels")
            switches = map(word, layers) if isinstance(layers, list) else ()
            domain = labels.get(_DOMAIN) if isinstance(labels, dict) else None
            return Place(known({**tiers(switches), "nvlink_domain": word(domain)}))
    return Place()
