"""`linkgauge hold`: let go of the machine, for whoever starts a job on it."""

from __future__ import annotations

import getpass
import os
import re
import time

import click

_UNITS = {"s": 1, "m": 60, "h": 3600}
_LENGTH = re.compile(r"([0-9]{1,5})([smh])")
_LET_GO = 5.0  # seconds; a probe ends within one, and a driver may take longer to free what it had
_GLANCE = 0.05


@click.command(short_help="Stop measuring, and do not measure for a while.")
@click.option("--for", "length", metavar="TIME", default="1m", help="How long: 30s, 10m, 2h.  [default: 1m]")
@click.option("--end", is_flag=True, help="Hold it no longer.")
def hold(length: str, end: bool) -> None:
    """Stop what is being measured on this machine, and let nobody measure for a while.

    Returns when every GPU is free again, within a second; a prolog calls it before a job starts. Exit code 1: a run did
    not let go within 5 seconds.
    """
    from ..probes import hold as holding
    from .lock import is_locked

    try:
        if end:
            holding.end()
            return
        holding.hold(_seconds(length), f"{_user()}, process {os.getppid()},")
    except OSError as refused:
        raise click.ClickException(f"{holding.folder()}: {refused.strerror}; another user holds it") from None
    until = time.monotonic() + _LET_GO
    while (why := is_locked()) is not None:
        if time.monotonic() > until:
            click.echo(f"{why}, and has not let go within {_LET_GO:g} s", err=True)
            raise SystemExit(1)
        time.sleep(_GLANCE)


def _seconds(text: str) -> float:
    found = _LENGTH.fullmatch(text)
    if not found:
        raise click.UsageError(f"--for {text}: write 30s, 10m or 2h")
    return float(int(found[1]) * _UNITS[found[2]])


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return f"user {os.getuid()}"
