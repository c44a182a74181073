"""`linkgauge formula`: one formula of collectives, networks or rooflines, with the numbers of a machine."""

from __future__ import annotations

import click

from ..options.input import complete_machine
from ..output.write import clear_errors, write


def complete_formula(context: object, parameter: object, incomplete: str) -> list[str]:
    """Complete names of formulas."""
    from ....models.training.formulas import FORMULAS

    return [name for name in FORMULAS if name.startswith(incomplete)]


@click.command()
@click.argument("name", required=False, shell_complete=complete_formula)
@click.argument("values", metavar="[KEY=VALUE]...", nargs=-1)
@click.option(
    "--machine",
    metavar="TYPE",
    shell_complete=complete_machine,
    help="Use the compute rate and the rates of this machine type (linkgauge profile --list).",
)
@click.option(
    "--level",
    type=click.Choice(["node", "fabric"]),
    default="fabric",
    help="With --machine: rate of a GPU inside a node, or of a node between nodes.  [default: fabric]",
)
@click.option("--site", metavar="FILE", type=click.Path(), help="The site file (TOML), for its machine types.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="[default: text]")
def formula(
    name: str | None, values: tuple[str, ...], machine: str | None, level: str, site: str | None, form: str
) -> None:
    """Compute the formula NAME. Without NAME, list all formulas.

    Numbers may have a prefix: 990T is 990e12, 64Mi is 64 x 2^20.

    \b
    linkgauge formula critical_tokens --machine nvidia-dgx-h100
    linkgauge formula critical_tokens flops=990T rate=400G experts=128 active=4
    linkgauge formula bubble stages=8 micro_batches=32
    """  # noqa: D301 (click wants the character itself)
    with clear_errors():
        from .formula_args import listing, rendered

        write(rendered(name, values, machine, level, site, form) if name else listing(), None)
