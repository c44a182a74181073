"""Values of tools that people quote within sentences: "`SW Thermal Slowdown : Active` on GPU 2".

Each quote with a name and a value becomes a line of its own, which the readers of the tool know. It counts only in a
sentence that states it: not as a condition, and not as over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ...kernel_log.said import subject_in
from ...parsing.quotes import blinded, is_witnessed

# In code marks, or in double quotes: a name, a sign and a value
_SPAN = re.compile(
    r"(?<!`)`(?P<code>[A-Za-z][\w .()/#-]{1,60}?[ \t]{0,40}[:=][ \t]{0,4}[^`\n]{1,60})`(?!`)"
    r"|(?<![\w\"])\"(?P<text>[A-Z][\w .()/#-]{1,60}?[ \t]{0,40}: [^\"\n]{1,60})\"(?!\w)"
)
# The capability and the state of a link, also without a colon
_LINK = re.compile(r"`(?P<link>Lnk(?:Cap|Sta))(?P<value> [^`\n]{0,20}\d ?GT/s[^`\n]{0,60})`")
_MOST = 1 << 17  # characters: in longer texts, which are logs, nobody writes sentences


class Quotes(NamedTuple):
    """The lines of the quotes, the line of the text from which each one comes, and by this line its GPU."""

    text: str
    origin: Sequence[int]
    gpus: Mapping[int, str]


def with_spans_as_lines(text: str) -> Quotes | None:
    """The quotes as lines, the number (from 0) of the line from which each one comes, and by this number the GPU that
    it names. An empty line is between those of different lines, except those of one link. None: there are no quotes.
    """
    if len(text) > _MOST or ("`" not in text and '"' not in text):
        return None
    lines, origin, gpus = list[str](), list[int](), dict[int, str]()
    for number, line in enumerate(text.split("\n")):
        found = list(_quotes(line))
        if found and lines and not found[0][0].startswith("Lnk"):
            lines.append("")
            origin.append(number)
        lines += [quote for quote, _ in found]
        origin += [number] * len(found)
        if named := [gpu for _, gpu in found if gpu.startswith("gpu")]:
            gpus[number] = named[-1]
    return Quotes("\n".join(lines) + "\n", origin, gpus) if lines else None


def _quotes(line: str) -> Iterator[tuple[str, str]]:
    """The quotes of a line that its sentences state, each with the GPU that its clause names. A row of a table states
    the capability and the state of a link.
    """
    found = sorted((*_SPAN.finditer(line), *_LINK.finditer(line)), key=lambda one: one.start())
    blind = blinded(line, [one.span() for one in found])
    for one in found:
        row = "|" in line and one[0].startswith("`Lnk")
        if row or is_witnessed(blind, *one.span()):
            yield _text(one), subject_in(blind, *one.span(), "gpu")


def _text(found: re.Match[str]) -> str:
    groups = found.groupdict()
    if groups.get("link"):
        return f"{groups['link']}:{groups['value']}"
    return str(groups.get("code") or groups.get("text"))
