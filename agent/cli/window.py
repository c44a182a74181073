"""`linkgauge window`: what the time of a job saw."""

from __future__ import annotations

import click

from .output.write import clear_errors, write

_state_dir = click.option(
    "--state-dir",
    metavar="DIR",
    type=click.Path(),
    help="Where it is kept until the job ends.  [default: /var/lib/linkgauge]",
)
_root = click.option(
    "--root", metavar="DIR", type=click.Path(), default="/", help="Read the host whose root is mounted at DIR."
)


@click.group(short_help="Say what the time of a job saw: errors, flaps, throttling, bytes.")
def window() -> None:
    """Say what the time of a job saw: errors, flaps, throttled seconds, bytes, and the most of them in a second.

    A prolog opens the window of a job, its epilog closes it. Counters are read at both; what went over a link in its
    busiest second is known where `linkgauge serve` runs. On a node with several jobs all of them count.
    """


@window.command("open", short_help="Remember what is counted when a job begins.")
@click.argument("job")
@_state_dir
@_root
def open_(job: str, state_dir: str | None, root: str) -> None:
    """Remember what is counted now, when JOB begins."""
    with clear_errors():
        from ..inputs.resolve import live
        from ..service.job_window import begin
        from ..state.acceptance import folder_of

        begin(live(root).host, folder_of(root, state_dir), job)


@window.command(short_help="Say what was counted since the job began.")
@click.argument("job")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    help="json is one line, linkgauge.window/1.  [default: text]",
)
@_state_dir
@_root
def close(job: str, form: str, state_dir: str | None, root: str) -> None:
    """Say what was counted since the window of JOB was opened, and forget it."""
    with clear_errors():
        from ...exporters.text.job_window import as_json, as_text
        from ..inputs.resolve import live
        from ..service.job_window import end
        from ..state.acceptance import folder_of

        told = end(live(root).host, folder_of(root, state_dir), job)
    write(as_json(told) if form == "json" else as_text(told), None)
