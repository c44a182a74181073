"""`aws ec2 describe-instance-topology`: the network nodes above each instance, the nearest last.

https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceTopology.html
"""

from __future__ import annotations

import msgspec
from msgspec import Struct, field

from ...models.fabric.wiring import Wiring
from .place import tiers


class _Instance(Struct, rename="pascal"):
    instance_id: str
    network_nodes: tuple[str, ...] = ()
    availability_zone: str = ""


class _Topology(Struct, rename="pascal"):
    instances: tuple[_Instance, ...] = field(default=())


def is_ec2(text: str) -> bool:
    """Whether the text is such an output."""
    return text.lstrip().startswith("{") and '"NetworkNodes"' in text


def read(text: str) -> Wiring:
    """The nearest network node of each instance ID, and its labels. Raises ValueError."""
    found = msgspec.json.decode(text.encode(), type=_Topology)
    paths = {one.instance_id: one.network_nodes for one in found.instances if one.network_nodes}
    above = {nodes[-1]: nodes[-2] for nodes in paths.values() if len(nodes) > 1}
    labels = {
        one.instance_id: {**tiers(reversed(one.network_nodes)), "zone": one.availability_zone}
        for one in found.instances
    }
    return Wiring({instance: nodes[-1] for instance, nodes in paths.items()}, {}, above, labels)
