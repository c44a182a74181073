"""`linkgauge history`: what the service recorded of this node."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from .options.input import service_state_dir
from .output.write import clear_errors, write

if TYPE_CHECKING:
    from ...models.history.past import History, State

_REMEDY = (
    "Start the service with 'systemctl start linkgauge', or name its folder with --state-dir. As another user than "
    "root, be in the group linkgauge."
)
_MOST_DRAWN = 12  # flows in a picture


@click.command(short_help="Show past verdicts, findings and rates of this node.")
@click.argument("device", required=False)
@click.option("--since", metavar="TIME", default="30d", help="How far back: 12h, 30d.  [default: 30d]")
@service_state_dir
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    help="json is one line, linkgauge.history/1.  [default: text]",
)
@click.option("--plot", metavar="FILE.svg", type=click.Path(), help="Draw the rates.")
@click.option("--output", "-o", metavar="FILE", type=click.Path(), help="Write to FILE instead of standard output.")
def history(
    device: str | None, since: str, state_dir: str | None, form: str, plot: str | None, output: str | None
) -> None:
    """Show the verdicts, findings and measured rates that `linkgauge serve` recorded, of this node or of DEVICE.

    DEVICE is a name as in the findings: gpu3, mlx5_0/1, nvme2, 0000:1e:00.0. The service writes a line when the verdict
    or a finding changes, and each measured rate. A lasting change of a rate has the time of its start.
    """
    with clear_errors():
        found, node = _read(since, state_dir)
    title = node
    if device is not None:
        found, title = _of_device(found, device), f"{device} of {node}"
    if plot is not None:
        _draw(found, node, plot)
    from ...exporters.commands.history import as_json, as_text

    write(as_json(found, node) if form == "json" else as_text(found, title), output)


def _read(since: str, state_dir: str | None) -> tuple[History, str]:
    """The history since that time, and the name of the node. Raises BadInput."""
    from ..inputs.site_file import BadInput
    from ..service.config import seconds
    from ..state.acceptance import folder_of
    from ..state.read_history import read_history

    folder = folder_of("/", state_dir)
    try:
        return read_history(folder, time.time() - seconds(since)), _name(folder)
    except OSError as refused:
        raise BadInput(f"{refused.filename or folder}: {refused.strerror}. {_REMEDY}") from None
    except ValueError as wrong:
        raise BadInput(str(wrong)) from None


def _name(folder: str) -> str:
    """The name of the node in the last report; "this node" without one."""
    from ..state import status_file

    try:
        return status_file.read(folder, time.time()).service.node or "this node"
    except status_file.StatusUnknown as reason:
        return (reason.last and reason.last.service.node) or "this node"


def _of_device(history: History, device: str) -> History:
    """The part that is about a device: findings that name it, flows from or to it, and its hardware.

    Raises click.ClickException if there is none: after a typing error, a history without findings looks healthy.
    """
    from msgspec.structs import replace

    def names(text: str) -> bool:
        return device.lower() in text.lower().replace("(", " ").replace(")", " ").replace(",", " ").split()

    states: list[State] = []
    for state in history.states:
        found = tuple(one for one in state.findings if names(one.subject.replace("-", " ")) or names(one.device))
        if not states or states[-1].findings != found:
            states.append(replace(state, findings=found))
    rates = {flow: series for flow, series in history.rates.items() if any(names(end) for end in flow.ends)}
    inventories = tuple(
        replace(one, devices=tuple(item for item in one.devices if names(f"{item.key} {item.alias}")))
        for one in history.inventories
    )
    if not (rates or any(one.findings for one in states) or any(one.devices for one in inventories)):
        raise click.ClickException(
            f"{device}: no device, finding or rate of this name is recorded; 'linkgauge topology' lists the names"
        )
    return replace(history, states=tuple(states), rates=rates, inventories=inventories)


def _draw(history: History, node: str, path: str) -> None:
    from ...exporters.drawing.rate_history import as_svg

    try:
        if not history.rates:
            raise click.ClickException("--plot: no rate is recorded; [probes] in linkgauge.toml schedules measurements")
        if len(history.rates) > _MOST_DRAWN:
            raise click.ClickException(f"--plot: {len(history.rates)} flows are too many: name a DEVICE")
        if not path.lower().endswith(".svg"):
            raise click.ClickException(f"--plot {path}: name a file that ends in .svg")
        with open(path, "w", encoding="utf-8") as file:
            file.write(as_svg(history, node))
    except OSError as wrong:
        raise click.ClickException(f"--plot {path}: {wrong.strerror}") from None
