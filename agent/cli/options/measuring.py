"""The measurement options of a command, which takes them as one `MeasurementOptions`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from ...measuring.budget import budget_of
from ...measuring.registry import PROBES

if TYPE_CHECKING:
    from ...measuring.session import MeasurementOptions

_OWNER = ("slurm:", "kubernetes:")
_OPTIONS = (
    click.option(
        "--level",
        type=click.Choice(["passive", "quick", "full"]),
        default="quick",
        help="passive: measure nothing; quick: each kind of link, at most 15 s; full: every path, at most 150 s.  "
        "[default: quick]",
    ),
    click.option("--passive", is_flag=True, help="Same as --level passive: measure nothing."),
    click.option(
        "--only",
        metavar="PROBE",
        multiple=True,
        type=click.Choice(list(PROBES)),
        help=f"Run only this probe: {', '.join(PROBES)}. Repeatable.",
    ),
    click.option("--skip", metavar="PROBE", multiple=True, type=click.Choice(list(PROBES)), help="Skip this probe."),
    click.option("--budget", metavar="30s,20GB", help="Limit of seconds and bytes for all measurements."),
    click.option(
        "--owner",
        metavar="slurm:ID",
        help="Your own job (slurm:ID) or pod (kubernetes:UID): measure although this job has the machine.",
    ),
    click.option(
        "--force", is_flag=True, help="Measure although the machine is busy. The report shows why it is busy."
    ),
    click.option(
        "--mount",
        metavar="DIR",
        multiple=True,
        type=click.Path(),
        help="Also measure reads of this file system, even on a network or cloud disk. Repeatable.",
    ),
    click.option(
        "--write-to", metavar="DIR", type=click.Path(), help="Also measure writes: write a file in DIR, then delete it."
    ),
    click.option(
        "--peer",
        metavar="HOST",
        multiple=True,
        help="With --level full: measure the network to this host. Start 'iperf3 -s' or 'ib_write_bw' there first.",
    ),
)


def measuring_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add these options to a command, which takes them as `options`."""

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
