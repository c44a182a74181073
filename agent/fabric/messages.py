"""Messages between the coordinator and the nodes. They are data: JSON of limited size, and no code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=255)]
Tool: TypeAlias = Literal["tcp", "perftest"]


class Join(Struct, frozen=True, tag="join", forbid_unknown_fields=True):
    """A node takes part."""

    node: Name
    version: str


class Prepare(Struct, frozen=True, tag="prepare", forbid_unknown_fields=True):
    """Diagnose the node and check that it is idle."""


class Rail(Struct, frozen=True, forbid_unknown_fields=True):
    """A port of a node that can be measured."""

    name: Name  # "eth1", "mlx5_0/1"; the same on all nodes
    address: str
    tool: Tool = "tcp"
    rate: float | None = None  # nominal bytes per second
    switch: str | None = None  # that it connects to (LLDP)
    socket: str | None = None  # the port of the switch


class Prepared(Struct, frozen=True, tag="prepared", forbid_unknown_fields=True):
    """What the node is. `busy`: why it must not measure."""

    rails: tuple[Rail, ...]
    report: bytes  # JSON
    busy: str | None = None
    aliases: tuple[str, ...] = ()  # further names: instance ID, host name


class Incoming(Struct, frozen=True, forbid_unknown_fields=True):
    """A flow to a node."""

    rail: Name
    key: bytes


class Receive(Struct, frozen=True, tag="receive", forbid_unknown_fields=True):
    """Listen for these flows."""

    flows: tuple[Incoming, ...]
    seconds: float
    bytes: float


class Listening(Struct, frozen=True, tag="listening", forbid_unknown_fields=True):
    """The TCP port of each rail."""

    ports: Mapping[str, int]


class Outgoing(Struct, frozen=True, forbid_unknown_fields=True):
    """A flow from a node."""

    rail: Name
    address: str
    port: int
    key: bytes


class Send(Struct, frozen=True, tag="send", forbid_unknown_fields=True):
    """Send these flows."""

    flows: tuple[Outgoing, ...]
    seconds: float
    bytes: float  # of a flow, at most


class Done(Struct, frozen=True, tag="done", forbid_unknown_fields=True):
    """The flows of a round ended: rates that this end measured, and failures, by rail."""

    rates: Mapping[str, float]
    failures: Mapping[str, str]


class Stopped(Struct, frozen=True, tag="stopped", forbid_unknown_fields=True):
    """The node measures no more, and why."""

    why: str


class End(Struct, frozen=True, tag="end", forbid_unknown_fields=True):
    """The run is over."""


ToNode: TypeAlias = Prepare | Receive | Send | End
FromNode: TypeAlias = Join | Prepared | Listening | Done | Stopped
TO_NODE: msgspec.json.Decoder[ToNode] = msgspec.json.Decoder(ToNode)
FROM_NODE: msgspec.json.Decoder[FromNode] = msgspec.json.Decoder(FromNode)
