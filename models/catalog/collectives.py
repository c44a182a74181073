"""Measurements of collectives, from collectives.toml: startup times, and rates between nodes."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from typing import Annotated, Literal, TypeAlias

import msgspec

from ..site.schema import Few, Positive, Text
from . import load

Transport: TypeAlias = Literal["rdma", "efa", "tcpx", "tcpxo", "slingshot"]  # rdma: InfiniBand and RoCE
# Carriers over which NCCL uses LL128 on some machines only: Google's profiles of TCPXO are nccl-env-profile.sh with
# NCCL_PROTO=Simple, and nccl-env-profile-ll128.sh. CSCS sets NCCL_PROTO=^LL128, Sigma2 measures with it (Olivia).
SOMETIMES_LL128: tuple[Transport, ...] = ("tcpxo", "slingshot")
Power: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=1)]


class Collective(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One published curve, or one number from it. collectives.toml defines the fields."""

    op: Literal["all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv"]
    way: Literal["ring", "in-network", "direct"]  # algorithm inside a node
    grade: Text  # of the GPU links inside a node: "nvlink4"
    ranks: Few
    nodes: Few = 1
    rate: Positive  # bytes per second that one GPU can send; with several nodes, that one node can send
    bus: Positive | None = None  # bus bandwidth of long messages, bytes per second
    once: bool = False  # bus bandwidth of two nodes above `rate`: trees, of which rings are slower
    startup: Positive | None = None  # seconds
    power: Power | None = None
    latency: Positive | None = None  # seconds of the smallest message
    platform: Text  # measured on; each platform has one vote
    transport: Transport = "rdma"  # between nodes
    machines: tuple[Text, ...] = ()  # machine types (platforms.toml) for which this row replaces those of other types
    only: bool = False  # other machine types do not use the row
    source: Text


class _Fabric(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    machines: tuple[Text, ...]  # shell patterns of machine types
    transport: Transport
    source: Text


class _Collectives(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    fabric: tuple[_Fabric, ...]
    collective: tuple[Collective, ...]


def collectives() -> tuple[Collective, ...]:
    """All known measurements."""
    return _all().collective


def transport_of(machine: str) -> Transport:
    """What carries messages between nodes of a machine type."""
    rows = (one for one in _all().fabric if any(fnmatchcase(machine, name) for name in one.machines))
    return next((one.transport for one in rows), "rdma")


@cache
def _all() -> _Collectives:
    return load("collectives.toml", _Collectives)
