"""Output of commands: text on standard output or in a file, and error messages for mistakes of the user."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click


@contextmanager
def clear_errors() -> Iterator[None]:
    """Turn BadInput into an error message and exit code 64."""
    from ...inputs.resolve import BadInput

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
