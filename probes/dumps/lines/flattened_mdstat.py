"""A line with a whole /proc/mdstat: web pages and chats take the line ends away."""

from __future__ import annotations

import re

FLAT = r"[^\n]{0,80}?\bPersonalities : (?:\[\w{1,12}\] ?){1,8} ?md[0-9_]{1,6} : (?:in)?active "
_FLAT = re.compile(FLAT)
_STARTS = re.compile(
    r"[ ]+(?=md[0-9_]{1,6} : (?:in)?active |[0-9]{1,18} blocks |unused devices: |bitmap: |\[[=>.]{3,40}\]"
    r"|Personalities : )"
)


def lines_of(line: str) -> list[str]:
    """The lines that the file had. Another line stays one."""
    return _STARTS.split(line) if "Personalities : " in line and _FLAT.match(line) else [line]
