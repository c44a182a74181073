"""`linkgauge window`: errors, flaps, throttling and traffic during a job."""

from __future__ import annotations

import click

from .output.write import clear_errors, write

_state_dir = click.option(
    "--state-dir",
    metavar="DIR",
    type=click.Path(),
    help="Folder for the data of open windows.  [default: /var/lib/linkgauge]",
)
_root = click.option(
    "--root", metavar="DIR", type=click.Path(), default="/", help="Read the host whose root is mounted at DIR."
)


@click.group()
def window() -> None:
    """Show errors, flaps, throttled seconds, traffic, peak traffic and rates of collectives during a job.

    A Slurm prolog opens the window of a job, and an epilog closes it. Both read the counters. Peak traffic needs a
    running `linkgauge serve`, and rates of collectives need its `[jobs] inspector`. If several jobs share a node, the
    counters include all of these jobs.
    """


@window.command("open", short_help="Store the counters when a job starts.")
@click.argument("job")
@_state_dir
@_root
def open_(job: str, state_dir: str | None, root: str) -> None:
    """Store the counters at the start of JOB."""
    with clear_errors():
        from ..inputs.resolve import live
        from ..service.job_window import open_window
        from ..state.acceptance import folder_of

        open_window(live(root).host, folder_of(root, state_dir), job)
    click.echo(f"The window of job {job} is open. 'linkgauge window close {job}' shows what changed, and deletes it.")


@window.command(short_help="Show the changes since the job started.")
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
    """Show how the counters changed since the start of JOB, and delete the window."""
    with clear_errors():
        from ...exporters.commands.window import as_json, as_text
        from ..inputs.resolve import live
        from ..service.job_window import close_window
        from ..state.acceptance import folder_of

        result = close_window(live(root).host, folder_of(root, state_dir), job)
    write(as_json(result) if form == "json" else as_text(result), None)
