"""`linkgauge fabric`: measure the pairs of several nodes, and find what the slow pairs have in common."""

from __future__ import annotations

import os
import sys

import click

from ..measuring.budget import Budget, budget_of
from .output.exits import EXIT
from .output.write import clear_errors, write

_TOKEN = "LINKGAUGE_FABRIC_TOKEN"
_SHORTEST = 16  # characters of a token


@click.command(short_help="Find slow nodes, ports, leaves and uplinks between nodes.")
@click.option("--hosts", metavar="FILE|a,b,c", help="Coordinate these nodes. They run linkgauge fabric --join.")
@click.option("--join", metavar="HOST[:PORT]", help="Be a node of the coordinator HOST.")
@click.option("--at", metavar="HOST[:PORT]", help="Where the nodes reach the coordinator.  [default: any, port 18510]")
@click.option("--name", metavar="NODE", help="The name of this node.  [default: the host name]")
@click.option("--rail", metavar="NAME", multiple=True, help="Measure this device (eth1, mlx5_0/1). Repeatable.")
@click.option(
    "--topology",
    metavar="FILE",
    multiple=True,
    type=click.Path(),
    help="Slurm's topology.conf or topology.yaml, ibnetdiscover, or EC2 instance topology (JSON). Repeatable.",
)
@click.option("--seconds", type=click.FloatRange(0.05, 60), default=1.0, show_default=True, help="Time of a flow.")
@click.option("--budget", metavar="300s,1TB", default="300s,100TB", show_default=True, help="Limit of the whole run.")
@click.option("--wait", type=click.FloatRange(1, 3600), default=60.0, show_default=True, help="Seconds to join.")
@click.option(
    "--patience",
    type=click.FloatRange(1, 600),
    default=10.0,
    show_default=True,
    help="Seconds that a node has to answer. A node that does not answer is named, and the others continue.",
)
@click.option("--token-file", metavar="FILE", type=click.Path(), help=f"The shared secret.  [default: ${_TOKEN}]")
@click.option("--owner", metavar="slurm:ID", help="Your own job.  [default: that of srun]")
@click.option("--force", is_flag=True, help="Measure although this node is busy.")
@click.option("--plan", "only_plan", is_flag=True, help="Print the plan, and measure nothing.")
@click.option("--reports", metavar="DIR", type=click.Path(), help="Write the report of each node to DIR/NODE.json.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    help="json is linkgauge.fabric/1.  [default: text]",
)
@click.option("--output", "-o", metavar="FILE", type=click.Path(), help="Write to FILE instead of standard output.")
def fabric(
    form: str, output: str | None, reports: str | None, budget: str, token_file: str | None, **words: object
) -> None:
    """Measure the rates between nodes, and find slow nodes, ports, leaves and uplinks.

    \b
    With srun or mpirun (one process for each node):
      srun --ntasks-per-node=1 linkgauge fabric
      mpirun -N 1 -x LINKGAUGE_FABRIC_TOKEN linkgauge fabric --at FIRST-NODE
    Without them:
      clush -w node[1-8] linkgauge fabric --join head --token-file FILE &
      linkgauge fabric --hosts node1,node2,... --token-file FILE

    All processes need the same secret: export LINKGAUGE_FABRIC_TOKEN=$(openssl rand -hex 16). The coordinator (rank 0)
    prints the plan, measures and prints the report. A node that is busy takes no part. The measurement uses ib_write_bw
    on RDMA ports if it is installed, else TCP.

    Exit codes of the coordinator: 0 no fault, 1 slow parts, 3 a node is missing or nothing was measured.
    """  # noqa: D301 (click wants the character itself)
    with clear_errors():
        from ..fabric.command import Wanted, run

        wanted = Wanted(token=_token(token_file), budget=_budget(budget), **words)  # type: ignore[arg-type]
        result = run(wanted)
    if result is None or wanted.only_plan:
        return
    from ...exporters.commands.fabric import as_json, as_text
    from .output.reports import in_colour

    if reports is not None:
        _write_reports(reports, result.reports)
    write(as_json(result.fabric) if form == "json" else as_text(result.fabric, in_colour(output)), output)
    sys.exit(EXIT[result.fabric.verdict])


def _budget(text: str) -> Budget:
    try:
        return budget_of(text, "full")
    except ValueError as wrong:
        raise click.UsageError(f"--budget {wrong}") from None


def _token(path: str | None) -> bytes:
    """The shared secret. Raises UsageError and BadInput."""
    from ..inputs.site_file import read_text

    text = os.environ.get(_TOKEN, "") if path is None else read_text(path, "--token-file")
    if len(text.strip()) < _SHORTEST:
        where = f"${_TOKEN}" if path is None else f"--token-file {path}"
        raise click.UsageError(
            f"{where}: a secret of at least {_SHORTEST} characters, the same on all nodes: openssl rand -hex 16"
        )
    return text.strip().encode()


def _write_reports(folder: str, found: object) -> None:
    assert isinstance(found, dict)
    os.makedirs(folder, exist_ok=True)
    for node, report in found.items():
        write(report.decode("utf-8", "replace"), os.path.join(folder, f"{node.replace('/', '_')}.json"))
