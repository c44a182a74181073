"""Changes between two times: errors, flaps, throttled seconds and bytes during a job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from ..facts.counters import ERRORS, TRAFFIC

Kind: TypeAlias = Literal["errors", "flaps", "throttled", "bytes", "peak", "reached"]
Count: TypeAlias = tuple[str, str, str]  # about, quantity, unit

_FLAPS = frozenset({"link_downed", "carrier_changes"})
_MEMORY = frozenset({"ecc_corrected", "ecc_uncorrected", "ce_count", "ue_count"})
_BY_DESIGN = frozenset({"clocks_sw_power"})  # power limit reached: normal for a GPU under load


class Change(Struct, frozen=True, kw_only=True):
    """The increase of a counter, or the maximum of a rate."""

    kind: Kind
    about: str
    quantity: str
    unit: str
    value: float
    at_least: bool = False  # the counter was reset in between


class Logged(Struct, frozen=True, kw_only=True):
    """A line of the kernel log."""

    kind: str
    subject: str
    at: str
    text: str


class Window(Struct, frozen=True, kw_only=True):
    """All changes in a period. `restarted`: the machine booted during the period, so earlier counts are lost."""

    schema: Literal["linkgauge.window/1"] = "linkgauge.window/1"
    job: str
    began: str
    ended: str
    seconds: float
    restarted: bool
    changes: tuple[Change, ...] = ()
    logged: tuple[Logged, ...] = ()
    gone: tuple[str, ...] = ()  # counters that exist only at the beginning
    not_read: tuple[str, ...] = ()


def changes(
    before: Mapping[Count, float], after: Mapping[Count, float], reset: bool = False
) -> tuple[tuple[Change, ...], tuple[str, ...]]:
    """The increase of each counter, by subject and quantity, and the counters that disappeared. `reset`: all were
    reset.

    A lower value than before means a reset; the new value is then the minimum increase. A counter without an earlier
    value is left out: its start is unknown. If each NVLink has a counter, the GPU's sum is left out.
    """
    found = []
    single = {(about.partition("/nvlink")[0], quantity) for about, quantity, _ in after if "/nvlink" in about}
    for key, value in after.items():
        about, quantity, unit = key
        kind = _kind(quantity, unit)
        earlier = 0.0 if reset else before.get(key)
        if kind is None or earlier is None or (about, quantity) in single:
            continue
        fell = value < earlier
        rose = value if fell else value - earlier
        if rose > 0:
            change = Change(kind=kind, about=about, quantity=quantity, unit=unit, value=rose, at_least=fell or reset)
            found.append(change)
    order = ("errors", "flaps", "throttled", "bytes", "peak")
    things = {about for about, _, _ in after}
    gone = sorted({about for about, _, _ in before} - things)
    return tuple(sorted(found, key=lambda one: (order.index(one.kind), one.about, one.quantity))), tuple(gone)


def _kind(quantity: str, unit: str) -> Kind | None:
    if quantity in _FLAPS:
        return "flaps"
    if quantity in TRAFFIC:
        return "bytes"
    if quantity in ERRORS or quantity in _MEMORY:
        return "errors"
    return "throttled" if unit == "seconds" and quantity not in _BY_DESIGN else None
