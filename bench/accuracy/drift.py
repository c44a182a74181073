"""Drifts that the service finds, and false ones: python -m bench.accuracy.drift [SEEDS]

Each series has hourly rates with 1 % noise. It is evaluated after each hour, as the service does. In the first series
the rate falls by 3 % after 20 days, in the others it does not change for 30 days. The exit code is 1 if fewer than 95 %
of the drifts are found within a day of their start, or if more than 1 % of the other series have one.
"""

from __future__ import annotations

import sys
from random import Random
from statistics import median

from linkgauge.models.history.drift import drift

SEEDS = 50
HOUR, DAY = 3600.0, 86400.0
_RATE, _NOISE, _LOSS = 55e9, 0.01, 0.03
_START = 20 * DAY
_SPAN = 30 * 24  # rates that the service compares


def series(seed: int, days: int, loss: float) -> list[tuple[float, float]]:
    """Times and rates; from day 20 on lower by `loss`."""
    random = Random(seed)
    times = [hour * HOUR for hour in range(days * 24)]
    return [(at, random.gauss(_RATE, _NOISE * _RATE) * (1 - loss * (at >= _START))) for at in times]


def first_finding(rates: list[tuple[float, float]]) -> float | None:
    """The time of the first rate after which a drift is found."""
    for count in range(1, len(rates) + 1):
        found = drift(rates[max(0, count - _SPAN) : count])
        if found and found.after < found.before:
            return rates[count - 1][0]
    return None


def main(seeds: int) -> int:
    """Print both results."""
    delays = [first_finding(series(seed, 22, _LOSS)) for seed in range(seeds)]
    known = [(at - _START) / HOUR for at in delays if at is not None and at >= _START]
    within = sum(hours <= 24 for hours in known)
    times = f"median {median(known):g} h, at most {max(known):g} h" if known else "never"
    print(f"3 % after day 20: found within a day in {within} of {seeds}; {times}")
    false = sum(first_finding(series(1000 + seed, 30, 0.0)) is not None for seed in range(2 * seeds))
    print(f"no change in 30 days: {false} of {2 * seeds} series have a false drift")
    return int(within < 0.95 * seeds or false > 0.01 * 2 * seeds)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS))
