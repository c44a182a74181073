"""What commands look at, and how they show it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ....models.inventory.snapshot import Snapshot
from ....models.report import Context, Report
from ...inputs import resolve as inputs
from ...measuring.session import MeasurementOptions, Session
from ...pipeline.diagnose import diagnose, look
from ...pipeline.registry import measure_nothing
from ...state import acceptance as state
from .progress import shown as watched


def report_of(
    root: str,
    source: Sequence[str],
    site: str | None,
    options: MeasurementOptions,
    context: Context,
    with_tools: bool,
    ignore: Sequence[str] = (),
    state_dir: str | None = None,
    job: str | None = None,
) -> tuple[Report, bool]:
    """The report of this machine, or of what was given instead; and whether it was cut short. Raises BadInput."""
    given = inputs.of(root, source, with_tools)
    known = state.of(root, source, state_dir, given.host.now())
    session = given.session(options)
    with watched(given.readers, session.probes) as (readers, probes):
        ours = inputs.site(site, ignore, job)
        report = diagnose(given.host, readers, probes, ours, known.baseline, context, known.at)
    tell_forced(session)
    return report, session.interrupted


def snapshot_of(root: str, source: Sequence[str], site: str | None, with_tools: bool = False) -> Snapshot:
    """What is known of it, not judged. Raises BadInput."""
    given = inputs.of(root, source, with_tools)
    with watched(given.readers, measure_nothing) as (readers, _):
        snapshot = look(given.host, readers, inputs.site(site))
    tell_lost(snapshot)
    return snapshot


def tell_lost(snapshot: Snapshot) -> None:
    """What could not be read of dumps, on standard error: a report says so too, other commands show what was read."""
    for lost in snapshot.not_checked:
        if lost.what == "dump":
            print(f"{lost.subject}: {lost.why}", file=sys.stderr)


def tell_forced(session: Session) -> None:
    """What --force has overridden, on standard error."""
    if session.overridden:
        print(f"Warning: measured by force, although {session.overridden}: rates may be too low", file=sys.stderr)


def told(report: Report, form: str, colour: bool) -> str:
    """The report as "text" or "json"."""
    if form == "json":
        from ....exporters.formats.json import as_json

        return as_json(report)
    from ....exporters.text.report import as_text

    return as_text(report, colour)


def shown(snapshot: Snapshot, form: str) -> str:
    """The topology as "text", "json", "nccl-xml", or as a matrix of types of path ("matrix"), of "rates" or of
    what "copies" reach; or the "conflicts" of sources.
    """
    if form == "json":
        import msgspec

        return msgspec.json.format(msgspec.json.encode(snapshot.topology), indent=2).decode()
    if form == "nccl-xml":
        from ....exporters.formats.nccl_xml import as_nccl_xml

        return as_nccl_xml(snapshot)
    if form in ("matrix", "rates"):
        from ....exporters.text.matrix import as_matrix
        from ....models.bandwidth.path_matrix import matrix

        return as_matrix(matrix(snapshot), rates=form == "rates")
    if form == "copies":
        from ....exporters.text.matrix import as_matrix
        from ....models.bandwidth.path_matrix import copies

        return as_matrix(copies(snapshot), rates=True, copies=True)
    if form == "conflicts":
        from ....exporters.text.conflicts import as_conflicts
        from ....probes import live_tools

        return as_conflicts(snapshot, live_tools.NAMES)
    from ....exporters.text.tree import as_tree

    return as_tree(snapshot.topology)
