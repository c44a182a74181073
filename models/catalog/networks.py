"""Public models, from networks.toml: the sizes that determine their training."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import msgspec

from ..site.schema import Count, Few, Positive, Text
from . import load


class Network(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One transformer. networks.toml defines the fields."""

    name: Text
    layers: Few
    width: Few
    heads: Few
    kv_heads: Few
    head: Few
    feed_forward: Count
    gated: bool = True
    vocabulary: Few
    tied: bool = False
    attention: Few | None = None
    experts: Count = 0
    active: Count = 0
    expert_width: Count = 0
    shared: Count = 0
    dense_layers: Count = 0
    sequence: Few
    parameters: Positive
    source: Text


class _Networks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    network: tuple[Network, ...]


@cache
def networks() -> Mapping[str, Network]:
    """All known models by name."""
    return {one.name: one for one in load("networks.toml", _Networks).network}
