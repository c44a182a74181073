"""Decide whether a job may run on this node. The only input is the status file; nothing is read or measured."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ...models.facts.units import as_utc
from ...models.report import Finding
from ..inputs import site_file
from ..state import acceptance, status_file
from ..state.gate_view import View, disabled_by, gate_view
from ..state.status_file import Unknown


def view(site: str | None, folder: str, strict: bool = False, further: Sequence[Finding] = ()) -> View:
    """The gate of the node whose service uses this state folder. Raises BadInput if the site file is wrong.

    `further`: findings of this node that the service does not know, from measurements between nodes.

    If the service has stopped, the findings of its last cycle still close the gate, unless the node was accepted since.
    """
    gate = site_file.site(site).gate
    disabled = disabled_by(gate.disable_file)
    try:
        found = status_file.read(folder)
    except Unknown as reason:
        last = (*_of_last_cycle(reason, folder), *further)
        return gate_view(gate, "unknown", last, None, disabled, str(reason), strict)
    return gate_view(gate, found.verdict, (*found.findings, *further), found.at, disabled, strict=strict)


def _of_last_cycle(reason: Unknown, folder: str) -> tuple[Finding, ...]:
    """The findings of the last cycle of a service that has stopped. An acceptance clears them."""
    if reason.last is None:
        return ()
    accepted = (acceptance.read(folder) or acceptance.Acceptance()).at
    if accepted is not None and accepted > reason.last.at:
        return ()
    why = f"not evaluated since {as_utc(reason.last.at)}"
    return tuple(replace(one, message=f"{one.message}; {why}") for one in reason.last.findings)
