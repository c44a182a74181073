"""The place of a node as the JSON of Topograph's engine "graph" (version 1.0)."""

from __future__ import annotations

import json
from itertools import takewhile

from ...models.facts.machine import Node
from ...models.inventory.snapshot import Snapshot

_TIERS = ("leaf", "spine", "core")
_DOMAIN = "accelerator.topograph.run/domain"


def as_topograph(snapshot: Snapshot) -> str:
    """The instance: its host name, its switches from the node upwards, and its NVLink domain.

    A switch above an unknown one is left out, because the position in the list is the tier. Raises ValueError if the
    host name, or both the leaf and the domain, are unknown.
    """
    node, known = snapshot.of(Node).get("node"), snapshot.site.labels
    layers = [*takewhile(bool, (known.get(tier, "") for tier in _TIERS))]
    domain = known.get("nvlink_domain")
    if node is None or not node.hostname:
        raise ValueError("the host name is not known")
    if not layers and not domain:
        raise ValueError("neither leaf nor nvlink_domain is known: set places or [labels] in the site file")
    labels = {_DOMAIN: domain} if domain else {}
    instance = {"id": node.hostname, "network_layers": layers, "labels": labels}
    return json.dumps({"instances": [instance]}, indent=2) + "\n"
