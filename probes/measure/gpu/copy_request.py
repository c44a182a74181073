"""What a probe of copies is asked, as the words of a call: which GPUs, and which copies run at the same moment.

For example "quick gpu0=0000:1b:00.0 gpu1=0000:3d:00.0 numa0>gpu0 gpu0>numa0 numa0>gpu0+numa0>gpu1 gpu1".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ....models.facts.records import Flow
from ..probe import Effort

Run: TypeAlias = tuple[tuple[str, ...], ...]  # the ends of copies that run at the same moment; one end: inside it
_OWNED = "owned"


@dataclass(frozen=True, slots=True)
class Pace:
    """How long each run is measured, and how often: the best counts, for what disturbs a copy only lowers it."""

    seconds: float
    tries: int

    @property
    def whole(self) -> float:
        """Seconds of all tries."""
        return self.seconds * self.tries


# By the GPU's own clock a few copies are enough; 10 ms are eight of 64 MiB over PCIe 5 x16, and two over PCIe 3 x16.
PACES: Mapping[Effort, Pace] = {"quick": Pace(0.01, 3), "full": Pace(0.04, 3)}


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyRequest:
    """`gpus` are their PCI addresses by the names that the runs use."""

    effort: Effort
    gpus: Mapping[str, str]
    runs: tuple[Run, ...]
    owned: bool = False  # the GPUs are the caller's: those in an exclusive mode may be used

    @property
    def pace(self) -> Pace:
        """Of each run."""
        return PACES[self.effort]

    @property
    def args(self) -> tuple[str, ...]:
        """The words; parsed() gives the same request again."""
        named = (f"{name}={address}" for name, address in self.gpus.items())
        runs = ("+".join(">".join(ends) for ends in run) for run in self.runs)
        return (self.effort, *((_OWNED,) if self.owned else ()), *named, *runs)


def parsed(words: Iterable[str]) -> CopyRequest:
    """The request that these words are."""
    effort, *rest = words
    owned = rest[:1] == [_OWNED]
    named = [word for word in rest[owned:] if "=" in word]
    runs = (tuple(tuple(ends.split(">")) for ends in word.split("+")) for word in rest[owned + len(named) :])
    gpus = dict(word.split("=", 1) for word in named)
    return CopyRequest(effort="full" if effort == "full" else "quick", gpus=gpus, runs=tuple(runs), owned=owned)


def flows(run: Run, size: int | None = None, via: Mapping[tuple[str, ...], str] | None = None) -> list[Flow]:
    """What the rates of a run are about, in the order of its copies."""
    ways = via or {}
    return [Flow("copy", ends, size, ways.get(ends, ""), tuple(one for one in run if one != ends)) for ends in run]
