r"""JSON as tools print it.

"\ud800" alone is half of a character: no text that has it can be written. A value that is nested almost as deeply as
Python's stack can be decoded, but then neither printed nor compared.
"""

from __future__ import annotations

import json
import re
from itertools import accumulate
from typing import Any

_LONE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
_DECODER = json.JSONDecoder()
_BRACKETS = re.compile(r"[\[\]{}]")
_BLANKS = " \t\n\r"  # of JSON
_DEEPEST = 200  # levels. The outputs of tools have fewer than 20; Python's stack ends at 1,000.
_TOO_DEEP = f"nested in more than {_DEEPEST} levels"
_INSTEAD = r"\\ufffd"  # as long as what it replaces, so positions stay


def whole_characters(text: str) -> str:
    """The text with U+FFFD for halves of characters. It has the same length."""
    return _LONE.sub(_INSTEAD, text) if "\\u" in text else text


def loads(text: str) -> Any:
    """As json.loads. Raises ValueError, also for a document of more than 200 levels."""
    text = whole_characters(text)
    value, end = decoded(text, len(text) - len(text.lstrip(_BLANKS)))
    if text[end:].strip(_BLANKS):
        raise ValueError("more text after the JSON document")
    return value


def decoded(text: str, begin: int = 0) -> tuple[Any, int]:
    """The document that begins there in a text of whole characters, and its end.

    Raises ValueError, also for a document of more than 200 levels.
    """
    try:
        value, end = _DECODER.raw_decode(text, begin)
    except RecursionError as deep:
        raise ValueError(_TOO_DEEP) from deep
    if text.count("[", begin, end) + text.count("{", begin, end) > _DEEPEST:
        levels = accumulate(1 if one in "[{" else -1 for one in _BRACKETS.findall(text, begin, end))
        if max(levels) > _DEEPEST:
            raise ValueError(_TOO_DEEP)
    return value, end
