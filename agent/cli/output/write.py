"""Output of commands: text on standard output or in a file, and error messages for mistakes of the user."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

import click


@contextmanager
def clear_errors() -> Iterator[None]:
    """Turn BadInput into an error message and exit code 64."""
    from ...inputs.site_file import BadInput

    try:
        yield
    except BadInput as wrong:
        raise click.ClickException(str(wrong)) from None


def write(text: str, path: str | None) -> None:
    """Print the text, or write it to the named file."""
    text = text if text.endswith("\n") else f"{text}\n"
    if path is None:
        click.echo(text, nl=False, color=True)
        return
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as refused:
        raise click.ClickException(f"{path}: {refused.strerror}") from None


@contextmanager
def emptied_at_the_end() -> Iterator[None]:
    """Discard what standard output and standard error do not take, such as files on a full disk.

    Python 3.13 tries to write it at its end, and then exits with 120.
    """
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                _empty(stream)


def _empty(stream: TextIO) -> None:
    try:
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        stream.flush()
