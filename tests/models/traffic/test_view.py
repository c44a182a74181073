"""Rates and rises from any sequence of counters: never negative, never 0 without two equal values, never invented."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.graph.topology import Device, Link, Topology
from linkgauge.models.traffic.reading import Count, Reading
from linkgauge.models.traffic.view import View, advance

PORT = Topology(
    (Device("0000:01:00.0", "nic"), Device("mlx5_0/1", "port")),
    (Link("0000:01:00.0>mlx5_0/1", "0000:01:00.0", "mlx5_0/1", "port", 50e9, 50e9, grade="infiniband"),),
)
LASTS = 10.0
COUNTS = st.none() | st.integers(0, 1 << 64)
STEPS = st.lists(st.tuples(st.integers(1, 20), COUNTS, COUNTS), max_size=8)  # seconds, bytes received, errors


def reading(at: float, received: int | None, errors: int | None) -> Reading:
    values = {"port_rcv_data": received, "symbol_error": errors}
    counts = {("mlx5_0/1", name): Count(float(value), at) for name, value in values.items() if value is not None}
    return Reading(node="a", at=at, topology=PORT, counts=counts, lasts=LASTS)


@given(STEPS)
def test_rates_follow_from_two_values(steps: list[tuple[int, int | None, int | None]]) -> None:
    view, at = View(), 0.0
    last: tuple[float, float] | None = None
    risen, errors_before = 0.0, None
    for seconds, received, errors in steps:
        at += seconds
        view = advance(view, reading(at, received, errors))
        (link,) = view.links
        expected = None
        if received is not None:
            if last is not None and float(received) >= last[1]:
                expected = (float(received) - last[1]) / (at - last[0])
            last = at, float(received)
        assert (link.received, link.sent) == (expected, None)
        assert (link.used is None) == (expected is None)
        if errors is not None:
            if errors_before is not None:
                risen += float(errors) if float(errors) < errors_before else float(errors) - errors_before
            errors_before = float(errors)
        assert link.risen == ({"symbol_error": risen} if risen else {})


def test_a_value_that_is_not_read_again_is_valid_for_some_seconds() -> None:
    first, second = reading(0.0, 0, 0), reading(1.0, 1000, 0)
    view = advance(advance(View(), first), second)
    rates = []
    for at in (2.0, 1.0 + LASTS, 1.1 + LASTS):
        view = advance(view, Reading(node="a", at=at, topology=PORT, counts=second.counts, lasts=LASTS))
        rates.append(view.links[0].received)
    assert rates == [1000.0, 1000.0, None]
