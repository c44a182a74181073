"""`linkgauge serve`: the service."""

from __future__ import annotations

import click

from .output.write import clear_errors


@click.command()
@click.option("--listen", metavar="HOST:PORT", help="Address of the web server.  [default: 127.0.0.1:9841]")
@click.option(
    "--config",
    metavar="FILE",
    type=click.Path(),
    help="The configuration of the service (TOML).  [default: /etc/linkgauge/linkgauge.toml]",
)
@click.option(
    "--state-dir",
    metavar="DIR",
    type=click.Path(),
    help="Folder for the state that the service reads again after a restart.  [default: /var/lib/linkgauge]",
)
@click.option(
    "--root", metavar="DIR", type=click.Path(), default="/", help="Read the host whose root is mounted at DIR."
)
@click.option(
    "--from",
    "source",
    metavar="CAPTURE",
    type=click.Path(),
    help="Read a capture instead of this machine, to test rules and dashboards; needs --state-dir.",
)
def serve(listen: str | None, config: str | None, state_dir: str | None, root: str, source: str | None) -> None:
    """Diagnose this node every 15 seconds (every minute while a job runs), and export the metrics to Prometheus.

    The service measures only if the configuration schedules measurements. SIGHUP reloads all files. SIGTERM ends the
    service.
    """
    if source is not None and (root != "/" or state_dir is None):
        raise click.UsageError("--from is another machine: leave out --root, and pass a --state-dir of its own")
    with clear_errors():
        from ..service.main import ServeOptions
        from ..service.main import serve as serving

        serving(ServeOptions(listen=listen, config=config, state_dir=state_dir, root=root, source=source))
