"""A report as JSON: the contract `linkgauge.report/1`, and its schema."""

from __future__ import annotations

import msgspec

from ..models.report import SCHEMA, Report


def as_json(report: Report) -> str:
    """The report with every field, absent ones as null; `msgspec.json.decode(text, type=Report)` gives it back.

    JSON has no infinity and no NaN: a report holds finite numbers.
    """
    return _indented(report)


def schema() -> str:
    """The JSON Schema (draft 2020-12) of a report."""
    return _indented(
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": SCHEMA,
            **msgspec.json.schema(Report),
        }
    )


def _indented(thing: object) -> str:
    return msgspec.json.format(msgspec.json.encode(thing), indent=2).decode() + "\n"
