"""What commands tell: text on standard output or into a file, and the user's mistakes in a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click


@contextmanager
def clear_errors() -> Iterator[None]:
    """A user's mistake becomes one sentence and exit code 64."""
    from ...inputs.resolve import BadInput

    try:
        yield
    except BadInput as wrong:
        raise click.ClickException(str(wrong)) from None


def write(text: str, path: str | None) -> None:
    """Print the text, or write it into the file that was named."""
    text = text if text.endswith("\n") else f"{text}\n"
    if path is None:
        click.echo(text, nl=False, color=True)
        return
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as refused:
        raise click.ClickException(f"{path}: {refused.strerror}") from None
