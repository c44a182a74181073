"""The faults of states.py and conditions.py at each place: a generator draws each place in turn."""

from __future__ import annotations

from random import Random
from typing import Any

from bench.accuracy import conditions, states
from bench.accuracy.faults import Case, Cases, Kind
from bench.accuracy.healthy_nodes import HealthyNode
from linkgauge.models.rules.host.counts import GPUS

# Words for the value in coverage, for the faults of states.py and conditions.py.
_DRAWN_WORDS = {
    "a port is slow": ("rate",),
    "memory is missing": ("memory",),
    "a port is down": ("state",),
    "a GPU is gone": ("count",),
}


class _Each(Random):
    """Draws each combination of places in turn. Sizes from randint and samples are the first."""

    def __init__(self) -> None:
        super().__init__()
        self.path: list[int] = []
        self.counts: list[int] = []
        self.at = 0

    def choice(self, seq: Any) -> Any:
        """The next of the places."""
        if self.at == len(self.path):
            self.path.append(0)
            self.counts.append(len(seq))
        self.at += 1
        return seq[self.path[self.at - 1]]

    def randint(self, a: int, b: int) -> int:
        """The smallest size."""
        return a

    def sample(self, population: Any, k: int, *, counts: Any = None) -> list[Any]:
        """The first."""
        return list(population)[:k]

    def step(self) -> bool:
        """Go to the next combination. False: there is none."""
        while self.path and self.path[-1] + 1 == self.counts[-1]:
            self.path.pop()
            self.counts.pop()
        if self.path:
            self.path[-1] += 1
        self.at = 0
        return bool(self.path)


def drawn_cases(node: HealthyNode) -> Cases:
    """All places and sizes of the faults in states.py and conditions.py."""
    for name, kind in {**states.KINDS, **conditions.KINDS}.items():
        yield from _all_draws(node, name, kind)


def _all_draws(node: HealthyNode, name: str, kind: Kind) -> Cases:
    each = _Each()
    while True:
        fault = kind(node, each)
        if fault is not None:
            option = "/".join(map(str, each.path[1:]))
            place = min(fault.subjects - {"node"} or fault.about or {"node"})
            yield Case(
                name,
                place,
                fault.edit,
                frozenset({fault.code}),
                fault.subjects | (frozenset({GPUS}) if name == "a GPU is gone" else frozenset()),
                option=option,
                info=fault.info,
                about=fault.about,
                words=_DRAWN_WORDS.get(name, ()),
            )
        if fault is None or not each.step():
            return
