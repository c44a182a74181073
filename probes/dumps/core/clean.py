"""A text without what terminals, web pages and editors add: color codes, HTML entities, typographic signs."""

from __future__ import annotations

import re
from html import unescape

from ..lines.searched_words import without_searched_words

# HTML entities; "&#60;" as a number
_ESCAPES = re.compile(
    r"&(?:lt|gt|quot|apos|nbsp|amp|[lr][sd]quo|[mn]dash|hellip|times|micro|#[0-9]{1,5}|#x[0-9a-fA-F]{1,4});"
)
_MARKS = ("&lt;", "&gt;", "&quot;", "&#", "&nbsp;")
_TYPOGRAPHIC = str.maketrans("\u2018\u2019\u201a\u201c\u201d\u201e\u2010\u2011\u00d7", "'''\"\"\"--x")
_ELEMENT = re.compile(r"<[a-z_]{2,40}[ >]")
# Tags of web pages and of archives of mails. None is an element of an XML file of a tool.
_PAGE_SIGNS = re.compile(r"<(?:pre|code|br|p|/p|div|/a|/td|li|/span)[ />]", re.IGNORECASE)
_PAGE = re.compile(
    r"</?(?:html|head|body|pre|code|div|span|p|br|hr|blockquote|details|summary|a|b|i|u|em|strong|tt|font|small|sup|sub"
    r"|center|section|article|ul|ol|li|dl|dt|dd|table|thead|tbody|tr|h[1-6]|kbd|samp|img)(?: [^<>\n]{0,400})?/?>",
    re.IGNORECASE,
)
_CELL = re.compile(r"</t[dh]>[ \t]{0,8}(?:<t[dh](?: [^<>\n]{0,200})?>)?|<t[dh](?: [^<>\n]{0,200})?>", re.IGNORECASE)
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
    page = "<" in text and _PAGE_SIGNS.search(text) is not None
    if page:
        text = _CELL.sub("  ", _PAGE.sub("", text))
    if "&" in text and any(escape in text for escape in _MARKS) and (page or not _ELEMENT.search(text)):
        text = _ESCAPES.sub(_character, text)
    if not text.isascii():
        text = _MOJIBAKE.sub(_repaired, text).translate(_TYPOGRAPHIC).translate(_INVISIBLE)
    plain = _CODES.sub("", text) if "\x1b" in text or "\r" in text or "\x00" in text else text
    return without_searched_words(plain)


def _character(found: re.Match[str]) -> str:
    """The character of an entity. Blanks and line ends become a blank: the number of lines does not change."""
    text = unescape(found[0])
    return text if text.isprintable() else " "


def _repaired(found: re.Match[str]) -> str:
    try:
        return found[0].encode("cp1252").decode()
    except UnicodeError:
        return found[0]
