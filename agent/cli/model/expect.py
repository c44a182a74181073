"""`linkgauge expect`: the expected rates of links and flows."""

from __future__ import annotations

import click

from ..options.input import OPS, VIA, from_options
from ..output.write import clear_errors, write


@click.command()
@click.argument("ends", nargs=-1)
@from_options
@click.option("--op", metavar="OP", type=click.Choice(OPS), help=f"{', '.join(OPS)}.  [default: depends on the ENDS]")
@click.option(
    "--via", type=click.Choice(VIA), help="Kind of link that the path must use; host: host memory; net: NICs."
)
@click.option("--size", metavar="BYTES", help="Size of one message: 64MiB, 1G, 4096.  [default: long messages]")
@click.option("--concurrent", is_flag=True, help="Run all flows at the same time; they share common links.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="[default: text]")
def expect(
    ends: tuple[str, ...],
    root: str,
    source: tuple[str, ...],
    site: str | None,
    op: str | None,
    via: str | None,
    size: str | None,
    concurrent: bool,
    form: str,
) -> None:
    """Show the expected rates, and the source of each rate.

    Without ENDS: the rate of each kind of link, from GPU memory to disks. With ENDS: the rate of the flows between
    them.

    \b
    linkgauge expect                              the whole node
    linkgauge expect GPU0 NIC3                    one path, hop by hop
    linkgauge expect gpu0 gpu1 --via host         through host memory
    linkgauge expect numa0                        one memory
    linkgauge expect 'gpu*->numa*' --concurrent   many flows at once
    linkgauge expect 'gpu*' --op all_reduce       a collective
    """  # noqa: D301 (click wants the character itself)
    with clear_errors():
        from ..output.reports import snapshot_of
        from .expect_args import expect as expecting

        write(
            expecting(snapshot_of(root, source, site, serials=bool(ends)), ends, op, via or "", size, concurrent, form),
            None,
        )
