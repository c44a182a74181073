"""The log of the service on standard error: text with levels for journald, or one JSON object per line."""

from __future__ import annotations

import json
import logging
import os
import sys

from ...models.facts.units import as_utc

_LEVELS = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2}  # syslog(3)


class _Plain(logging.Formatter):
    """Text lines: with a prefix such as "<4>" for journald (sd-daemon(3)), else with time and level."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record).replace("\n", "\n    ")
        if "JOURNAL_STREAM" in os.environ:
            return f"<{_LEVELS.get(record.levelno, 6)}>{text}"
        return f"{as_utc(record.created)} {record.levelname.lower():7} {text}"


class _Json(logging.Formatter):
    """One JSON object per line, for log collectors."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {"time": as_utc(record.created), "level": record.levelname.lower(), "message": super().format(record)}
        return json.dumps({**entry, **getattr(record, "fields", {})})


def configure(level: str, form: str) -> None:
    """Set up the log; called at the start and after each reload."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Plain())
    log = logging.getLogger("linkgauge")
    log.handlers[:] = [handler]
    log.setLevel(level.upper())
    log.propagate = False
