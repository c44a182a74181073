"""The text of a log, with the lines that contain matches."""

from __future__ import annotations

import re

from ....models.facts.records import Evidence
from ..core.part import Part


class LogText:
    """The text of a part, with line numbers for matches."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.text = part.text
        self._seen = (0, 0)  # a position in the text, and its line number

    def cite(self, found: re.Match[str]) -> Evidence:
        """The line that contains the end of a match."""
        place = max(found.start(), found.end() - 1)
        start = self.text.rfind("\n", 0, place) + 1
        since, number = self._seen if self._seen[0] <= start else (0, 0)
        number += self.text.count("\n", since, start)
        self._seen = start, number
        end = self.text.find("\n", start)
        return self.part.cite(number, self.text[start : end if end >= 0 else None])
