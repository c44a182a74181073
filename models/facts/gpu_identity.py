"""One dump names a GPU by its PCI address, another by its number. This module merges both into one GPU."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec.structs import replace

from .gpu import Gpu
from .records import Observation, Record

_NUMBERED = re.compile(r"gpu[0-9]+")
_OF_FUNCTIONS = ("aer_", "link_")  # quantities of the PCI function; its key is also the address


def with_gpu_numbers(records: Iterable[Record]) -> tuple[Record, ...]:
    """The records with GPU numbers instead of addresses, if all dumps agree which GPU is at an address."""
    everything = tuple(records)
    gpus = [one for one in everything if isinstance(one, Gpu) and one.address]
    if not any(gpu.key == gpu.address for gpu in gpus):
        return everything
    keys: dict[str, set[str]] = {}
    for gpu in gpus:
        if _NUMBERED.fullmatch(gpu.key):
            keys.setdefault(str(gpu.address), set()).add(gpu.key)
    known = {address: min(names) for address, names in keys.items() if len(names) == 1}
    return tuple(_under(one, known) for one in everything)


def _under(one: Record, known: dict[str, str]) -> Record:
    if isinstance(one, Gpu) and one.key in known:
        return replace(one, key=known[one.key])
    if not isinstance(one, Observation) or not isinstance(one.about, str) or one.quantity.startswith(_OF_FUNCTIONS):
        return one
    return replace(one, about=known.get(one.about, one.about))
