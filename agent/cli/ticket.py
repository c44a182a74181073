"""`linkgauge ticket`: one thing of a node, looked at and looked up."""

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
from .output.progress import shown as watched
from .output.reports import tell_lost


def ticket(
    root: str, source: Sequence[str], site: str | None, subject: str, options: MeasurementOptions, serial: bool
) -> str:
    """What a technician needs about one thing of the node. Raises BadInput."""
    given = inputs.of(root, source)
    readers = (*given.readers, Source("serials", read_serials)) if serial else given.readers
    with watched(readers, given.session(options).probes) as (asked, measured):
        snapshot, report = examine(given.host, asked, measured, inputs.site(site))
    tell_lost(snapshot)
    found = [one.subject for one in report.findings]
    if subject not in ("node", *found) and not names_of(snapshot, subject):
        near = get_close_matches(subject, [*found, *_names(snapshot)], 3)
        hint = f"did you mean {' or '.join(near)}?" if near else "'linkgauge topology' shows what there is"
        raise inputs.BadInput(f"nothing here is called {subject!r}; {hint}")
    serials = {one.key: one.number or "" for one in snapshot.of(Serial).values()}
    return as_ticket(snapshot, report, subject, serials if serial else None)


def _names(snapshot: Snapshot) -> list[str]:
    return [name for device in snapshot.topology.devices for name in (device.id, *device.aliases)]
