"""`linkgauge serve`: the service."""

from __future__ import annotations

import click

from .output.write import clear_errors


@click.command(short_help="Look again and again, and tell Prometheus.")
@click.option("--listen", metavar="HOST:PORT", help="Where to answer.  [default: 127.0.0.1:9841]")
@click.option(
    "--config",
    metavar="FILE",
    type=click.Path(),
    help="How often to look and what to measure (TOML).  [default: /etc/linkgauge/linkgauge.toml]",
)
@click.option(
    "--state-dir",
    metavar="DIR",
    type=click.Path(),
    help="What a restart must not forget.  [default: /var/lib/linkgauge]",
)
@click.option(
    "--root", metavar="DIR", type=click.Path(), default="/", help="Read the host whose root is mounted at DIR."
)
@click.option(
    "--from",
    "source",
    metavar="CAPTURE",
    type=click.Path(),
    help="A capture instead of this machine, to try rules and dashboards; needs --state-dir.",
)
def serve(listen: str | None, config: str | None, state_dir: str | None, root: str, source: str | None) -> None:
    """Look at this node every 15 seconds (every minute while a job runs), and answer Prometheus.

    Nothing is measured unless the configuration says when. SIGHUP reads all files again, SIGTERM ends it.
    """
    if source is not None and (root != "/" or state_dir is None):
        raise click.UsageError("--from goes without --root, and with a --state-dir of its own: it is another machine")
    with clear_errors():
        from ..service.main import Told
        from ..service.main import serve as serving

        serving(Told(listen=listen, config=config, state_dir=state_dir, root=root, source=source))
