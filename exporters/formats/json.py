"""A report as JSON in the public format `linkgauge.report/1`, and its schema."""

from __future__ import annotations

from typing import Any

import msgspec

from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked
from ...models.report import SCHEMA, Report


class _Written(msgspec.Struct):
    """A NotChecked in the public format: the reason is one sentence."""

    what: str
    subject: str
    why: str
    how: str | None = None


_Written.__name__, _Written.__doc__ = NotChecked.__name__, NotChecked.__doc__  # name and text in the schema


def as_json(report: Report) -> str:
    """The report with every field; absent values are null.

    JSON has no infinity and no NaN: a report holds finite numbers.
    """
    written = [_Written(one.what, one.subject, one.why, one.how) for one in report.not_checked]
    return _indented({name: getattr(report, name) for name in report.__struct_fields__} | {"not_checked": written})


def schema() -> str:
    """The JSON Schema (draft 2020-12) of a report."""
    from inspect import cleandoc  # slow to import

    whole = msgspec.json.schema(Report)
    _, written = msgspec.json.schema_components((_Written,))
    whole["$defs"] = {name: one for name, one in whole["$defs"].items() if name != Reason.__name__} | written
    for one in (whole, *whole["$defs"].values()):
        if "description" in one:  # a docstring; before Python 3.13 it has the indentation of the code
            one["description"] = cleandoc(one["description"])
    return _indented({"$schema": "https://json-schema.org/draft/2020-12/schema", "title": SCHEMA, **_open(whole)})


def _open(thing: object) -> Any:
    """The schema without the names of keys, which msgspec writes since 0.23: the same schema with each msgspec, and a
    later linkgauge may add a key.
    """
    if isinstance(thing, dict):
        return {key: _open(value) for key, value in thing.items() if key != "propertyNames"}
    return [_open(one) for one in thing] if isinstance(thing, list) else thing


def _indented(thing: object) -> str:
    return msgspec.json.format(msgspec.json.encode(thing), indent=2).decode() + "\n"
