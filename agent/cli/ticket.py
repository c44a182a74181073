"""`linkgauge ticket`: a repair ticket for one device of a node, or for the node."""

from __future__ import annotations

from collections.abc import Sequence

from ...exporters.commands.ticket import as_ticket
from ...models.facts.machine import Serial
from ...models.inventory.name_resolver import names_of, unknown
from ..inputs import resolve as inputs
from ..inputs import site_file
from ..measuring.session import MeasurementOptions
from ..pipeline.diagnose import KnownState, diagnose
from ..state import acceptance, inventory_file
from .output.progress import show_progress
from .output.reports import warn_unread_dumps, with_serials


def ticket(
    root: str,
    source: Sequence[str],
    site: str | None,
    subject: str,
    options: MeasurementOptions,
    serial: bool,
    state_dir: str | None = None,
) -> str:
    """The text of the ticket. Raises BadInput."""
    target = inputs.of(root, source)
    sources = with_serials(target.readers)
    known = acceptance.of(root, source, state_dir, target.host.now())
    before = inventory_file.of(root, source, state_dir, known)
    state = KnownState(inventory=before)
    with show_progress(sources, target.session(options).probes) as (readers, measured):
        snapshot, report = diagnose(target.host, readers, measured, site_file.site(site), state)
    warn_unread_dumps(snapshot)
    found = [one.subject for one in report.findings]
    if subject not in ("node", *found) and not names_of(snapshot, subject):
        raise site_file.BadInput(unknown(snapshot, subject, tuple(found)))
    serials = {item.key: item.serial for item in (before.devices if before else ()) if item.serial}
    serials |= {one.key: one.number for one in snapshot.of(Serial).values() if one.number}
    serials |= {one.key: f"node GUID {one.guid}" for one in snapshot.of(Serial).values() if one.guid and not one.number}
    return as_ticket(snapshot, report, subject, serials if serial else None)
