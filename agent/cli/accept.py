"""`linkgauge accept`: a node is good from now on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...exporters.text.accepted import as_accepted, as_refused
from ...models.bandwidth.best_rates import RATES, best_observations
from ...models.evaluate import evaluate
from ...models.facts.records import Flow, Observation
from ...models.inventory.snapshot import Snapshot
from ...models.report import Report, Verdict
from ..inputs import resolve as inputs
from ..inputs.resolve import BadInput, Input
from ..measuring.session import MeasurementOptions
from ..pipeline.diagnose import examine
from ..state import acceptance as state
from .output.progress import shown as watched
from .output.reports import tell_forced, tell_lost

_CUMULATIVE = ("count", "seconds")  # units of what is counted since a machine or a driver was started


def accept(
    root: str, source: Sequence[str], site: str | None, options: MeasurementOptions, anyway: bool, state_dir: str | None
) -> tuple[str, Verdict]:
    """What to tell, and "ok" where the node was accepted, else its verdict. Raises BadInput."""
    given = _machine(root, source, state_dir)
    at = given.host.now()  # what is logged while we look was not seen by who says that the node is good
    known = state.of(root, source, state_dir, at)
    session = given.session(options)
    with watched(given.readers, session.probes) as (readers, measured):
        snapshot, before = examine(given.host, readers, measured, inputs.site(site), known.baseline, accepted=known.at)
    tell_lost(snapshot)
    tell_forced(session)
    if session.interrupted:
        raise BadInput("interrupted: the node was not accepted")
    counts = tuple(_counts(snapshot, at))
    rates = best_observations(snapshot)
    earlier = tuple(one for one in known.baseline if isinstance(one.about, Flow) and one.quantity in RATES)
    after = evaluate(replace(snapshot, accepted=at, baseline=(*earlier, *counts)))
    if after.verdict != "ok" and not anyway:
        return as_refused(after), after.verdict
    kept = tuple(one for one in earlier if one.about not in rates)
    folder = state.folder_of(root, state_dir)
    try:
        state.write(folder, state.Acceptance(at=at, baseline=(*rates.values(), *kept, *counts)))
    except (OSError, ValueError) as refused:  # ValueError: a name with a zero byte
        raise BadInput(f"--state-dir {folder}: {getattr(refused, 'strerror', None) or refused}") from None
    return as_accepted(after, at, _cleared(before, after), len(rates), [one.at for one in kept]), "ok"


def _machine(root: str, source: Sequence[str], state_dir: str | None) -> Input:
    if source and state_dir is None:
        raise BadInput("--from is a recording, not this machine: name the folder of its state with --state-dir")
    given = inputs.of(root, source)
    if given.host.origin == "dumps":
        raise BadInput("--from: dumps show parts of a machine; accept the machine itself, or a capture of it")
    return given


def _counts(snapshot: Snapshot, at: float) -> Iterator[Observation]:
    """The last reading of each count, as that of the moment from which on the node is good."""
    last: dict[tuple[str, str], Observation] = {}
    for one in sorted(snapshot.observations, key=lambda one: one.at):
        if isinstance(one.about, str) and one.unit in _CUMULATIVE:
            last[one.about, one.quantity] = replace(one, at=at)
    yield from last.values()


def _cleared(before: Report, after: Report) -> list[str]:
    """What is no finding any more, or history."""
    still = {(one.code, one.subject) for one in after.findings if one.severity != "info"}
    return [
        f"{one.code} {one.subject}: {one.message}"
        for one in before.findings
        if one.severity != "info" and (one.code, one.subject) not in still
    ]
