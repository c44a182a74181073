"""`linkgauge serve`: the service."""

from __future__ import annotations

import click

from .output.write import clear_errors


@click.command(short_help="Watch this node as a service for Prometheus.")
@click.option("--listen", metavar="HOST:PORT", help="Address of the web server.  [default: 127.0.0.1:9841]")
@click.option(
    "--config",
    metavar="FILE",
    type=click.Path(),
    help="Intervals and measurements (TOML).  [default: /etc/linkgauge/linkgauge.toml]",
)
@click.option(
    "--state-dir",
    metavar="DIR",
    type=click.Path(),
    help="Folder for state that survives a restart.  [default: /var/lib/linkgauge]",
)
@click.option(
    "--root", metavar="DIR", type=click.Path(), default="/", help="Read the host whose root is mounted at DIR."
)
@click.option(
    "--from",
    "source",
    metavar="CAPTURE",
    type=click.Path(),
    help="A capture instead of this machine, to test rules and dashboards; needs --state-dir.",
)
def serve(listen: str | None, config: str | None, state_dir: str | None, root: str, source: str | None) -> None:
    """Evaluate this node every 15 seconds (every minute while a job runs), and serve the metrics to Prometheus.

    Measurements run only if the configuration schedules them. SIGHUP reloads all files, SIGTERM ends the service.
    """
    if source is not None and (root != "/" or state_dir is None):
        raise click.UsageError("--from is another machine: leave out --root, and pass a --state-dir of its own")
    with clear_errors():
        from ..service.main import ServeOptions
        from ..service.main import serve as serving

        serving(ServeOptions(listen=listen, config=config, state_dir=state_dir, root=root, source=source))
