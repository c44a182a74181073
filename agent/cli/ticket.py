"""`linkgauge ticket`: a repair ticket for one device of a node, or for the node."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from ...exporters.text.ticket import as_ticket, names_of
from ...models.facts.machine import Serial
from ...models.inventory.snapshot import Snapshot
from ...probes.serials import read_serials
from ..inputs import resolve as inputs
from ..measuring.session import MeasurementOptions
from ..pipeline.diagnose import examine
from ..pipeline.source import Source
from ..state import acceptance, inventory_file
from .output.progress import show_progress
from .output.reports import warn_unread_dumps


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
    sources = (*target.readers, Source("serials", read_serials)) if serial else target.readers
    known = acceptance.of(root, source, state_dir, target.host.now())
    before = inventory_file.of(root, source, state_dir, known)
    with show_progress(sources, target.session(options).probes) as (readers, measured):
        snapshot, report = examine(target.host, readers, measured, inputs.site(site), inventory=before)
    warn_unread_dumps(snapshot)
    found = [one.subject for one in report.findings]
    if subject not in ("node", *found) and not names_of(snapshot, subject):
        near = get_close_matches(subject, [*found, *_names(snapshot)], 3)
        hint = f"did you mean {' or '.join(near)}?" if near else "'linkgauge topology' lists all names"
        raise inputs.BadInput(f"this node has no device {subject!r}; {hint}")
    serials = {item.key: item.serial for item in (before.devices if before else ()) if item.serial}
    serials |= {one.key: one.number for one in snapshot.of(Serial).values() if one.number}
    return as_ticket(snapshot, report, subject, serials if serial else None)


def _names(snapshot: Snapshot) -> list[str]:
    return [name for device in snapshot.topology.devices for name in (device.id, *device.aliases)]
