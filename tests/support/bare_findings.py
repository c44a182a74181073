"""A finding without the texts that models/diagnosis/headlines.py and remedies.py add to all findings."""

from __future__ import annotations

from msgspec.structs import replace

from linkgauge.models.report import Finding


def bare(finding: Finding) -> Finding:
    return replace(finding, device=None, fact=None, case=None, steps=(), first_step=None)
