"""The health check of Slurm: drains a node, and resumes it after a repair.

All nodes of a cluster run it at the same moment. A mistake in a file that all nodes share gives all of them the same
result, so a node must not count drained nodes and then drain itself. Instead each node first writes a drain request
into a note of its node record. It waits until the other nodes have written theirs, counts, and drains itself if it is
among the first. A node drains within one second after the count, and every other node waits for two seconds.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from ...models.facts.units import as_utc
from ...models.site.gate import Cause, has_room
from ..gate.decision import GateDecision
from ..state import acceptance
from ..state.state_file import read_state_file, write_state_file
from .scontrol import PREFIX, ScontrolError, Slurm

_FILE = "gate.json"
_JITTER = 0.8  # seconds; spreads the first calls of all nodes
_SETTLE, _SWIFT = 2.0, 1.0  # seconds: from the note to the count; at most from the count to the drain
_LEAVING = 0.6  # seconds beyond the deadline, to remove the note
_AGAIN = 900.0  # seconds after which a node tries again when too many nodes were drained
_LONGEST_REASON = 200  # characters


class CheckRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the last health check. Times in seconds since 1970."""

    version: Literal[1] = 1
    drained: str | None = None  # reason for which we drained the node; a prolog fails as long as it is set
    asked: bool = False  # the node record may still have our note
    refused: float | None = None  # when too many other nodes were drained
    looked: float = 0.0  # when the last call of Slurm was made


class Check(Struct, frozen=True, kw_only=True):
    """One run of the health check."""

    decision: GateDecision
    slurm: Slurm
    node: str
    folder: str
    sleep: Callable[[float], None] = time.sleep
    rng: random.Random = field(default_factory=random.Random)

    def run(self, now: float) -> str | None:
        """Drain the node, resume it or do nothing. Returns a message for the log. Raises ScontrolError, OSError."""
        record = record_of(self.folder)
        if not self.decision.closed:
            message = self._reopen(record, now)
            return message or (str(self.decision) if self.decision.causes or self.decision.unknown else None)
        if record.refused is not None and 0 <= now - record.refused < _AGAIN * self.rng.uniform(0.5, 1):
            return f"{self.decision.causes[0]}: not drained: too many nodes were drained at {as_utc(record.refused)}"
        self.sleep(self.rng.uniform(0, _JITTER))
        return self._close(self.decision.causes[0], now)

    def _close(self, cause: Cause, now: float) -> str:
        found = self.slurm.node(self.node)
        reason = " ".join(f"{PREFIX} {cause}".split())[:_LONGEST_REASON]  # one line, also for unusual disk names
        if found.out and not found.ours:
            keep(self.folder, CheckRecord(looked=now))
            return f"{cause}: not drained: the node is {found.state} already ({found.reason or 'without a reason'})"
        if found.out:
            keep(self.folder, CheckRecord(drained=found.reason, looked=now))
            return f"{found.reason}: drained until the node is repaired and accepted"
        note = found.free_note
        if note is None:
            return f"{cause}: not drained: Comment and Extra of the node are in use; clear one, for the drain request"
        keep(self.folder, CheckRecord(asked=True, looked=now))
        self.slurm.update(self.node, **{note: reason})
        drained = False
        try:
            drained = self._drained(reason, note)
        finally:
            if not drained:
                self._withdraw(note)
        keep(self.folder, CheckRecord(drained=reason, looked=now) if drained else CheckRecord(refused=now, looked=now))
        if drained:
            return f"drained for {cause}: {cause.text}"
        return f"{cause}: not drained: {self.decision.gate.max_drained:.1%} of all nodes are drained already"

    def _drained(self, reason: str, note: str) -> bool:
        """Drain the node if it is among the first. Returns whether it was drained. Raises ScontrolError."""
        self.sleep(_SETTLE)
        counted = self.slurm.monotonic()
        nodes = self.slurm.nodes()
        ours, asking = [one.name for one in nodes if one.ours], [one.name for one in nodes if one.asking]
        if not has_room(self.node, ours, asking, len(nodes), self.decision.gate):
            return False
        if self.slurm.monotonic() - counted > _SWIFT:
            raise ScontrolError("not drained: Slurm answers too slowly to count drained nodes")
        self.slurm.update(self.node, State="DRAIN", Reason=reason, **{note: ""})
        return True

    def _withdraw(self, note: str) -> None:
        """Remove the note. If that fails the next run does it; until then others count the note as a drained node."""
        with suppress(ScontrolError):
            replace(self.slurm, until=self.slurm.until + _LEAVING).update(self.node, **{note: ""})

    def _reopen(self, record: CheckRecord, now: float) -> str | None:
        """Resume the node after a repair. Slurm is called only if the node was accepted since the last call."""
        if record.asked:
            self._clear_notes(now)
            return None
        accepted = (acceptance.read(self.folder) or acceptance.Acceptance()).at
        if accepted is None or accepted <= record.looked:
            return f"{record.drained}: drained until 'linkgauge accept'" if record.drained else None
        if self.decision.causes or self.decision.unknown or self.decision.at is None or self.decision.at < accepted:
            return f"{record.drained}: drained until the service finds no fault" if record.drained else None
        found = self.slurm.node(self.node)
        if found.ours and found.out:
            if found.since is None or found.since > accepted:
                return f"{found.reason}: drained until 'linkgauge accept'"
            self.slurm.update(self.node, State="RESUME")
        keep(self.folder, CheckRecord(looked=now))
        return f"resumed, accepted at {as_utc(accepted)}: was {found.reason}" if found.ours else None

    def _clear_notes(self, now: float) -> None:
        """Remove the note of a run that was interrupted."""
        found = self.slurm.node(self.node)
        for note in (key for key, text in found.notes.items() if text.startswith(PREFIX)):
            self.slurm.update(self.node, **{note: ""})
        keep(self.folder, CheckRecord(drained=found.reason if found.ours and found.out else None, looked=now))


def record_of(folder: str) -> CheckRecord:
    """The record of the last health check; an empty record if there is none or it cannot be used."""
    try:
        return read_state_file(os.path.join(folder, _FILE), CheckRecord)
    except (OSError, ValueError):
        return CheckRecord()


def keep(folder: str, record: CheckRecord) -> None:
    """Write the record. Raises OSError."""
    write_state_file(folder, _FILE, msgspec.json.encode(record))
