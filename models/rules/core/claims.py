"""Claims: values that were read, each with the independent evidence of what it should be.

Rules report a claim that its evidence contradicts. The coverage of a report counts the claims by their evidence
(diagnosis/coverage.py). Both use the same claim, so a value without a finding is either corroborated or listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from ...inventory.snapshot import Snapshot
from ...report import Corroboration, CoverageGroup


@dataclass(frozen=True, slots=True)
class Support:
    """Independent evidence that a value should be at least `least`."""

    by: Corroboration
    least: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A value of one device, link or count. `supports` begins with the most trusted evidence."""

    group: CoverageGroup
    subject: str
    quantity: str  # "link width"
    observed: float
    supports: tuple[Support, ...] = ()
    doubt: str | None = None  # why the agreement of equal devices is not enough: all may have the same fault

    @property
    def contradicted(self) -> Support | None:
        """The most trusted evidence that the value is too low. Less trusted evidence does not count against it."""
        first = self.supports[0] if self.supports else None
        return first if first and first.least > self.observed else None

    @property
    def corroborated(self) -> Support | None:
        """The evidence that the value is as it should be. None: there is none, or it contradicts the value."""
        first = self.supports[0] if self.supports else None
        if first is None or first.least > self.observed or (self.doubt and first.by == "kin"):
            return None
        return first


Claims: TypeAlias = Callable[[Snapshot], Iterator[Claim]]
