"""JSON reports of linkgauge as an input."""

from __future__ import annotations

import msgspec

from ...models.report import SCHEMA, Report
from ...probes.calls.bounded_read import bounded_read
from .site_file import BadInput

_MOST = 256 << 20  # bytes
_FAMILY = "linkgauge.report/"


def read_report(path: str) -> Report | None:
    """The report in a file, without its `not_checked`. None: the file holds no report.

    Raises BadInput for a report that this version cannot read.
    """
    try:
        text = bounded_read(path, _MOST)
    except (OSError, ValueError):  # a folder or a pipe: other readers say what is wrong with it
        return None
    if text.lstrip()[:1] != b"{":
        return None
    try:
        raw = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(raw, dict) or not str(raw.get("schema")).startswith(_FAMILY):
        return None
    if raw["schema"] != SCHEMA:
        raise BadInput(f"{path}: the report has the format {raw['schema']}; this version reads {SCHEMA}")
    try:
        return msgspec.convert({**raw, "not_checked": []}, Report)
    except msgspec.ValidationError as wrong:
        raise BadInput(f"{path}: not a valid report: {wrong}") from None
