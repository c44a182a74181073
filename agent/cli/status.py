"""`linkgauge status`: the verdict and the state of the running service."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from .options.input import service_state_dir
from .output.exits import EXIT
from .output.write import clear_errors, write

if TYPE_CHECKING:
    from ...exporters.commands.status import ServiceView
    from ..state.status_file import Status

_REMEDY = (
    "Start the service with 'systemctl start linkgauge', name its folder with --state-dir, or examine the node without "
    "it: 'linkgauge diagnose'."
)


@click.command(short_help="Show the verdict and the state of the running service.")
@service_state_dir
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    help="json is one line, linkgauge.status/1.  [default: text]",
)
def status(state_dir: str | None, form: str) -> None:
    """Show the last verdict of `linkgauge serve`, its findings with their times, and the state of the service.

    The command reads and measures nothing. It shows sources that give no answer, holds and releases with the user who
    made them, and the time of the next measurement. Exit codes as for diagnose: 0 ok, 1 degraded, 2 failed, 3 unknown,
    also if no service runs.
    """
    with clear_errors():
        from ..state import status_file
        from ..state.acceptance import folder_of
        from ..state.service_lock import why_silent

        now, unknown, folder = time.time(), None, folder_of("/", state_dir)
        try:
            found = status_file.read(folder, now)
        except status_file.StatusUnknown as reason:
            if reason.last is None:
                click.echo(f"Error: {reason}. {_REMEDY}", err=True)
                sys.exit(EXIT["unknown"])
            found, unknown = reason.last, f"{reason}. {_REMEDY}"
        if unknown is None and (why := why_silent(folder, found.at)):
            unknown = f"{why}. {_REMEDY}"
        view = _view(found, now, unknown)
        from ...exporters.commands.status import as_json, as_text
        from ...exporters.text.terminal import within
        from .output.reports import in_colour, terminal_columns

    with within(terminal_columns(None)):
        text = as_json(view) if form == "json" else as_text(view, in_colour(None))
    write(text, None)
    sys.exit(EXIT[view.verdict])


def _view(found: Status, now: float, unknown: str | None) -> ServiceView:
    """The view of a status file. `unknown`: why it is out of date."""
    from ...exporters.commands.status import ServiceView
    from ...probes.calls.hold import HOLD, RELEASE, active_request

    state = found.service
    verdict = "unknown" if unknown else found.verdict
    return ServiceView(
        node=state.node,
        verdict=verdict,
        unknown=unknown or state.unknown,
        at=found.at,
        every=found.every,
        now=now,
        findings=found.findings,
        last_seen=[state.last_seen.get(f"{one.code}:{one.subject}") for one in found.findings],
        stuck=[(one.name, one.tries, one.again) for one in state.stuck],
        requests=[text for text in map(active_request, (HOLD, RELEASE)) if text],
        measures_at=state.measures_at,
        unused=state.unused,
    )
