"""Facts about the network that only outputs of tools show: optical modules, paths to NICs, pairs of nodes."""

from __future__ import annotations

from .records import Fact


class Optics(Fact, frozen=True, kw_only=True):
    """The optical module of a port: "eth0/module", or "module" if the text does not name the port."""

    net: str | None = None  # key of the Net fact
    alarms: tuple[str, ...] | None = None  # values beyond the module's alarm thresholds; (): none
    warnings: tuple[str, ...] | None = None  # values beyond its warning thresholds; (): none
    measured: tuple[str, ...] | None = None  # the values behind them: "laser output power: 0.1023 mW"
    stated: bool | None = None  # the module states it itself; False: computed from its values and thresholds


class NicPath(Fact, frozen=True, kw_only=True):
    """The path from a GPU or an RDMA device to an RDMA device, as a tool numbers them: "gpu0-nic3"."""

    a: str | None = None
    b: str | None = None
    name: str | None = None  # of `b`: "mlx5_0"
    path: str | None = None  # "PIX", "PXB", "PHB", "NODE", "SYS"


LINK_RATE = "nccl_link_rate"  # quantity: the rate that NCCL counts for the link of a GPU or NIC, "GPU/0-54000"
PATH_RATE = "path_rate"  # quantity: a measured rate whose row names the type of the path, "SYS", and no ends
EXPECTED = "expected"  # key of a rate without a name, and of what its writer expects


class NodePair(Fact, frozen=True, kw_only=True):
    """Bandwidth between two nodes, "node1-node2", or of one of several in a test: "node1", "node1/mlx5_3", "mlx5_3"."""

    a: str | None = None  # None: an adapter, of which the text names no node
    b: str | None = None  # None: the rate of node a alone
    rate: float | None = None  # of a collective: bus bandwidth
    others: float | None = None  # what the text says of all other nodes or adapters, or what its writer expects
    link: str | None = None  # `others` is the rate of this link: "PCIe 2.0 x4"
