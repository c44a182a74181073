"""The health check of Slurm: the one who drains a node, and gives it back after a repair.

All nodes of a cluster run it at the same moment, and for a mistake in a file that all of them have they all come to the
same answer. So none of them may count and then drain: each writes down first that it wants to be drained (in a note of
its node), waits until all who do so now have written, counts, and is drained if it is among the first. Who drains does
it within a second of having counted, and every other waits for two.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal

import msgspec

from ...models.facts.units import as_utc
from ...models.site.gate import Cause, has_room
from ..state import acceptance as state
from ..state.atomic_write import put
from ..state.state_file import read_small
from .gate import View
from .scontrol import PREFIX, Refused, Slurm

_FILE = "gate.json"
_JITTER = 0.8  # seconds over which the first calls of all nodes are spread
_SETTLE, _SWIFT = 2.0, 1.0  # seconds: from the note to the count; from the count to the drain
_LEAVING = 0.6  # seconds beyond the deadline, to take the note away
_AGAIN = 900.0  # seconds after which a node that found no room asks again
_LONGEST_REASON = 200  # letters


class CheckRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the last health check left behind. Times in seconds since 1970."""

    version: Literal[1] = 1
    drained: str | None = None  # for what we have drained the node; then a prolog fails too
    asked: bool = False  # a note may still stand at the node
    refused: float | None = None  # when there was no room
    looked: float = 0.0  # when Slurm was asked last


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One run of the health check."""

    view: View
    slurm: Slurm
    node: str
    folder: str
    sleep: Callable[[float], None] = time.sleep
    chance: random.Random = field(default_factory=random.Random)

    def run(self, now: float) -> str | None:
        """Drain, give back or let be; what is worth a line of the log. Raises Refused, OSError."""
        record = record_of(self.folder)
        if not self.view.closed:
            told = self._maybe_open(record, now)
            return told or (str(self.view) if self.view.causes or self.view.unknown else None)
        if record.refused is not None and 0 <= now - record.refused < _AGAIN * self.chance.uniform(0.5, 1):
            return f"{self.view.causes[0]}: not drained: there was no room at {as_utc(record.refused)}"
        self.sleep(self.chance.uniform(0, _JITTER))
        return self._close(self.view.causes[0], now)

    def _close(self, cause: Cause, now: float) -> str:
        here = self.slurm.node(self.node)
        reason = " ".join(f"{PREFIX} {cause}".split())[:_LONGEST_REASON]  # one line, whatever a disk is called
        if here.out and not here.ours:
            keep(self.folder, CheckRecord(looked=now))
            return f"{cause}: not drained by us: it is {here.state} ({here.reason or 'without a reason'})"
        if here.out:
            keep(self.folder, CheckRecord(drained=here.reason, looked=now))
            return f"{here.reason}: drained, until it is repaired and accepted"
        note = here.free_note
        if note is None:
            return f"{cause}: not drained: Comment and Extra of the node are in use, and one is needed to count"
        keep(self.folder, CheckRecord(asked=True, looked=now))
        self.slurm.update(self.node, **{note: reason})
        drained = False
        try:
            drained = self._drained(reason, note)
        finally:
            if not drained:
                self._withdraw(note)
        keep(self.folder, CheckRecord(drained=reason, looked=now) if drained else CheckRecord(refused=now, looked=now))
        share = self.view.gate.max_drained
        return (
            f"drained for {cause}: {cause.text}" if drained else f"{cause}: not drained: {share:.1%} of all nodes are"
        )

    def _drained(self, reason: str, note: str) -> bool:
        """Whether it is among the first, and was drained. Raises Refused."""
        self.sleep(_SETTLE)
        counted = self.slurm.monotonic()
        nodes = self.slurm.nodes()
        ours, asking = [one.name for one in nodes if one.ours], [one.name for one in nodes if one.asking]
        if not has_room(self.node, ours, asking, len(nodes), self.view.gate):
            return False
        if self.slurm.monotonic() - counted > _SWIFT:
            raise Refused("Slurm answers too slowly to count nodes: not drained")
        self.slurm.update(self.node, State="DRAIN", Reason=reason, **{note: ""})
        return True

    def _withdraw(self, note: str) -> None:
        """Where that fails, the next run does it; until then the note takes room from others, and drains nobody."""
        with suppress(Refused):
            replace(self.slurm, until=self.slurm.until + _LEAVING).update(self.node, **{note: ""})

    def _maybe_open(self, record: CheckRecord, now: float) -> str | None:
        """After a repair; Slurm is asked only if somebody has accepted the node since it was asked last."""
        if record.asked:
            self._tidy(now)
            return None
        accepted = (state.read(self.folder) or state.Acceptance()).at
        if accepted is None or accepted <= record.looked:
            return f"{record.drained}: waits for 'linkgauge accept'" if record.drained else None
        if self.view.causes or self.view.unknown or self.view.at is None or self.view.at < accepted:
            return f"{record.drained}: not given back before the service finds it good" if record.drained else None
        here = self.slurm.node(self.node)
        if here.ours and here.out:
            if here.since is None or here.since > accepted:
                return f"{here.reason}: waits for 'linkgauge accept'"
            self.slurm.update(self.node, State="RESUME")
        keep(self.folder, CheckRecord(looked=now))
        return f"given back, accepted at {as_utc(accepted)}: was {here.reason}" if here.ours else None

    def _tidy(self, now: float) -> None:
        """A run that was ended has left its note."""
        here = self.slurm.node(self.node)
        for note in (key for key, text in here.notes.items() if text.startswith(PREFIX)):
            self.slurm.update(self.node, **{note: ""})
        keep(self.folder, CheckRecord(drained=here.reason if here.ours and here.out else None, looked=now))


def record_of(folder: str) -> CheckRecord:
    """What the last health check left there; nothing where that cannot be used."""
    try:
        return read_small(os.path.join(folder, _FILE), CheckRecord)
    except (OSError, ValueError):
        return CheckRecord()


def keep(folder: str, record: CheckRecord) -> None:
    """Raises OSError."""
    os.makedirs(folder, exist_ok=True)
    put(os.path.join(folder, _FILE), msgspec.json.encode(record))
