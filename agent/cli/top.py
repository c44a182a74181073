"""`linkgauge top`: live traffic of every link."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import click

from .output.write import clear_errors

if TYPE_CHECKING:
    from ...models.traffic.selection import Choice, Order
    from ...models.traffic.view import View
    from ..top.live import Feed

_UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0}
_LEAST, _MOST = 0.1, 3600.0  # seconds


def _seconds(context: click.Context, parameter: click.Parameter, text: str) -> float:
    found = re.fullmatch(r"([0-9]{1,5}(?:\.[0-9]{1,3})?)(ms|s|m)", text)
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not _LEAST <= seconds <= _MOST:
        raise click.BadParameter(f"{text}: give a time from 100ms to 60m, such as 1s")
    return seconds


@click.command()
@click.option(
    "--interval", metavar="TIME", default="1s", callback=_seconds, help="Time between readings.  [default: 1s]"
)
@click.option("--once", is_flag=True, help="Print one table, after two readings, and end.")
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON (linkgauge.top/1) for each reading.")
@click.option(
    "--sort",
    "order",
    type=click.Choice(["name", "used", "in", "out", "errors"]),
    default="name",
    help="used: the busiest link first, relative to its expected rate.  [default: name]",
)
@click.option(
    "--filter", "text", metavar="TEXT", default="", help="Show only links whose name, kind or product has TEXT."
)
@click.option("--all", "every", is_flag=True, help="Also show links without traffic counters, errors or faults.")
@click.option(
    "--url", metavar="URL", help="Read the report of `linkgauge serve` instead of this machine: http://127.0.0.1:9841."
)
@click.option(
    "--site", metavar="FILE", type=click.Path(), help="The site file (TOML).  [default: /etc/linkgauge/site.toml]"
)
@click.option(
    "--root", metavar="DIR", type=click.Path(), default="/", help="Read the host whose root is mounted at DIR."
)
def top(
    interval: float,
    once: bool,
    as_json: bool,
    order: Order,
    text: str,
    every: bool,
    url: str | None,
    site: str | None,
    root: str,
) -> None:
    """Show the live traffic of every link against its expected rate, new errors, and clocks of GPUs.

    The command moves no data: it reads counters, as the service does. Rates are of one direction. Keys: q quit, p
    pause, s sort, / filter, t tree, a all links, g GPUs.

    With --url it shows what the service reads, once per cycle of the service, without disks and clocks.
    """
    if url is not None and (root != "/" or site is not None):
        raise click.UsageError("--url excludes --root and --site: it is the report of another process")
    live = not (once or as_json)
    if live and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("the live view needs a terminal: add --once or --json")
    from ...models.traffic.selection import Choice
    from ..top.live import show
    from .output.reports import in_colour

    with clear_errors():
        feed = _feed(url, interval, site, root)
    choice = Choice(order=order, text=text, every=every or as_json)
    if live:
        show(feed, choice, in_colour(None))
    else:
        _print(feed, choice, interval, once, as_json)


def _feed(url: str | None, interval: float, site: str | None, root: str) -> Feed:
    """The source of readings. Raises BadInput."""
    if url is not None:
        from ..top.service_page import ServiceFeed

        return ServiceFeed(url, interval)
    from ...probes.calls.worker import Workers
    from ..inputs import resolve, site_file
    from ..top.sampling import LocalFeed

    return LocalFeed(resolve.live(root, Workers()).host, interval, site_file.site(site))


def _print(feed: Feed, choice: Choice, interval: float, once: bool, as_json: bool) -> None:
    """Print complete views: one, or one in each interval."""
    from ..top.live import views

    for view in views(feed, interval):
        click.echo(_rendered(view, choice, as_json), nl=False, color=True)
        if once:
            return


def _rendered(view: View, choice: Choice, as_json: bool) -> str:
    import shutil

    from ...exporters.text.terminal import WIDTH
    from ...exporters.traffic.json import as_json as json_of
    from ...exporters.traffic.tables import as_text
    from .output.reports import in_colour

    if as_json:
        return json_of(view, choice)
    return as_text(view, choice, shutil.get_terminal_size((WIDTH, 24)).columns, in_colour(None))
