"""Values of tools that people quote within sentences: "`SW Thermal Slowdown : Active` on GPU 2".

Each quote with a name and a value becomes a line of its own, which the readers of the tool know. It counts only in a
sentence that states it: not as a condition, and not as over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...parsing.sentences import is_prose, is_stated, sentences

# In code marks, or in double quotes: a name, a sign and a value
_SPAN = re.compile(
    r"(?<!`)`(?P<code>[A-Za-z][\w .()/#-]{1,60}?[ \t]{0,40}[:=][ \t]{0,4}[^`\n]{1,60})`(?!`)"
    r"|(?<![\w\"])\"(?P<text>[A-Z][\w .()/#-]{1,60}?[ \t]{0,40}: [^\"\n]{1,60})\"(?!\w)"
)
# The capability and the state of a link, also without a colon
_LINK = re.compile(r"`(?P<link>Lnk(?:Cap|Sta))(?P<value> [^`\n]{0,20}\d ?GT/s[^`\n]{0,60})`")
_MOST = 1 << 17  # characters: in longer texts, which are logs, nobody writes sentences


def with_spans_as_lines(text: str) -> tuple[str, list[int]] | None:
    """The quotes as lines, and the number (from 0) of the line from which each one comes. An empty line is between
    those of different lines, except those of one link. None: there are no quotes.
    """
    if len(text) > _MOST or ("`" not in text and '"' not in text):
        return None
    lines, origin = list[str](), list[int]()
    for number, line in enumerate(text.split("\n")):
        found = list(_quotes(line))
        if found and lines and not found[0].startswith("Lnk"):
            lines.append("")
            origin.append(number)
        lines += found
        origin += [number] * len(found)
    return ("\n".join(lines) + "\n", origin) if lines else None


def _quotes(line: str) -> Iterator[str]:
    """The quotes in the sentences of a line that state them."""
    found = [*_SPAN.finditer(line), *_LINK.finditer(line)]
    blind = line
    for one in found:
        blind = f"{blind[: one.start()]}{'x' * len(one[0])}{blind[one.end() :]}"
    if not found or not (is_prose(blind) or "|" in line):
        return
    for first, said in sentences(blind):
        for one in sorted(found, key=lambda one: one.start()):
            start, end = one.start() - first, one.end() - first
            if 0 <= start < len(said) and is_stated(said, (start, end), (start, end)):
                yield _text(one)


def _text(found: re.Match[str]) -> str:
    groups = found.groupdict()
    if groups.get("link"):
        return f"{groups['link']}:{groups['value']}"
    return str(groups.get("code") or groups.get("text"))
