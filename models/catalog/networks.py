"""Public models, from networks.toml: the sizes that determine their training."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import msgspec

from ..site.schema import Network
from . import load


class _Networks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    network: tuple[Network, ...]


@cache
def networks() -> Mapping[str, Network]:
    """All known models by name."""
    return {one.name: one for one in load("networks.toml", _Networks).network}
