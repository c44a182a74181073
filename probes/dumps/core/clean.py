"""A text without what terminals, web pages and editors add: color codes, HTML entities, typographic signs."""

from __future__ import annotations

import re

from ..lines.searched_words import without_searched_words

# HTML entities
_ESCAPES = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'", "&#x27;": "'", "&nbsp;": " ", "&amp;": "&"}
_MARKS = ("&lt;", "&gt;", "&quot;", "&#39;", "&#x27;", "&nbsp;")
_TYPOGRAPHIC = str.maketrans("\u2018\u2019\u201a\u201c\u201d\u201e\u2010\u2011\u00d7", "'''\"\"\"--x")
_ELEMENT = re.compile(r"<[a-z_]{2,40}[ >]")
_PAGE = re.compile(r"</?(?:html|head|body|pre|code|div|span|p|br|blockquote|details|summary)(?: [^<>\n]{0,200})?/?>")
_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\r+(?=\n)|\x00")
_MOJIBAKE = re.compile(r"[ÂÃ][^\x00-\x7f]|â[^\x00-\x7f]{2}")  # UTF-8 that a program took for Windows-1252
_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u200c\u2060\ufeff\u00ad"))  # zero-width characters, soft hyphen


def clean(text: str) -> str:
    """The text without color codes, carriage returns, zero bytes, HTML entities and words that a program searches for,
    and with plain quotation marks.

    The number of lines does not change.
    """
    if "\r" in text and "\n" not in text:
        text = text.replace("\r", "\n")
    if "\xa0" in text or text.startswith("\ufeff"):
        text = text.removeprefix("\ufeff").replace("\xa0", " ")
    if "<pre" in text or "<code" in text or "<br" in text:
        text = _PAGE.sub("", text)
    if "&" in text and any(escape in text for escape in _MARKS) and not _ELEMENT.search(text):
        for escape, character in _ESCAPES.items():
            text = text.replace(escape, character)
    if not text.isascii():
        text = _MOJIBAKE.sub(_repaired, text).translate(_TYPOGRAPHIC).translate(_INVISIBLE)
    plain = _CODES.sub("", text) if "\x1b" in text or "\r" in text or "\x00" in text else text
    return without_searched_words(plain)


def _repaired(found: re.Match[str]) -> str:
    try:
        return found[0].encode("cp1252").decode()
    except UnicodeError:
        return found[0]
