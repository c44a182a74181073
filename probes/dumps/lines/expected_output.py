"""Outputs that a text shows as what one should see ("Expected output:"): they say nothing of this machine."""

from __future__ import annotations

import re

_HEADING = re.compile(
    r"[^\n]{0,80}\b(?:expected|sample|example|desired|ideal|healthy)[ ](?:output|results?|values?|state)\b"
    r"[^\n]{0,100}:[ *_]*",
    re.IGNORECASE,
)
_MEASURED = re.compile(r"\b(?:not|but|instead|unlike|got|actual|below|above|differs?|before)\b", re.IGNORECASE)
_FENCE = re.compile(r"[ \t>]*(?:```|~~~)")


def without_expected(text: str) -> str:
    """The text with blank lines in place of the block or paragraph below such a heading."""
    if not _HEADING.search(text):
        return text
    lines, shown = text.split("\n"), list[str]()
    waiting = inside = fenced = False
    for line in lines:
        fence = bool(_FENCE.match(line))
        if waiting and line.strip():
            waiting, inside, fenced = False, True, fence
            shown.append(line if fence else "")
        elif inside and (fence if fenced else not line.strip()):
            inside = False
            shown.append(line)
        else:
            shown.append("" if inside else line)
        if not inside and _HEADING.fullmatch(line) and not _MEASURED.search(line):
            waiting = True
    return "\n".join(shown)
