"""Expressions and readers whose run time grows faster than the text.

For each expression, every repeatable piece is repeated, after a prefix that leads to it and before a text that does not
match. If parts of the expression can share such a stretch in many ways, the time grows with the square of the length or
worse.
"""

from __future__ import annotations

import ast
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType
from typing import Any

import linkgauge.probes.dumps.read
import linkgauge.probes.kernel_log
import linkgauge.probes.parsing
from bench.fuzz.fuzz_checks import TooSlow, deadline
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.core.reader import Reader
from linkgauge.probes.dumps.lines.shapes import shape_expression
from linkgauge.probes.dumps.registry import READERS

_parser: Any = import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")  # the parser of module re
WORST = 10.0  # ratio of times for four times the text; 4 is linear, 16 is quadratic
_LENGTHS = (1000, 4000)  # repetitions of a piece
_TEXTS = (50_000, 200_000)  # characters of the texts
_NOTHING = 0.003  # seconds of the longer run below which the ratio is not computed
_ENOUGH = 0.1  # seconds that a processor clock can resolve
_MOST = 20.0  # limit in seconds of processor time
_MOST_LINES = 40  # per sample
_OFTEN = 30  # maximum repetition count that is treated as unlimited
_LETTERS = " \ta0A.-:/,_[(x\"'\n|<{=#%;~"
_SEARCHES = {"search", "finditer", "findall", "sub", "split", "matches"}
_CATEGORIES: Mapping[str, Callable[[str], bool]] = {
    "CATEGORY_DIGIT": str.isdecimal,
    "CATEGORY_SPACE": str.isspace,
    "CATEGORY_WORD": lambda one: one.isalnum() or one == "_",
}


def grows(reader: Reader | None, texts: Sequence[str]) -> tuple[float, list[str]]:
    """The worst ratio of a reader, or of the shared expressions, and a sentence for each ratio above the limit."""
    worst, found = 1.0, list[str]()
    for called, pattern, searched in _patterns(reader):
        for attack in dict.fromkeys(_attacks(pattern)):
            methods = (pattern.match, pattern.search) if searched else (pattern.match,)
            ratio = max(_ratio(partial(_tried, method, attack), _LENGTHS) for method in methods)
            worst = max(worst, ratio)
            if ratio > WORST:
                found.append(f"{called}: {ratio:.0f} times as long for four times {attack(2)!r}")
                break
    for text in texts:
        assert reader
        for piece in dict.fromkeys((text, *text.split("\n")[:_MOST_LINES])):
            ratio = _ratio(partial(_read, reader, text, piece), _TEXTS)
            worst = max(worst, ratio)
            if ratio > WORST:
                found.append(f"read: {ratio:.0f} times as long for four times {piece[:100]!r}")
    return worst, found


def _tried(method: Callable[[str], object], attack: Attack, size: int) -> object:
    return method(attack(size))


def _read(reader: Reader, text: str, piece: str, size: int) -> object:
    """Read the text, followed by many repetitions of one of its lines or of itself."""
    return [*reader.read(Part("grown", 1, f"{text}\n" + f"{piece}\n" * (size // (len(piece) + 1))))]


def _ratio(work: Callable[[int], object], sizes: tuple[int, int]) -> float:
    """The ratio of the times of the long and the short text; 1 if the long one takes almost no time."""
    try:
        with deadline(_MOST):
            start = time.perf_counter()
            work(sizes[1])
            long = time.perf_counter() - start
            if long < _NOTHING:
                return 1.0
            start = time.perf_counter()
            work(sizes[0])
            short = time.perf_counter() - start
            if long / short <= WORST:
                return long / short
            often = 1 + int(_ENOUGH / short)  # on a busy machine, only processor time is reliable
            return _seconds(work, sizes[1], often) / max(1e-3, _seconds(work, sizes[0], often))
    except TooSlow:
        return float("inf")


def _seconds(work: Callable[[int], object], size: int, often: int) -> float:
    """Processor time of `often` runs, because its clock is coarse."""
    start = time.process_time()
    for _ in range(often):
        work(size)
    return time.process_time() - start


def _patterns(reader: Reader | None) -> Iterator[tuple[str, re.Pattern[str], bool]]:
    """The expressions of a module, by name, and whether they are used to search within a text."""
    for module in (_module(reader),) if reader else _shared():
        source = Path(module.__file__ or "").read_text(encoding="utf-8")
        called = {node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)}
        searched = {name for call in called for name in _searched(call)}
        if begin := getattr(module, "BEGIN", None):
            yield f"{_name_of(module)}.BEGIN", re.compile(begin, re.MULTILINE), False
            yield f"{_name_of(module)}.BEGIN, loosened", re.compile(shape_expression(begin), re.MULTILINE), False
        for name, value in vars(module).items():
            for pattern in _within(value):
                yield f"{_name_of(module)}.{name}", pattern, name in searched
        for call in called:
            if (text := _inline(call)) and isinstance(call.func, ast.Attribute):
                yield f"{_name_of(module)}:{call.lineno}", re.compile(text), call.func.attr in _SEARCHES


def _module(reader: Reader) -> ModuleType:
    return sys.modules[reader.read.__module__]


def _name_of(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]


def _shared() -> Iterator[ModuleType]:
    """The modules that are not readers but contain expressions that readers use."""
    readers = set(map(_module, READERS))
    for package in (linkgauge.probes.dumps, linkgauge.probes.parsing, linkgauge.probes.kernel_log):
        for one in walk_packages(package.__path__, f"{package.__name__}."):
            if not one.ispkg and (module := import_module(one.name)) not in readers:
                yield module


def _within(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield value
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _within(one)
    elif isinstance(value, dict):
        yield from _within([*value.values()])


def _searched(call: ast.Call) -> Iterator[str]:
    """The name of an expression that a call searches with: _X.search(...), part.matches(_X)."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in _SEARCHES:
        yield from (one.id for one in (call.func.value, *call.args) if isinstance(one, ast.Name))


def _inline(call: ast.Call) -> str | None:
    """The expression in a call such as re.fullmatch("...", ...)."""
    first = call.args[0] if call.args else None
    of_re = (
        isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and call.func.value.id == "re"
    )
    return first.value if of_re and isinstance(first, ast.Constant) and isinstance(first.value, str) else None


Attack = Callable[[int], str]


def _attacks(pattern: re.Pattern[str]) -> Iterator[Attack]:
    """Texts with a stretch of variable length that the expression almost matches."""
    for before, pump in dict.fromkeys(_stretches(list(_parser.parse(pattern.pattern, pattern.flags)), "")):
        for end in ("\0", "", before, "\n\0"):
            yield lambda n, before=before, pump=pump, end=end: before + pump * n + end  # type: ignore[misc]


def _stretches(nodes: Sequence[Any], before: str) -> Iterator[tuple[str, str]]:
    """The prefix of each repeatable piece, and the piece."""
    for op, argument in nodes:
        name = str(op)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            _, most, inner = argument
            if int(most) >= _OFTEN:
                for shift in range(len(_LETTERS)):
                    if pump := _example(inner, shift):
                        yield before, pump
            yield from _stretches(inner, before)
        elif name == "SUBPATTERN":
            yield from _stretches(argument[-1], before)
        elif name == "BRANCH":
            for branch in argument[1]:
                yield from _stretches(branch, before)
        before += _example([(op, argument)], 0)


def _example(nodes: Sequence[Any], shift: int) -> str:
    """A text that matches. `shift` selects among possible characters."""
    text = ""
    for op, argument in nodes:
        name = str(op)
        if name == "LITERAL":
            text += chr(argument)
        elif name in ("NOT_LITERAL", "ANY", "IN"):
            text += _letter(name, argument, shift)
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            text += _example(argument[2], shift) * min(40, max(int(argument[0]), int(shift > 0)))
        elif name == "SUBPATTERN":
            text += _example(argument[-1], shift)
        elif name == "BRANCH":
            text += _example(argument[1][shift % len(argument[1])], shift)
    return text


def _letter(name: str, argument: Any, shift: int) -> str:
    letters = _LETTERS[shift:] + _LETTERS[:shift]
    if name == "IN":
        own = "".join(chr(one) for op, one in argument if str(op) == "LITERAL")
        own += "".join(chr(one[0]) for op, one in argument if str(op) == "RANGE")
        return next((one for one in letters + own if _is_in(argument, one)), "")
    return next(one for one in letters if (name == "ANY" and one != "\n") or (name != "ANY" and ord(one) != argument))


def _is_in(members: Sequence[Any], letter: str) -> bool:
    negated, found = False, False
    for op, argument in members:
        name = str(op)
        if name == "NEGATE":
            negated = True
        elif name == "LITERAL":
            found |= ord(letter) == argument
        elif name == "RANGE":
            found |= argument[0] <= ord(letter) <= argument[1]
        elif name == "CATEGORY":
            kind = str(argument)
            inverted = "_NOT_" in kind
            found |= _CATEGORIES[kind.replace("_NOT_", "_")](letter) != inverted
    return found != negated
