"""Predictions and published measurements: the errors are within the limits of bench/accuracy/model_accuracy.py."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FACTS = ROOT.parent / "shared" / "facts" / "achievable.csv"


@pytest.mark.skipif(not FACTS.exists(), reason="no ../shared beside the project: the measurements are not here")
def test_predictions_are_as_near_as_they_must_be() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.accuracy.model_accuracy"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert "NOT MET" not in done.stdout


@pytest.mark.skipif(not FACTS.exists(), reason="no ../shared beside the project: the measurements are not here")
def test_the_table_in_the_docs_is_the_one_that_it_prints() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.accuracy.model_accuracy"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.stdout in (ROOT / "docs" / "reference" / "accuracy.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_docs_show_the_further_trainings() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.accuracy.trainings.training_runs"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout in (ROOT / "docs" / "reference" / "accuracy.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "least"), [("collectives/further_curves.csv", 60), ("trainings/training_runs.csv", 30)]
)
def test_every_published_number_has_a_source(name: str, least: int) -> None:
    with (ROOT / "bench" / "accuracy" / name).open(encoding="utf-8") as file:
        sources = [row["source"] for row in csv.DictReader(file)]
    assert len(sources) >= least
    assert all(sources)
    assert len({source.split(",")[0] for source in sources}) >= 6
