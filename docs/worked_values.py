"""The numbers of other sources in docs/worked-values.toml, and the numbers that linkgauge computes for them."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import tomli

from linkgauge.agent.cli.main import main as linkgauge

WORKED = Path(__file__).resolve().parent / "worked-values.toml"
UNITS = {  # of the numbers in worked-values.toml, in the unit of the JSON output
    "days": 86400,
    "ms": 1e-3,
    "us": 1e-6,
    "GB": 1e9,
    "GB/s": 1e9,
    "GiB": 2**30,
    "TB": 1e12,
    "TB/s": 1e12,
    "TFLOP": 1e12,
    "TFLOP/s": 1e12,
    "TiB": 2**40,
}


def sections() -> list[dict[str, Any]]:
    """The sections of the page: `title`, and `row` with `what`, `says`, `unit`, `run`, `at` and perhaps `why`."""
    return list(tomli.loads(WORKED.read_text(encoding="utf-8"))["section"])


def computed(row: dict[str, Any]) -> float:
    """The number of linkgauge, in the unit of the row: the JSON that `run` prints has it at the path `at`.

    A path has names and numbers of elements: "bound.seconds", "levels.0.rate".
    """
    printed = io.StringIO()
    with redirect_stdout(printed):
        linkgauge.main([*row["run"].split(), "--format", "json"], prog_name="linkgauge", standalone_mode=False)
    found = json.loads(printed.getvalue())
    for key in row["at"].split("."):
        found = found[int(key) if key.isdigit() else key]
    return float(found) / UNITS.get(row["unit"], 1)
