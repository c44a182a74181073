"""`linkgauge hold` and `linkgauge release`: let go of the machine, or of its GPUs' driver, for whoever needs it."""

from __future__ import annotations

import getpass
import os
import re
import time
from collections.abc import Callable

import click

_UNITS = {"s": 1, "m": 60, "h": 3600}
_LENGTH = re.compile(r"([0-9]{1,5})([smh])")
_LET_GO = 5.0  # seconds; a probe ends within one, and a driver may take longer to free what it had
_GLANCE = 0.05


_length = click.option("--for", "length", metavar="TIME", help="How long: 30s, 10m, 2h; a day at most.")
_end = click.option("--end", is_flag=True, help="No longer.")


@click.command(short_help="Stop measuring, and do not measure for a while.")
@_length
@_end
def hold(length: str | None, end: bool) -> None:
    """Stop what is being measured on this machine, and let nobody measure for a while: a minute, or --for.

    Returns when every GPU is free again, within a second; a prolog calls it before a job starts. Exit code 1: a run did
    not let go within 5 seconds.
    """
    from ...probes.calls.hold import HOLD
    from ..measuring.lock import is_locked

    _ask(HOLD, length or "1m", end, is_locked)


@click.command(short_help="Close the GPUs' driver for a while.")
@_length
@_end
def release(length: str | None, end: bool) -> None:
    """Let nothing of linkgauge have the GPUs' driver open, and let nobody measure, for a while: 10 minutes, or --for.

    For what needs the GPUs alone: a reset, a change of MIG mode, another driver. Exit code 1: it was not closed within
    5 seconds.
    """
    from ...probes.calls.driver_lock import is_open
    from ...probes.calls.hold import RELEASE
    from ..measuring.lock import is_locked

    def why() -> str | None:
        return "a process of linkgauge has the driver open" if is_open() else is_locked()

    _ask(RELEASE, length or "10m", end, why)


def _ask(what: str, length: str, end: bool, kept_by: Callable[[], str | None]) -> None:
    """Write it down, and wait until nobody keeps the machine any more."""
    from ...probes.calls import hold as holding

    try:
        if end:
            holding.end(what)
            return
        holding.hold(_seconds(length, holding.LONGEST), f"{_user()}, process {os.getppid()},", what)
    except OSError as refused:
        raise click.ClickException(f"{holding.folder()}: {refused.strerror}; another user asked before") from None
    until = time.monotonic() + _LET_GO
    while (why := kept_by()) is not None:
        if time.monotonic() > until:
            click.echo(f"{why}, and has not let go within {_LET_GO:g} s", err=True)
            raise SystemExit(1)
        time.sleep(_GLANCE)


def _seconds(text: str, most: float) -> float:
    found = _LENGTH.fullmatch(text)
    if not found:
        raise click.UsageError(f"--for {text}: write 30s, 10m or 2h")
    seconds = float(int(found[1]) * _UNITS[found[2]])
    if seconds > most:
        raise click.UsageError(f"--for {text}: a day (24h) is the longest; ask again when it is over")
    return seconds


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return f"user {os.getuid()}"
