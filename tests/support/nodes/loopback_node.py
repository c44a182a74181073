"""A node with one NIC, for loopback writes."""

from __future__ import annotations

from msgspec.structs import replace

from linkgauge.models.facts.machine import Port, Rdma
from linkgauge.models.facts.records import Record
from tests.support.nodes.small_nodes import bridge, function

NIC, ROOT = "0000:01:00.0", "0000:00:01.0"
PORT = Port(
    key="mlx5_0/1", device="mlx5_0", state="ACTIVE", physical_state="LinkUp", rate=50e9, link_layer="InfiniBand"
)


def node(width: int = 16, port: Port = PORT) -> list[Record]:
    """A ConnectX-7 of 400 Gb/s in a PCIe 5 slot."""
    card = replace(function(NIC, ROOT), pci_class=0x020700, vendor=0x15B3, device=0x1021, driver="mlx5_core")
    slot = replace(bridge(ROOT, "pci0000:00"), width=width)
    return [slot, replace(card, width=width), Rdma(key="mlx5_0", address=NIC, driver="mlx5_core"), port]
