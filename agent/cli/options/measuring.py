"""The options by which a command is told what to measure; they reach it as one `wish`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from ...measuring.budget import PROBES, budget_of

if TYPE_CHECKING:
    from ...measuring.session import MeasurementOptions

_OWNER = ("slurm:", "kubernetes:")
_OPTIONS = (
    click.option(
        "--level",
        type=click.Choice(["passive", "quick", "full"]),
        default="quick",
        help="What to measure: nothing; each kind of link in at most 15 s; every way in at most 150 s.  "
        "[default: quick]",
    ),
    click.option("--passive", is_flag=True, help="As --level passive: read only, measure nothing."),
    click.option(
        "--only",
        metavar="PROBE",
        multiple=True,
        type=click.Choice(list(PROBES)),
        help=f"Measure this alone (several times): {', '.join(PROBES)}.",
    ),
    click.option("--skip", metavar="PROBE", multiple=True, type=click.Choice(list(PROBES)), help="Leave this out."),
    click.option("--budget", metavar="30s,20GB", help="Seconds and bytes that measuring may use."),
    click.option(
        "--owner",
        metavar="slurm:ID",
        help="The job that this machine was given to, where that is yours; kubernetes:UID is a pod.",
    ),
    click.option("--force", is_flag=True, help="Measure although the machine is busy: what it overrides is said."),
    click.option(
        "--mount",
        metavar="DIR",
        multiple=True,
        type=click.Path(),
        help="Read from the file system there too, though it is on a network or a cloud's disk.",
    ),
    click.option(
        "--write-to", metavar="DIR", type=click.Path(), help="Write a file there and remove it, to measure writing."
    ),
    click.option(
        "--peer",
        metavar="HOST",
        multiple=True,
        help="At --level full, measure the network to a machine where 'iperf3 -s' or 'ib_write_bw' waits.",
    ),
)


def measuring_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command these options; it takes `wish`."""

    @wraps(command)
    def gathered(
        *args: Any,
        level: str,
        passive: bool,
        only: Iterable[str],
        skip: Iterable[str],
        budget: str | None,
        owner: str | None,
        force: bool,
        mount: tuple[str, ...],
        write_to: str | None,
        peer: tuple[str, ...],
        **others: Any,
    ) -> Any:
        if passive and level == "full":
            raise click.UsageError("--passive and --level full exclude each other")
        if owner is not None and (not owner.startswith(_OWNER) or owner.endswith(":")):
            raise click.UsageError(f"--owner {owner}: name the job as slurm:4711 or kubernetes:POD-UID")
        options = _options("passive" if passive else level, only, skip, budget, owner, force, mount, write_to, peer)
        return command(*args, options=options, **others)

    for option in reversed(_OPTIONS):
        gathered = option(gathered)
    return gathered


def _options(
    level: Any,
    only: Iterable[str],
    skip: Iterable[str],
    budget: str | None,
    owner: str | None,
    force: bool,
    mount: tuple[str, ...],
    write_to: str | None,
    peer: tuple[str, ...],
) -> MeasurementOptions:
    from ...measuring.session import MeasurementOptions

    try:
        allowed = None if budget is None else budget_of(budget, level)
    except ValueError as wrong:
        raise click.UsageError(f"--budget {wrong}") from None
    return MeasurementOptions(
        effort=level,
        only=frozenset(only),
        skip=frozenset(skip),
        budget=allowed,
        force=force,
        owner=owner,
        mounts=mount,
        write_to=write_to,
        peers=peer,
    )
