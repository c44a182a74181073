"""The text in the bytes of a file: UTF-8 or UTF-16, or the reason why it is no text."""

from __future__ import annotations

import re

from .entries import Entry, UnreadableFile

BIGGEST = 256 << 20  # bytes of one file: the capture of a large node has a few MB, a log of weeks some hundred MB
TOO_BIG = UnreadableFile(None, f"larger than {BIGGEST >> 20} MB, the limit of captures and dumps")
BINARY = UnreadableFile(None, "a binary file; captures and dumps are text")
_CONTROLS = bytes({*range(32)} - {*b"\t\n\v\f\r\x1b"})  # control characters that do not occur in text
_MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_HEAD = 4096  # bytes


def decoded(content: bytes) -> Entry:
    """The text without blanks at the end. PowerShell and editors on Windows write UTF-16."""
    if len(content) > BIGGEST:
        return TOO_BIG
    head = content[:_HEAD]
    if codec := _MARKS.get(head[:2]) or _utf_16(head):
        return content.decode(codec, "replace").removeprefix("\ufeff").rstrip()
    if len(head) - len(head.translate(None, _CONTROLS)) > len(head) // 20:  # logs of crashed machines have some zeros
        return BINARY
    return plain(content)


def text_of(path: str, content: bytes) -> Entry:
    """The text of a file in a folder or an archive. Files of a copied /sys or /proc are read as from the kernel."""
    return plain(content) if is_of_kernel(path) and len(content) <= BIGGEST else decoded(content)


def is_of_kernel(path: str) -> bool:
    """Whether the path is one of a copied /sys or /proc."""
    return re.match(r"(?:.*/)?(?:sys|proc)/", path) is not None


def plain(content: bytes) -> str:
    """The text of a file in UTF-8."""
    tail = content[-_HEAD:]
    end = len(content) - len(tail) + len(tail.rstrip())
    return str(memoryview(content)[:end], "utf-8", "replace")  # does not copy hundreds of MB


def _utf_16(head: bytes) -> str | None:
    """UTF-16 without a mark: most second bytes are zero, and few of the others (the lines of a tree are U+2500)."""
    half = len(head) // 2
    even, odd = head[::2].count(0), head[1::2].count(0)
    if half > 1 and max(even, odd) > half // 2 and min(even, odd) * 4 < max(even, odd):
        return "utf-16-be" if even > odd else "utf-16-le"
    return None
