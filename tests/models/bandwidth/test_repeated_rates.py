"""The decision about repeated measurements: its false rate, its losses found, and what does not change it."""

from __future__ import annotations

from random import Random

import pytest

from linkgauge.models.bandwidth.repeated_rates import (
    BATCH,
    FEWEST,
    LOST,
    MOST,
    Decision,
    continued,
    decide,
    error_of,
    middle,
)
from linkgauge.models.facts.records import Evidence, Flow, Observation

LEAST = 0.02  # largest loss of a healthy flow
SCATTER = 0.02


def decided(loss: float, chance: Random) -> Decision:
    """The decision about one flow after all its batches."""
    values: list[float] = []
    found: Decision = "undecided"
    while found == "undecided" and len(values) < MOST:
        values += [(1 - loss) * chance.gauss(1, SCATTER) for _ in range(BATCH)]
        found = decide(middle(values), error_of(SCATTER, len(values)), LEAST)
    return found


@pytest.mark.parametrize(("loss", "least"), [(0.03, 0.8), (0.05, 0.95), (0.1, 0.99)])
def test_a_lost_share_is_found(loss: float, least: float) -> None:
    chance = Random(1)
    assert sum(decided(loss, chance) == "slow" for _ in range(400)) >= least * 400


def test_chance_alone_makes_no_flow_slow() -> None:
    chance = Random(2)
    assert sum(decided(0.0, chance) == "slow" for _ in range(5000)) == 0


def test_the_order_of_measurements_does_not_matter() -> None:
    chance = Random(3)
    values = [chance.gauss(1, SCATTER) for _ in range(MOST)]
    assert middle(chance.sample(values, k=len(values))) == pytest.approx(middle(values), rel=1e-12)


def test_disturbed_measurements_do_not_move_the_middle() -> None:
    values = [1.0] * (MOST - MOST // 4)
    assert middle([*values, *[0.1] * (MOST // 4)]) == 1.0


def test_a_smaller_error_does_not_turn_a_clear_decision() -> None:
    for share in (0.5, 0.9, 0.95):
        found = [decide(share, error, LEAST) for error in (0.01, 0.005, 0.001, 0.0)]
        assert found[-1] == "slow"
        assert "equal" not in found
    assert [decide(1.0, error, LEAST) for error in (0.03, 0.01, 0.001)] == ["undecided", "equal", "equal"]


def test_few_measurements_call_no_flow_slow() -> None:
    assert decide(0.5, 0.0, LEAST, settled=False) == "undecided"
    assert decide(1 - LOST / 2, error_of(SCATTER, FEWEST), LEAST) == "undecided"


def observed(*values: float) -> list[Observation]:
    flow, source = Flow("copy", ("gpu0", "gpu1"), 1 << 28), Evidence("cuMemcpyAsync", "copies of 256 MiB")
    return [
        Observation(about=flow, quantity="rate", unit="bytes_per_second", value=one, at=1.0, evidence=source)
        for one in values
    ]


def test_the_past_counts_until_the_rate_changes() -> None:
    past = observed(0.99, 1.0, 1.01, 0.98, 1.02, 1.0)
    assert continued(past, observed(1.01)) == past
    assert continued(past, observed(0.9)) == ()
