"""Create the report or snapshot of a command, and render it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ....exporters.text.terminal import safe
from ....models.diagnosis.ignored import unmatched
from ....models.inventory.snapshot import Snapshot
from ....models.report import Context, Report
from ...inputs import resolve as inputs
from ...inputs import site_file
from ...inputs.job_options import NOT_GIVEN, JobOptions
from ...measuring.session import MeasurementOptions, Session
from ...pipeline.diagnose import KnownState, diagnose, read_snapshot
from ...pipeline.registry import measure_nothing
from ...pipeline.source import Source
from ...state import acceptance, inventory_file
from .progress import show_progress

if TYPE_CHECKING:
    from ....probes.redfish import Controller
    from ...inputs.inspector import Found

_MOST = 5  # warnings about entries of [ignore]


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
    further: Sequence[Source] = (),
    of_job: JobOptions = NOT_GIVEN,
) -> tuple[Report, bool]:
    """The report of the input, and whether Ctrl-C interrupted its measurement. Raises BadInput.

    `further`: sources beside those of the input.
    """
    if (found := _inspector_files(source, of_job)) is not None:
        from ..job_report import report_of_job

        return report_of_job(found, of_job, site, ignore), False
    _, report, interrupted = examined(root, source, site, options, context, with_tools, ignore, state_dir, job, further)
    return report, interrupted


def examined(
    root: str,
    source: Sequence[str],
    site: str | None,
    options: MeasurementOptions,
    context: Context,
    with_tools: bool,
    ignore: Sequence[str] = (),
    state_dir: str | None = None,
    job: str | None = None,
    further: Sequence[Source] = (),
) -> tuple[Snapshot, Report, bool]:
    """As report_of, for a node, with the evaluated snapshot."""
    started = time.monotonic()
    target = inputs.of(root, source, with_tools)
    known = acceptance.of(root, source, state_dir, target.host.now())
    before = inventory_file.of(root, source, state_dir, known)
    state = KnownState(known.baseline, known.at, before, context)
    session = target.session(options)
    ours = site_file.site(site, ignore, job)
    sources = with_serials(target.readers) if any(":" in entry for entry in ours.ignore) else target.readers
    sources = (*sources, *further)
    with show_progress(sources, session.probes) as (readers, probes):
        snapshot, report = diagnose(target.host, readers, probes, ours, state)
    warn_forced(session)
    warn_unmatched(snapshot, report)
    report = replace(report, seconds=round(time.monotonic() - started, 3))
    return snapshot, report, session.interrupted


def _inspector_files(source: Sequence[str], of_job: JobOptions) -> Found | None:
    """The output of the NCCL Inspector in the input. None: the input is of a node. Raises BadInput."""
    given = [f"--{name}" for name, value in of_job._asdict().items() if value is not None]
    if not source and not given:
        return None
    from ...inputs.inspector import found_in

    found = found_in(source)
    if not found.files and given:
        raise site_file.BadInput(_without_files(source, given[0]))
    return found if found.files else None


def _without_files(source: Sequence[str], option: str) -> str:
    if absent := [path for path in source if not os.path.exists(path)]:
        return f"--from {absent[0]}: no such file or folder"
    if source:
        return f"--from {source[0]} has no output of the NCCL Inspector, and {option} is only for that"
    return f"{option} is for the output of the NCCL Inspector: name its folder with --from"


def further(ras: tuple[str, int] | None, redfish: Controller | None) -> tuple[Source, ...]:
    """The sources that other programs answer: NCCL's RAS subsystem at host and port, and the management controller."""
    found = []
    if ras:
        from ....probes.nccl_ras import read_ras

        found.append(Source("nccl_ras", partial(read_ras, ras)))
    if redfish:
        from ....probes.redfish import read_redfish

        found.append(Source("redfish", partial(read_redfish, redfish)))
    return tuple(found)


def with_serials(sources: tuple[Source, ...]) -> tuple[Source, ...]:
    """The sources, and one for serial numbers: the user may name a device by its serial number."""
    from ....probes.serials import read_serials

    return (*sources, Source("serials", read_serials))


def snapshot_of(
    root: str,
    source: Sequence[str],
    site: str | None,
    with_tools: bool = False,
    serials: bool = False,
    redfish: Controller | None = None,
) -> Snapshot:
    """The snapshot of the input, not evaluated; with serial numbers if `serials`. Raises BadInput."""
    target = inputs.of(root, source, with_tools)
    sources = with_serials(target.readers) if serials else target.readers
    sources = (*sources, *further(None, redfish))
    with show_progress(sources, measure_nothing) as (readers, _):
        snapshot = read_snapshot(target.host, readers, site_file.site(site))
    warn_unread_dumps(snapshot)
    return snapshot


def warn_unread_dumps(snapshot: Snapshot) -> None:
    """Print on standard error which dumps could not be read, for commands that print no report."""
    for lost in snapshot.not_checked:
        if lost.what == "dump":
            print(safe(f"{lost.subject}: {lost.why}"), file=sys.stderr)


def warn_forced(session: Session) -> None:
    """Print a warning on standard error if --force overrode a check."""
    if session.overridden:
        print(f"Warning: measured by force, although {session.overridden}: rates may be too low", file=sys.stderr)


def warn_unmatched(snapshot: Snapshot, report: Report) -> None:
    """Print on standard error which entries of [ignore] and --ignore match no finding."""
    unused = unmatched(snapshot, report.findings)
    for entry, why in list(unused.items())[:_MOST]:
        print(safe(f"Warning: ignore {entry}: {why}"), file=sys.stderr)
    if len(unused) > _MOST:
        print(f"Warning: {len(unused) - _MOST} more entries of [ignore] match no finding", file=sys.stderr)


def in_colour(output: str | None) -> bool:
    """Whether to colour: on a terminal that has colours, and without the variable NO_COLOR (https://no-color.org)."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return output is None and sys.stdout.isatty() and not plain


def terminal_columns(output: str | None) -> int | None:
    """The width of the terminal. None: the text goes into a file or a pipe."""
    import shutil

    return shutil.get_terminal_size().columns if output is None and sys.stdout.isatty() else None


def rendered_topology(snapshot: Snapshot, form: str) -> str:
    """Render the topology: "text", "json", "nccl-xml", "hwloc-xml", "topograph-json", "dot", the matrix of path types
    ("matrix"), of link rates ("rates") or of the rates of copies ("copies"), or the "conflicts" between sources.
    """
    if form == "json":
        import msgspec

        return msgspec.json.format(msgspec.json.encode(snapshot.topology), indent=2).decode()
    if form == "nccl-xml":
        from ....exporters.formats.nccl_xml import as_nccl_xml

        return as_nccl_xml(snapshot)
    if form in ("hwloc-xml", "topograph-json"):
        return _for_others(snapshot, form)
    if form == "dot":
        from ....exporters.formats.graphviz import as_dot

        return as_dot(snapshot.topology)
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


def _for_others(snapshot: Snapshot, form: str) -> str:
    """The topology for hwloc or Topograph. Raises BadInput if it lacks what they need."""
    from ....exporters.formats.hwloc_xml import as_hwloc_xml
    from ....exporters.formats.topograph import as_topograph

    try:
        return as_hwloc_xml(snapshot) if form == "hwloc-xml" else as_topograph(snapshot)
    except ValueError as wrong:
        raise site_file.BadInput(f"--format {form}: {wrong}") from None
