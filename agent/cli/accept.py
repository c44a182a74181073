"""`linkgauge accept`: mark a node as good from now on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ...exporters.commands.accept import as_accepted, as_refused
from ...models.bandwidth.best_rates import RATES, best_observations
from ...models.evaluate import evaluate
from ...models.facts.gpu import Gpu
from ...models.facts.records import Flow, Observation
from ...models.inventory.inventory import PARTS, Inventory, accepted_now
from ...models.inventory.present import is_complete, known_absent, present
from ...models.inventory.snapshot import Snapshot
from ...models.report import Report, Verdict
from ...probes.serials import read_serials
from ..inputs import resolve as inputs
from ..inputs import site_file
from ..inputs.resolve import Input
from ..inputs.site_file import BadInput
from ..measuring.session import MeasurementOptions
from ..pipeline.diagnose import KnownState, diagnose
from ..pipeline.renumbering import found_again, gpu_places, waiting
from ..pipeline.source import Source
from ..state import acceptance, inventory_file
from .output.progress import show_progress
from .output.reports import warn_forced, warn_unread_dumps

_CUMULATIVE = ("count", "seconds")  # units of counters, which start with the machine or the driver


def accept(
    root: str, source: Sequence[str], site: str | None, options: MeasurementOptions, anyway: bool, state_dir: str | None
) -> tuple[str, Verdict]:
    """The text to print, and "ok" if the node was accepted, else its verdict. Raises BadInput."""
    target = _machine(root, source, state_dir)
    at = target.host.now()  # before reading: log entries written later are not accepted
    known = acceptance.of(root, source, state_dir, at)
    session = target.session(options)
    earlier_inventory = inventory_file.of(root, source, state_dir, known)
    sources = (*target.readers, Source("serials", read_serials))
    with show_progress(sources, session.probes) as (readers, measured):
        snapshot, before = diagnose(
            target.host,
            readers,
            measured,
            site_file.site(site),
            KnownState(known.baseline, known.at, earlier_inventory),
        )
    warn_unread_dumps(snapshot)
    warn_forced(session)
    if session.interrupted:
        raise BadInput("interrupted: the node was not accepted")
    counts = tuple(_counts(snapshot, at))
    rates = best_observations(snapshot)
    places = gpu_places(snapshot.of(Gpu).values())
    earlier = tuple(one for one in found_again(known.baseline, places) if _is_rate(one))
    inventory = _present(snapshot) or earlier_inventory
    after = evaluate(replace(snapshot, accepted=at, baseline=(*earlier, *counts), inventory=inventory))
    if after.verdict != "ok" and not anyway:
        return as_refused(after), after.verdict
    kept = tuple(one for one in earlier if one.about not in rates)
    folder = acceptance.folder_of(root, state_dir)
    try:
        baseline = waiting((*rates.values(), *kept, *counts), places)
        acceptance.write(folder, acceptance.Acceptance(at=at, baseline=baseline, inventory=inventory))
    except (OSError, ValueError) as refused:  # ValueError: a name with a zero byte
        raise BadInput(f"--state-dir {folder}: {getattr(refused, 'strerror', None) or refused}") from None
    return as_accepted(after, at, _cleared(before, after), len(rates), [one.at for one in kept]), "ok"


def _is_rate(one: Observation) -> bool:
    return isinstance(one.about, Flow) and one.quantity in RATES


def _machine(root: str, source: Sequence[str], state_dir: str | None) -> Input:
    if source and state_dir is None:
        raise BadInput("--from is a recording, not this machine: name a state folder for it with --state-dir")
    target = inputs.of(root, source)
    if target.host.origin == "dumps":
        raise BadInput("--from: dumps show parts of a machine; accept the machine itself, or a capture of it")
    return target


def _present(snapshot: Snapshot) -> Inventory | None:
    """What is present, and without which devices the operator accepts the node. None: not everything was read."""
    return accepted_now(present(snapshot), known_absent(snapshot, *PARTS)) if is_complete(snapshot) else None


def _counts(snapshot: Snapshot, at: float) -> Iterator[Observation]:
    """The last value of each counter, dated to the time of acceptance."""
    last: dict[tuple[str, str], Observation] = {}
    for one in sorted(snapshot.observations, key=lambda one: one.at):
        if isinstance(one.about, str) and one.unit in _CUMULATIVE:
            last[one.about, one.quantity] = replace(one, at=at)
    yield from last.values()


def _cleared(before: Report, after: Report) -> list[str]:
    """The findings that the acceptance clears."""
    still = {(one.code, one.subject) for one in after.findings if one.severity != "info"}
    return [
        f"{one.code} {one.subject}: {one.message}"
        for one in before.findings
        if one.severity != "info" and (one.code, one.subject) not in still
    ]
