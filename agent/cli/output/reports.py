"""Create the report or snapshot of a command, and render it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ....models.inventory.snapshot import Snapshot
from ....models.report import Context, Report
from ...inputs import resolve as inputs
from ...measuring.session import MeasurementOptions, Session
from ...pipeline.diagnose import diagnose, read_snapshot
from ...pipeline.registry import measure_nothing
from ...state import acceptance, inventory_file
from .progress import show_progress


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
    """The report of the input, and whether Ctrl-C interrupted its measurement. Raises BadInput."""
    target = inputs.of(root, source, with_tools)
    known = acceptance.of(root, source, state_dir, target.host.now())
    before = inventory_file.of(root, source, state_dir, known)
    session = target.session(options)
    with show_progress(target.readers, session.probes) as (readers, probes):
        ours = inputs.site(site, ignore, job)
        report = diagnose(target.host, readers, probes, ours, known.baseline, context, known.at, before)
    warn_forced(session)
    return report, session.interrupted


def snapshot_of(root: str, source: Sequence[str], site: str | None, with_tools: bool = False) -> Snapshot:
    """The snapshot of the input, not evaluated. Raises BadInput."""
    target = inputs.of(root, source, with_tools)
    with show_progress(target.readers, measure_nothing) as (readers, _):
        snapshot = read_snapshot(target.host, readers, inputs.site(site))
    warn_unread_dumps(snapshot)
    return snapshot


def warn_unread_dumps(snapshot: Snapshot) -> None:
    """Print on standard error which dumps could not be read, for commands that print no report."""
    for lost in snapshot.not_checked:
        if lost.what == "dump":
            print(f"{lost.subject}: {lost.why}", file=sys.stderr)


def warn_forced(session: Session) -> None:
    """Print a warning on standard error if --force overrode a check."""
    if session.overridden:
        print(f"Warning: measured by force, although {session.overridden}: rates may be too low", file=sys.stderr)


def rendered(report: Report, form: str, colour: bool) -> str:
    """Render the report as "text" or "json"."""
    if form == "json":
        from ....exporters.formats.json import as_json

        return as_json(report)
    from ....exporters.text.report import as_text

    return as_text(report, colour)


def rendered_topology(snapshot: Snapshot, form: str) -> str:
    """Render the topology: "text", "json", "nccl-xml", the matrix of path types ("matrix"), of link rates ("rates") or
    of the rates of copies ("copies"), or the "conflicts" between sources.
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
