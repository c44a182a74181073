"""The options of `linkgauge diagnose` that are only for the output of the NCCL Inspector."""

from __future__ import annotations

from typing import NamedTuple


class JobOptions(NamedTuple):
    """What only the report of a job has: the table of ranks, the machine type, and a folder for reports of nodes."""

    ranks: str | None = None
    machine: str | None = None
    reports: str | None = None


NOT_GIVEN = JobOptions()
