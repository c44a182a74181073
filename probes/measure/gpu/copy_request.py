"""The arguments of a copy probe: the GPUs, and the runs of concurrent copies.

For example "quick gpu0=0000:1b:00.0 gpu1=0000:3d:00.0 numa0>gpu0 gpu0>numa0 numa0>gpu0+numa0>gpu1 gpu1".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from msgspec import Struct

from ....models.facts.records import Flow
from ..probe import Effort

# (source, target) of each concurrent copy; (device,) for a copy within a device.
Run: TypeAlias = tuple[tuple[str, ...], ...]
_OWNED = "owned"


class Pace(Struct, frozen=True):
    """Duration and number of tries of a run. The best try counts, because disturbances only lower the rate."""

    seconds: float
    tries: int

    @property
    def whole(self) -> float:
        """Seconds of all tries."""
        return self.seconds * self.tries


# The GPU's clock needs few copies: 10 ms are eight copies of 64 MiB over PCIe 5 x16, and two over PCIe 3 x16.
PACES: Mapping[Effort, Pace] = {"quick": Pace(0.01, 3), "full": Pace(0.04, 3)}


class CopyRequest(Struct, frozen=True, kw_only=True):
    """A parsed request. `gpus` has the PCI addresses by the names in the runs."""

    effort: Effort
    gpus: Mapping[str, str]
    runs: tuple[Run, ...]
    owned: bool = False  # the caller owns the GPUs: GPUs in exclusive mode may be used

    @property
    def pace(self) -> Pace:
        """The pace of each run."""
        return PACES[self.effort]

    @property
    def args(self) -> tuple[str, ...]:
        """The arguments; parsed() is the inverse."""
        named = (f"{name}={address}" for name, address in self.gpus.items())
        runs = ("+".join(">".join(ends) for ends in run) for run in self.runs)
        return (self.effort, *((_OWNED,) if self.owned else ()), *named, *runs)


def parsed(words: Iterable[str]) -> CopyRequest:
    """Parse the arguments of a call."""
    effort, *rest = words
    owned = rest[:1] == [_OWNED]
    named = [word for word in rest[owned:] if "=" in word]
    runs = (tuple(tuple(ends.split(">")) for ends in word.split("+")) for word in rest[owned + len(named) :])
    gpus = dict(word.split("=", 1) for word in named)
    return CopyRequest(effort="full" if effort == "full" else "quick", gpus=gpus, runs=tuple(runs), owned=owned)


def flows(run: Run, size: int | None = None, via: Mapping[tuple[str, ...], str] | None = None) -> list[Flow]:
    """Return the flows of a run, in the order of its copies. `via` overrides the route of a pair of ends."""
    via_by_ends = via or {}
    return [
        Flow("copy", ends, size, via_by_ends.get(ends, ""), tuple(one for one in run if one != ends)) for ends in run
    ]
