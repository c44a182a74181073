"""What commands look at, and how they show it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from difflib import get_close_matches

from ..models.case import Case
from ..models.facts import Serial
from ..models.report import Context, Report
from ..probes.serials import read_serials
from . import inputs, state
from .pipeline import diagnose, examine, look
from .progress import shown as watched
from .sources import measure, measure_nothing


def report_of(
    root: str, source: Sequence[str], site: str | None, passive: bool, context: Context, with_tools: bool,
    ignore: Sequence[str] = (), state_dir: str | None = None,
) -> Report:  # fmt: skip
    """The report of this machine, or of what was given instead. Raises BadInput."""
    given = inputs.of(root, source, with_tools)
    known = state.of(root, source, state_dir, given.host.now())
    probes = measure if given.host.origin == "live" and root == "/" and not passive else measure_nothing
    with watched(given.readers, probes) as (readers, measured):
        ours = inputs.site(site, ignore)
        return diagnose(given.host, readers, measured, ours, known.baseline, context, known.at)


def case_of(root: str, source: Sequence[str], site: str | None, with_tools: bool = False) -> Case:
    """What is known of it, not judged. Raises BadInput."""
    given = inputs.of(root, source, with_tools)
    with watched(given.readers, measure_nothing) as (readers, _):
        case = look(given.host, readers, inputs.site(site))
    tell_lost(case)
    return case


def ticket_of(
    root: str, source: Sequence[str], site: str | None, subject: str, passive: bool, serial: bool
) -> str:  # fmt: skip
    """What a technician needs about one thing of it. Raises BadInput."""
    from ..exporters.ticket import as_ticket, names_of

    given = inputs.of(root, source)
    live = given.host.origin == "live" and root == "/"
    readers = (*given.readers, read_serials) if serial else given.readers
    with watched(readers, measure if live and not passive else measure_nothing) as (asked, measured):
        case, report = examine(given.host, asked, measured, inputs.site(site))
    tell_lost(case)
    found = [one.subject for one in report.findings]
    if subject not in ("node", *found) and not names_of(case, subject):
        near = get_close_matches(subject, [*found, *_names(case)], 3)
        hint = f"did you mean {' or '.join(near)}?" if near else "'linkgauge topology' shows what there is"
        raise inputs.BadInput(f"nothing here is called {subject!r}; {hint}")
    serials = {one.key: one.number or "" for one in case.of(Serial).values()}
    return as_ticket(case, report, subject, serials if serial else None)


def _names(case: Case) -> list[str]:
    return [name for device in case.topology.devices for name in (device.id, *device.aliases)]


def tell_lost(case: Case) -> None:
    """What could not be read of dumps, on standard error: a report says so too, other commands show what was read."""
    for lost in case.not_checked:
        if lost.what == "dump":
            print(f"{lost.subject}: {lost.why}", file=sys.stderr)


def told(report: Report, form: str, colour: bool) -> str:
    """The report as "text" or "json"."""
    if form == "json":
        from ..exporters.json import as_json

        return as_json(report)
    from ..exporters.text import as_text

    return as_text(report, colour)


def shown(case: Case, form: str) -> str:
    """The topology as "text", "json", "nccl-xml", or as a matrix of types of path ("matrix"), of "rates" or of
    what "copies" reach; or the "conflicts" of sources.
    """
    if form == "json":
        import msgspec

        return msgspec.json.format(msgspec.json.encode(case.topology), indent=2).decode()
    if form == "nccl-xml":
        from ..exporters.nccl_xml import as_nccl_xml

        return as_nccl_xml(case)
    if form in ("matrix", "rates"):
        from ..exporters.matrix import as_matrix
        from ..models.matrix import matrix

        return as_matrix(matrix(case), rates=form == "rates")
    if form == "copies":
        from ..exporters.matrix import as_matrix
        from ..models.matrix import copies

        return as_matrix(copies(case), rates=True, copies=True)
    if form == "conflicts":
        from ..exporters.conflicts import as_conflicts

        return as_conflicts(case)
    from ..exporters.tree import as_tree

    return as_tree(case.topology)
