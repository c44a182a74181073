"""Machine types: list them, show one, recognise the type of a node, and write one from an accepted node."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from ....exporters.formats.site_toml import FROM_NODE, as_toml
from ....models.bandwidth.profile_from_node import Unrecognisable, machine_of
from ....models.catalog import machines
from ....models.inventory.snapshot import Snapshot
from ....models.site.schema import Machine, Site
from ...inputs import resolve as inputs
from ...inputs import site_file
from ...inputs.resolve import Input
from ...inputs.site_file import BadInput
from ...measuring.session import MeasurementOptions
from ...pipeline.diagnose import diagnose
from ..output.progress import show_progress
from ..output.reports import snapshot_of, warn_unread_dumps


def profile_text(
    root: str,
    source: Sequence[str],
    site: str | None,
    machine: str | None,
    every: bool,
    from_node: bool,
    name: str | None,
    options: MeasurementOptions,
    anyway: bool,
) -> str:
    """The output of `linkgauge profile`. Raises BadInput."""
    if every:
        return listing(site_file.site(site))
    if machine is not None:
        return machine_toml(machine, site_file.site(site))
    if from_node:
        return from_accepted_node(inputs.of(root, source), site_file.site(site), name, options, anyway)
    return recognised(snapshot_of(root, source, site))


def listing(site: Site) -> str:
    """The names of all machine types, those of the site first, and what identifies each."""
    every = (*site.machine, *machines())
    width = max(len(machine.name) for machine in every)
    return "\n".join(f"{machine.name:{width}}  {_known_by(machine)}" for machine in every)


def _known_by(machine: Machine) -> str:
    functions = ", ".join(f"{count} x {numbers}" for numbers, count in machine.functions.items())
    return machine.instance or machine.product or machine.gpu or functions


def machine_toml(name: str, site: Site) -> str:
    """A machine type of the site or the catalog, as TOML. Raises BadInput."""
    known = {machine.name: machine for machine in (*machines(), *site.machine)}
    if name not in known:
        near = get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]!r}?" if near else "'linkgauge profile --list' lists them"
        raise BadInput(f"no machine type is called {name!r}; {hint}")
    return as_toml(known[name])


def recognised(snapshot: Snapshot) -> str:
    """The machine type of the node as TOML, with what identified it. Raises BadInput."""
    if snapshot.machine is None:
        raise BadInput("no known machine type fits this node; 'linkgauge profile --from-node' writes one from it")
    return f"# recognised by {snapshot.matched_by}\n\n{as_toml(snapshot.machine)}"


def from_accepted_node(target: Input, site: Site, name: str | None, options: MeasurementOptions, anyway: bool) -> str:
    """Write a machine type from the node as TOML: its devices and, if idle, its measured rates. Raises BadInput."""
    if name == "":
        raise BadInput("--name: a machine type needs a name")
    with show_progress(target.readers, target.session(options).probes) as (readers, probes):
        snapshot, report = diagnose(target.host, readers, probes, site)
    warn_unread_dumps(snapshot)
    wrong = [finding for finding in report.findings if finding.severity != "info" and not finding.silenced]
    if wrong and not anyway:
        codes = ", ".join(f"{finding.code} {finding.subject}" for finding in wrong[:3])
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise BadInput(
            f"this node is {report.verdict} ({codes}{more}), and its machine type would accept these faults: fix them "
            "first, or pass --anyway"
        )
    try:
        return FROM_NODE + as_toml(machine_of(snapshot, name or "our-node"))
    except Unrecognisable as nothing:
        raise BadInput(str(nothing)) from None
