r"""JSON as tools print it. "\ud800" alone is half of a character: no text that has it can be written."""

from __future__ import annotations

import json
import re
from typing import Any

_LONE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
_INSTEAD = r"\\ufffd"  # as long as what it replaces, so positions stay


def whole_characters(text: str) -> str:
    """The text with U+FFFD for halves of characters. It has the same length."""
    return _LONE.sub(_INSTEAD, text) if "\\u" in text else text


def loads(text: str) -> Any:
    """As json.loads. ValueError, RecursionError."""
    return json.loads(whole_characters(text))
