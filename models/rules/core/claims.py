"""Claims: values that were read, each with the independent evidence of what it should be.

Rules report a claim that its evidence contradicts. The coverage of a report counts the claims by their evidence
(diagnosis/coverage.py). Both use the same claim, so a value without a finding is either corroborated or listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import msgspec

from ...inventory.inventory import Item
from ...inventory.snapshot import Snapshot
from ...report import COHORT, Basis, Corroboration, CoverageGroup

_RELATIVE = ("cohort", "baseline")
BASES: Mapping[Corroboration, Basis] = {  # what a finding names as the basis of its expectation
    "site": "site",
    "profile": "profile",
    "product": "capability",
    "cohort": COHORT,
    "baseline": "baseline",
}
EVIDENCE: Mapping[Basis, Corroboration] = {  # the kind of evidence that an expectation of this basis is
    "site": "site",
    "profile": "profile",
    "capability": "product",
    COHORT: "cohort",
    "baseline": "baseline",
}


class Support(msgspec.Struct, frozen=True):
    """Independent evidence that a value should be at least `least`."""

    by: Corroboration
    least: float
    source: str


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A value of one device, link or count. `supports` begins with the most trusted evidence."""

    group: CoverageGroup
    subject: str
    quantity: str  # "link width"
    observed: float
    supports: tuple[Support, ...] = ()
    doubt: str | None = None  # why the agreement of equal devices is not enough: all may have the same fault

    @property
    def contradicted(self) -> Support | None:
        """The most trusted evidence that the value is too low. Less trusted evidence does not count against it.

        Equal devices and the earlier state of this node do not outweigh each other: either can show a fault.
        """
        if not self.supports:
            return None
        relative = self.supports[0].by in _RELATIVE
        for one in self.supports if relative else self.supports[:1]:
            if one.least > self.observed:
                return one
        return None

    @property
    def corroborated(self) -> Support | None:
        """The evidence that the value is as it should be. None: there is none, or some contradicts the value."""
        if self.contradicted:
            return None
        return next((one for one in self.supports if not (self.doubt and one.by == "cohort")), None)


def baseline(item: Item, before: float, observed: float, what: str) -> Iterator[Support]:
    """What an item had before. Only an operator's acceptance supports a value: a fault may be older than the first
    inventory.
    """
    if item.accepted or before > observed:
        yield Support("baseline", before, f"{what} {'when the node was accepted' if item.accepted else 'before'}")


Claims: TypeAlias = Callable[[Snapshot], Iterator[Claim]]
