"""Numbers of the training model that are fitted to half of the sources: python -m bench.accuracy.trainings.training_fit

Fits the numbers to the recipes that are not held back, and shows them beside those of the model, with the errors of
the other half. Then the halves change places. Coordinate descent is enough: each number only lengthens or shortens.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from bench.accuracy.trainings.training_runs import Run, compared, print_summary, runs
from linkgauge.models.training import stage_compute

FITTED = ("EFFICIENCY", "_MOVED", "_BIASES", "_LAUNCH")
_ROUNDS = 20


def main() -> int:
    """Print both fits. Returns the exit code."""
    model = numbers()
    print("in the model:", _shown(model))
    recipes = [one for one in runs() if one.published.kind == "recipe"]
    first, second = [[one for one in recipes if one.held_back == held] for held in (False, True)]
    for name, mine, others in (("fitted sources", first, second), ("held back sources", second, first)):
        print(f"\nfitted to the {name}:", _shown(fit(mine)))
        print_summary("the other half", compared(others))
        put(model)
    return 0


def fit(these: Sequence[Run]) -> dict[str, float]:
    """The numbers with the least loss. They stay in the model until `put`."""
    best, steps = _loss(these), dict.fromkeys(FITTED, 0.3)
    for _ in range(_ROUNDS):
        for name in FITTED:
            for sign in (1, -1):
                old = numbers()
                put({**old, name: old[name] * (1 + sign * steps[name])})
                if (loss := _loss(these)) < best - 1e-6:
                    best = loss
                    break
                put(old)
            else:
                steps[name] *= 0.6
    return numbers()


def _loss(these: Sequence[Run]) -> float:
    """Mean of the logarithmic errors, of at most 0.6, once more what is above 0.18, and the share that is outside."""
    results = compared(these)
    errors = [abs(math.log1p(one.error)) for one in results]
    far = sum(min(one, 0.6) + max(0.0, one - 0.18) for one in errors)
    return (far + 0.15 * sum(not one.inside for one in results)) / len(results)


def numbers() -> dict[str, float]:
    """The fitted numbers of the model."""
    return {name: getattr(stage_compute, name) for name in FITTED}


def put(values: dict[str, float]) -> None:
    """Change the numbers of the model in this process."""
    for name, value in values.items():
        setattr(stage_compute, name, value)


def _shown(values: dict[str, float]) -> str:
    return ", ".join(f"{name.strip('_').lower()} {value:.3g}" for name, value in values.items())


if __name__ == "__main__":
    sys.exit(main())
