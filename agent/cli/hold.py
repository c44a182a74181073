"""`linkgauge hold` stops measurements for a while; `linkgauge release` also closes the GPU driver."""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Callable

import click

_UNITS = {"s": 1, "m": 60, "h": 3600}
_LENGTH = re.compile(r"([0-9]{1,5})([smh])")
_LET_GO = 5.0  # seconds; a probe ends within one, a driver may need longer to free memory
_POLL = 0.05  # seconds between two checks whether a process still uses the machine
_EFFECTS = {
    "hold": "no measurement runs or starts",
    "release": "linkgauge has closed the GPU driver, and no measurement runs or starts",
}


_length = click.option(
    "--for", "length", metavar="TIME", help="Time until the hold or release ends: 30s, 10m, 2h; at most 24h."
)
_end = click.option("--end", is_flag=True, help="End the hold or release now.")


@click.command()
@_length
@_end
def hold(length: str | None, end: bool) -> None:
    """Stop the running measurement on this machine. For one minute, or the time of --for, no measurement starts.

    The command returns when linkgauge has freed all GPUs, usually within a second. A prolog runs it before a job
    starts. Exit code 1: a measurement did not end within 5 seconds.
    """
    from ...probes.calls.hold import HOLD
    from ..measuring.lock import is_locked

    _ask(HOLD, length or "1m", end, is_locked)


@click.command()
@_length
@_end
def release(length: str | None, end: bool) -> None:
    """Close the GPU driver in all linkgauge processes. For 10 minutes, or the time of --for, no measurement starts.

    Use this command before a GPU reset, a change of the MIG mode, or a driver update. Exit code 1: a process did not
    close the driver within 5 seconds.
    """
    from ...probes.calls.driver_lock import is_open
    from ...probes.calls.hold import RELEASE
    from ..measuring.lock import is_locked

    def why() -> str | None:
        return "a linkgauge process has the driver open" if is_open() else is_locked()

    _ask(RELEASE, length or "10m", end, why)


def _ask(what: str, length: str, end: bool, kept_by: Callable[[], str | None]) -> None:
    """Write the request and wait until no process uses the machine."""
    from ...probes.calls import hold as holding

    where = None
    try:
        where = holding.folder()
        if end:
            before = holding.active_request(what)
            holding.end(what)
            click.echo(f"The {what} ended; before, this machine was {before}." if before else f"There was no {what}.")
            return
        holding.hold(_seconds(length, holding.LONGEST), os.getppid(), what)
    except OSError as refused:
        who = ": only root and the user and group linkgauge may do this"
        other = who if refused.errno in (errno.EPERM, errno.EACCES) else ""
        raise click.ClickException(f"{where or refused.filename}: {refused.strerror}{other}") from None
    try:
        why = _awaited(kept_by)
    except OSError as refused:
        why = f"{refused.filename}: {refused.strerror}: cannot see whether a process uses the machine; remove this file"
    if why:
        click.echo(why, err=True)
        raise SystemExit(1)
    if active := holding.active_request(what):  # a request for one second may be over
        click.echo(f"This machine is {active}: {_EFFECTS[what]}. To end it: linkgauge {what} --end")


def _awaited(kept_by: Callable[[], str | None]) -> str | None:
    """Wait until no process uses the machine. Returns which process still does. Raises OSError."""
    until = time.monotonic() + _LET_GO
    while (why := kept_by()) is not None:
        if time.monotonic() > until:
            return f"{why}, for more than {_LET_GO:g} s"
        time.sleep(_POLL)
    return None


def _seconds(text: str, most: float) -> float:
    found = _LENGTH.fullmatch(text)
    if not found:
        raise click.UsageError(f"--for {text}: write 30s, 10m or 2h")
    seconds = float(int(found[1]) * _UNITS[found[2]])
    if seconds > most:
        raise click.UsageError(f"--for {text}: the maximum is 24h; repeat the command after that")
    return seconds
