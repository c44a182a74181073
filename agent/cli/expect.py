"""`linkgauge expect`: what links and ways should give."""

from __future__ import annotations

import click

from .options.input import OPS, VIA, from_options
from .output.write import clear_errors, write


@click.command(short_help="Say what links and ways should give, and what holds them.")
@click.argument("ends", nargs=-1)
@from_options
@click.option("--op", metavar="OP", type=click.Choice(OPS), help=f"{', '.join(OPS)}.  [default: what fits the ends]")
@click.option("--via", type=click.Choice(VIA), help="What the way must go over.")
@click.option("--size", metavar="BYTES", help="Of one message: 64MiB, 1G, 4096.  [default: long ones]")
@click.option("--concurrent", is_flag=True, help="All flows run at once, and share the links that they have in common.")
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
    """Say what each level of this node should give, from GPU memory to disks; or what flows between ENDS get, and why.

    \b
    linkgauge expect                              the whole node
    linkgauge expect GPU0 NIC3                    one way, hop by hop
    linkgauge expect gpu0 gpu1 --via host         through host memory
    linkgauge expect numa0                        one memory
    linkgauge expect 'gpu*->numa*' --concurrent   many flows at once
    linkgauge expect 'gpu*' --op all_reduce       a collective
    """  # noqa: D301 (click wants the character itself)
    with clear_errors():
        from .expect_args import expect as expecting
        from .output.reports import snapshot_of

        write(expecting(snapshot_of(root, source, site), ends, op, via or "", size, concurrent, form), None)
