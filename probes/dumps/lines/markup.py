"""Removes what people add to the lines of an output: Markdown tables, bold, italics, code marks, escapes, and comments
at the end.

The number of lines does not change. Evidence cites a changed line as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_CELL = r"[ \t]*:?-{2,}:?[ \t]*"
_RULE = re.compile(rf"^[ \t]{{0,8}}(?:\|?{_CELL}(?:\|{_CELL})+(?:\|[ \t]*)?|\|{_CELL}\|[ \t]*)$", re.MULTILINE)
_ONE = re.compile(r"[ \t]*\|[ \t]?((?:[^|\\]|\\.)*?)[ \t]?\|[ \t]*")  # a row with one cell
_PAIR = re.compile(r"[ \t]*\|?[ *`]*([^|\s*`][^|]{0,78}?)[ *`]*\|[ *`]*([^|\s*`][^|]{0,198}?)[ *`]*\|?[ \t]*")
_BORDER = re.compile(r"(?<!\\)\|")
_BOLD = re.compile(r"(?<![*\w])\*\*(?=[^\s*])([^*\n]{0,2000}?[^\s*])\*\*(?![*\w])")
_ITALIC = re.compile(r"^([ \t]*)_(?=[^\s_])([^\n]{8,2000}?[^\s_])_[ \t]*$", re.MULTILINE)
_ESCAPED = re.compile(r"(?<!\\)\\([\[\]_*#<>~])")  # "\[PCI\_BUS\]"
_CODE = re.compile(r"^([ \t]*)`([^`\n]{1,2000})`[ \t]*$", re.MULTILINE)
# "  # crossing racks", "   <--- here". Not "==> FILE <==" (head), a prompt, not a "#" that belongs to a word, not JSON.
# Not behind a prefix of a log and one blank: "check[4242]: # nThread", "[node1] # Rank", "03:04:05 # size".
# Behind other signs, and as "// why" or "(!)", only after two blanks.
_REMARK = r"(?:#[ \t]{1,3}(?=[A-Za-z]|<[-=])|<(?:-{2,12}(?![>\w=-])|={2,12}(?=[ \t]+\w)|={3,12}(?=[ \t]*$))|←)"
_COMMENT = re.compile(
    rf"(?:(?<=[^\s$#>*|-])[ \t]+(?<![:\]] )(?<![0-9]:[0-9]{{2}} ){_REMARK}"
    rf"|(?<=[|*>-])[ \t]{{2,40}}{_REMARK}|(?<=\S)[ \t]{{2,40}}//[ \t](?=[A-Za-z]))"
    r"[^\n\"$|]{0,200}$|(?<=\S)[ \t]{2,40}\([!?]{1,3}\)[ \t]*$",
    re.MULTILINE,
)
_SIGNS = (" #", "\t#", "<-", "<=", "←", " //", "(!", "(?")
# "node1:/tmp # lspci"; "0: # nThread", where a launcher puts the rank before a line; a time, a host or a program
# before a line
_PROMPT = re.compile(
    r"[ \t]*(?:\S{0,119}[^\s,{}\[\]\"]|(?:\[[^\]\n]{1,60}\][ \t]?){1,3}|(?:[A-Z][a-z]{2} ){1,2}[ \d]\d [\d:.]{8,15}"
    r"(?: [\w.-]{1,60} [\w./-]{1,60}(?:\[\d{1,9}\])?:)?|\S{10,40} [\w.-]{1,60} [\w./-]{1,60}(?:\[\d{1,9}\])?:"
    r"|[\dT:.Z+-]{19,40} (?:\{[^{}\n]{1,400}\}|\S{1,200}))[ \t]#"
)
# A list item; a line number as grep -n, cat -n and editors write it
_ITEM = re.compile(r"[ \t]{0,8}[-*•+][ \t]")
_NUMBER = re.compile(r"[ \t]{0,7}([0-9]{1,8})(?:[:|]|\t|[ ]{1,2}|$)")
_FEWEST = 3  # lines with consecutive numbers. Those of cat -n have a tab behind them.
_TABBED = re.compile(r"[ ]{2,7}[0-9]{1,6}\t")
_HEAD = 1 << 11  # characters
_EDGED = re.compile(r"[ \t]*\|[ ](.*)\|[ \t]*")
_BOXED = re.compile(r"[|│┃║][ ](.*)[ ][|│┃║]")
_BORDER_OF_BOX = re.compile(r"[+┌╭┏╔└╰┗╚][-─━═=]{3,400}[+┐╮┓╗┘╯┛╝]")
_KEYS = re.compile(
    r"[ \t]*\|?[ *]*(?:key|name|field|property|attribute|parameter|metric|item|setting)[ *]*\|"
    r"[ *]*(?:value|state|status|result)[ *]*\|?[ \t]*",
    re.IGNORECASE,
)
_EDGE = re.compile(r"[ \t]*\|(.*)\|[ \t]*")


def without_markup(text: str) -> tuple[str, Mapping[int, str]]:
    """The text without markup, and the changed lines as they were, by line number from 1."""
    plain = _without_edges(_without_numbers(_without_items(_without_box(text))))
    if "|" in text and "--" in text and _RULE.search(text):
        plain = "\n".join(_tables(plain.split("\n")))
    if "**" in text:
        plain = _BOLD.sub(r"\1", plain)
    if "_\n" in text or text.endswith("_"):
        plain = _ITALIC.sub(r"\1\2", plain)
    if "\\[" in text or "\\_" in text or "\\*" in text:
        plain = _ESCAPED.sub(r"\1", plain)
    if "`" in text:
        plain = _CODE.sub(r"\1\2", plain)
    if any(sign in text for sign in _SIGNS):
        plain = "\n".join(map(_without_comment, plain.split("\n")))
    if plain == text:
        return text, {}
    pairs = zip(text.split("\n"), plain.split("\n"), strict=True)
    return plain, {number: before for number, (before, after) in enumerate(pairs, 1) if before != after}


def _without_comment(line: str) -> str:
    if not any(sign in line for sign in _SIGNS):
        return line
    return _COMMENT.sub(lambda found: found[0] if _is_prompt(found) else "", line)


def lines_of_outputs(text: str, before: Mapping[int, str]) -> tuple[str, list[int]] | None:
    """The text without the rules of tables and without empty lines between all lines, and the numbers of its lines
    (from 0). None: it has none. `before` has the changed lines as they were, by line number from 1.
    """
    rules = {number - 1 for number, line in before.items() if "--" in line and _RULE.fullmatch(line)}
    spaced = _is_spaced(text[:_HEAD].rpartition("\n")[0]) and _is_spaced(text)
    if not rules and not spaced:
        return None
    lines = text.split("\n")
    rules = {number for number in rules if not lines[number]}
    if spaced:
        rules.update(range(1, len(lines) - 1, 2))  # the end of the last line stays: without it, numbers can be cut
    kept = [number for number in range(len(lines)) if number not in rules]
    return ("\n".join(lines[number] for number in kept), kept) if rules else None


def _is_spaced(text: str) -> bool:
    """Whether an empty line follows each line."""
    lines = text.split("\n")
    return len(lines) > _FEWEST and not any(map(str.strip, lines[1::2]))


def _is_prompt(found: re.Match[str]) -> bool:
    """Whether the "#" ends a prompt or begins a line."""
    begin = found.string.rfind("\n", 0, found.start()) + 1
    return bool(_PROMPT.match(found.string, begin, found.end()))


def _without_items(text: str) -> str:
    """The lines without the marks of a list, if each line has one."""
    if not _ITEM.match(text.lstrip("\n")):
        return text
    lines = text.split("\n")
    if all(_ITEM.match(line) or not line.strip() for line in lines):
        return "\n".join(_ITEM.sub("", line, count=1) for line in lines)
    return text


def _without_box(text: str) -> str:
    """The lines without a frame around all of them. The tables of tools have rules between the borders of the frame."""
    body = text.strip("\n")
    if not _BORDER_OF_BOX.match(body) or body.count("\n") < _FEWEST - 1:
        return text
    first, *inside, last = body.split("\n")
    found = [_BOXED.fullmatch(line) for line in inside]
    plain = [one[1].rstrip() for one in found if one]
    borders = _BORDER_OF_BOX.fullmatch(first) and _BORDER_OF_BOX.fullmatch(last)
    if not borders or len(plain) < len(found) or {*map(len, inside)} != {len(first)}:
        return text
    return text.replace(body, "\n".join(("", *plain, "")))


def _without_edges(text: str) -> str:
    """The lines without the edges of a table with one column and no rule, if each line has them."""
    if not _EDGED.match(text.lstrip("\n")):
        return text
    lines = text.split("\n")
    inside = [_EDGED.fullmatch(line) for line in lines]
    found = [one[1].strip() for one in inside if one]
    whole = len(found) > 1 and all(one or not line.strip() for one, line in zip(inside, lines, strict=True))
    if whole and (not any("|" in line for line in found) or all(line[:1] in ("|", "+") for line in found)):
        return "\n".join(one[1].rstrip() if one else "" for one in inside)
    return text


def _without_numbers(text: str) -> str:
    """The lines without their numbers, if each line has one and they are consecutive."""
    if not _NUMBER.match(text):
        return text
    last = None
    lines = text.split("\n")
    for line in lines:
        found = _NUMBER.match(line)
        if line.strip() and (not found or last is not None and int(found[1]) != last + 1):
            return text
        last = int(found[1]) if found else last
    full = [line for line in lines if line]
    if len(full) < _FEWEST and not all(map(_TABBED.match, full)):
        return text
    return "\n".join(_NUMBER.sub("", line, count=1) for line in lines)


def cells_of(line: str) -> str:
    """The cells of a row of a Markdown table, with two blanks between them. Other lines as they are."""
    found = _EDGE.fullmatch(line)
    if not found or "|" not in found[1]:
        return line
    cells = [_plain(cell.replace("`", "").strip().strip("*")) or "-" for cell in _BORDER.split(found[1])]
    return "  ".join((" ", *cells[1:]) if cells[0] == "-" else cells)


def _plain(cell: str) -> str:
    return cell.replace("\\|", "|")


def _is_rule(line: str, before: str) -> bool:
    """Whether it is the rule below the heading of a table. One column needs a heading of one column."""
    rule = "--" in line and "|" in line and _RULE.fullmatch(line)
    return bool(rule) and bool(not _ONE.fullmatch(line) or _ONE.fullmatch(before))


def _tables(lines: list[str]) -> Iterator[str]:
    """The lines with the rows of each table that has a rule ("|---|---|") as cells. The rule becomes empty."""
    rules = {number for number, line in enumerate(lines) if _is_rule(line, lines[number - 1] if number else "")}
    inside, named = set[int](), set[int]()
    for rule in rules:
        inside.add(rule - 1)
        keys = rule > 0 and bool(_KEYS.fullmatch(lines[rule - 1]))
        for number in range(rule + 1, len(lines)):
            if "|" not in lines[number]:
                break
            inside.add(number)
            named |= {number} if keys else set()
    for number, line in enumerate(lines):
        if number in rules:
            yield ""
        elif number in inside and (one := _ONE.fullmatch(line)):
            yield _plain(one[1])
        elif number in named and (pair := _PAIR.fullmatch(line)):
            yield f"{_plain(pair[1])}: {_plain(pair[2])}"
        elif number in inside and "|" in line:
            yield cells_of(line) if _EDGE.fullmatch(line) else cells_of(f"|{line}|")
        else:
            yield line
