"""A source of the service: lasting changes of the rates in the history."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from ...models.bandwidth.repeated_rates import RATE_BEFORE, RATE_SINCE
from ...models.facts.records import Evidence, Flow, Observation, Record
from ...models.history.drift import Drift, drift
from ...models.inventory.inventory import Inventory, differences
from ..state.history_file import FILE
from ..state.read_history import read_history

NAME = "drift"
EVERY = 3600.0  # seconds between two evaluations; one takes about a millisecond for each flow
_SPAN = 30 * 86400.0  # seconds of rates that are compared
_LIMIT = 3.0  # seconds for the queries; thirty days of hourly rates take some 10 ms


def read_drifts(
    folder: str, now: float, accepted: float | None, pause: Callable[[], None] = lambda: None
) -> Iterator[Record]:
    """Two observations for each flow whose rate has changed: the rates before and since. Raises OSError, ValueError.

    Rates from before an acceptance, or of other hardware, are not compared. `pause` is called after each flow.
    """
    history = read_history(folder, now - _SPAN, _LIMIT)
    start = max(accepted or 0.0, _same_hardware_since(history.inventories))
    for flow, series in history.rates.items():
        found = drift([(at, rate) for at, rate in series if start <= at <= now])
        if found:
            yield from _observations(flow, found)
        pause()


def _same_hardware_since(inventories: Sequence[Inventory]) -> float:
    """When a device was added, removed, swapped or moved last. New firmware is a reason to look for a drift."""
    times = [
        after.taken_at
        for before, after in pairwise(inventories)
        if any(change.kind != "firmware" for change in differences(before, after))
    ]
    return times[-1] if times else 0.0


def _observations(flow: Flow, found: Drift) -> Iterator[Observation]:
    for quantity, value in ((RATE_BEFORE, found.before), (RATE_SINCE, found.after)):
        yield Observation(
            about=flow,
            quantity=quantity,
            unit="bytes_per_second",
            value=value,
            at=found.start,
            evidence=Evidence(FILE, f"median {found.before:.4g} B/s before, {found.after:.4g} B/s since"),
        )
