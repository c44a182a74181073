"""NICs whose PCI ids determine their network, from nics.toml."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated

import msgspec

from ..facts.machine import Pci
from ..site.schema import Positive, Text
from . import load


class Nic(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A NIC whose ids determine its network and perhaps its rate. Rates in bytes per second and one direction."""

    name: str
    source: Text
    ids: tuple[Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{4}:[0-9a-f]{4}$")], ...]  # vendor and device
    grade: str  # of its ports: "efa", "slingshot", "omnipath"
    rate: Positive | None = None  # of a port, if all boards with these ids have the same


class _Nics(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    nic: tuple[Nic, ...]


@cache
def nics() -> tuple[Nic, ...]:
    """All known NICs."""
    return load("nics.toml", _Nics).nic


def nic_of(function: Pci) -> Nic | None:
    """The NIC of a PCI function. None: its ids are not in the catalog."""
    if function.vendor is None or function.device is None:
        return None
    return _by_number().get(f"{function.vendor:04x}:{function.device:04x}")


@cache
def _by_number() -> Mapping[str, Nic]:
    return {number: nic for nic in nics() for number in nic.ids}
