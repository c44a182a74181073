"""The options that describe a cluster: machines, their number, and the network between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from .input import complete_machine

_TEXTS = {
    "machine": "The type of the machines (linkgauge profile --list).  [default: this node's]",
    "network": "NICs of a node and Gb/s of each, if the machine type does not define them or defines other values.",
    "switches": "Ports of a switch and Gb/s of each; the network is a tree of such switches.  "
    "[default: full rate between nodes]",
    "rails": "NIC i of each node connects to leaf switch i of its group of nodes.",
    "oversubscription": "Downlinks per uplink of a leaf switch.",
}


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the machine type and the number of machines."""
    for option in (
        click.option("--nodes", metavar="N", type=int, default=1, help="Number of machines.  [default: 1]"),
        click.option("--machine", metavar="NAME", shell_complete=complete_machine, help=_TEXTS["machine"]),
    ):
        command = option(command)
    return command


def network_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the NICs and the switches between machines."""
    for option in (
        click.option("--oversubscription", metavar="X", type=float, default=1.0, help=_TEXTS["oversubscription"]),
        click.option("--rails", is_flag=True, help=_TEXTS["rails"]),
        click.option("--switches", metavar="NxGb/s", help=_TEXTS["switches"]),
        click.option("--network", metavar="NxGb/s", help=_TEXTS["network"]),
    ):
        command = option(command)
    return command
