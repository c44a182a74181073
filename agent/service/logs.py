"""The log of a service: on standard error, with levels as journald takes them, or as a JSON object a line."""

from __future__ import annotations

import json
import logging
import os
import sys

from ...models.facts.units import as_utc

_LEVELS = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2}  # syslog(3)


class _Plain(logging.Formatter):
    """Journald has its own clock, and takes the level from "<4>" in front (sd-daemon(3)); a terminal wants words."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record).replace("\n", "\n    ")
        if "JOURNAL_STREAM" in os.environ:
            return f"<{_LEVELS.get(record.levelno, 6)}>{text}"
        return f"{as_utc(record.created)} {record.levelname.lower():7} {text}"


class _Json(logging.Formatter):
    """For collectors of logs."""

    def format(self, record: logging.LogRecord) -> str:
        told = {"time": as_utc(record.created), "level": record.levelname.lower(), "message": super().format(record)}
        return json.dumps({**told, **getattr(record, "fields", {})})


def begin(level: str, form: str) -> None:
    """Log from now on; again after a reload."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Plain())
    log = logging.getLogger("linkgauge")
    log.handlers[:] = [handler]
    log.setLevel(level.upper())
    log.propagate = False
