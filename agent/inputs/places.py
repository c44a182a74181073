"""The files of the site that say where this node is: labels of linkgauge_node_info, and cables."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence

from ...models.site.schema import Site
from ...probes.calls.bounded_read import bounded_read
from ...probes.fabric import topograph
from ...probes.fabric.lldp import read_lldpctl
from ...probes.fabric.place import Place, known, word
from ...probes.fabric.place import place_of as place_in
from ...probes.fabric.read import reader_of
from ...probes.host.texts import BIGGEST

INSTANCE_ID = "/sys/devices/virtual/dmi/id/board_asset_tag"  # on EC2, the id of the instance


def placed(site: Site, paths: Sequence[str]) -> Site:
    """The site with the labels and cables that the files give. What the site file says itself is used first.

    Raises OSError, and ValueError with a message for the user.
    """
    from msgspec.structs import replace

    labels, cables = dict(site.labels), dict(site.cables)
    for path in paths:
        found = _read(path)
        if found is None:
            raise ValueError(
                f"{path}: not one of: kubectl get node -o json, Topograph's JSON, topology.yaml, "
                "lldpctl -f json, ibnetdiscover, aws ec2 describe-instance-topology"
            )
        labels, cables = {**found.labels, **labels}, {**found.ports, **cables}
    return replace(site, labels=labels, cables=cables)


def _read(path: str) -> Place | None:
    text = bounded_read(path, BIGGEST).decode("utf-8", "replace")
    try:
        return place_of(text, names_of_this_node())
    except ValueError as wrong:
        raise ValueError(f"{path}: {wrong}") from None


def place_of(text: str, nodes: frozenset[str]) -> Place | None:
    """What a file says about the node with one of these names. None: the text is of no known kind.

    Raises ValueError: a value is wrong.
    """
    if reader := reader_of(text):
        return place_in(reader(text), nodes)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(document, dict) and isinstance(document.get("lldp"), dict):
        ends = read_lldpctl(text)
        ports = {device: word(f"{switch} port {port}") for device, (switch, port) in ends.items() if port}
        return Place(ports=known({word(device): port for device, port in ports.items()}))
    return topograph.read(document, nodes)


def names_of_this_node() -> frozenset[str]:
    """The host name with and without its domain, the name in Kubernetes and Slurm, and the id of an EC2 instance."""
    host = os.uname().nodename
    names = [host, host.partition(".")[0], os.environ.get("NODE_NAME", ""), os.environ.get("SLURMD_NODENAME", "")]
    with contextlib.suppress(OSError, ValueError):
        names.append(bounded_read(INSTANCE_ID, 100).decode("ascii", "replace").strip())
    return frozenset(filter(None, names))
