"""The budget of all probes together in seconds and bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ...probes.measure.probe import Effort, Probe

# Share of the budget that repetitions leave to the probes after them. On eight GPUs, 45 s at "full" are enough for the
# memories and all ports. Copies that scatter by 0.2 % need no repetition, so all probes have the rest.
RESERVED = 0.3
_UNITS = {"KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_SECONDS = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)S")
_BYTES = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)(KB|MB|GB|TB)")


class Budget(NamedTuple):
    """Seconds and bytes that all probes together may use."""

    seconds: float
    bytes: float

    def __str__(self) -> str:
        from ...models.facts.units import as_bytes  # --help must not import the models

        return f"{self.seconds:g} s and {as_bytes(self.bytes)}"

    def allows(self, probe: Probe, seconds: float, moved: float) -> bool:
        """Whether the planned probe fits into the rest of the budget, after `seconds` and `moved` bytes are used."""
        return self.covers(seconds + probe.seconds, moved + probe.bytes)

    def covers(self, seconds: float, moved: float) -> bool:
        """Whether the budget is large enough for these seconds and bytes."""
        return seconds <= self.seconds and moved <= self.bytes

    def for_repetitions(self, seconds: float, moved: float, later: Iterable[Probe] = ()) -> Budget:
        """What repetitions may use after `seconds` and `moved` bytes, with RESERVED kept for `later` probes."""
        probes = [*later]
        kept = min(sum(one.seconds for one in probes), RESERVED * self.seconds)
        least = min(sum(one.bytes for one in probes), RESERVED * self.bytes)
        return Budget(self.seconds - seconds - kept, self.bytes - moved - least)


# Seconds are the effective limit: the NVLinks of eight GPUs carry terabytes per second.
BUDGETS: Mapping[Effort, Budget] = {"passive": Budget(0, 0), "quick": Budget(15, 5e12), "full": Budget(150, 100e12)}


def budget_of(text: str, effort: Effort) -> Budget:
    """Parse "30s", "20GB" or "30s,20GB"; the level defines a missing part. Raises ValueError with a user message."""
    usual = BUDGETS[effort]
    seconds, most = usual.seconds, usual.bytes
    for part in text.upper().replace(" ", "").split(","):
        if found := _SECONDS.fullmatch(part):
            seconds = float(found[1])
        elif found := _BYTES.fullmatch(part):
            most = float(found[1]) * _UNITS[found[2]]
        else:
            raise ValueError(f"{text!r}: seconds are written 30s, bytes 20GB, both 30s,20GB")
    return Budget(seconds, most)
