"""Expressions and readers whose time grows faster than the text.

Of each expression the pieces that it lets come again are repeated, behind what leads to them and before what does not
fit: where parts of it can share such a stretch in many ways, time grows with the square of the length, or worse.
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
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

import linkgauge.probes
import linkgauge.probes.dumps
from bench.fuzz.fuzz_checks import TooSlow, deadline
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.core.reader import Reader
from linkgauge.probes.dumps.core.shapes import loosened
from linkgauge.probes.dumps.registry import READERS

_parser: Any = import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")  # how re itself reads them
WORST = 10.0  # times as long for four times the text; 4 is linear, 16 the square
_LENGTHS = (1000, 4000)  # repetitions of a piece of a line
_TEXTS = (50_000, 200_000)  # characters of texts to read
_NOTHING = 0.003  # seconds for the longer, below which nothing is compared
_ENOUGH = 0.1  # seconds that a clock of the processor can tell
_MOST = 20.0  # seconds of the processor
_MOST_LINES = 40  # of a sample
_OFTEN = 30  # what may come so many times may come often
_LETTERS = " \ta0A.-:/,_[(x\"'\n|<{=#%;~"
_SEARCHES = {"search", "finditer", "findall", "sub", "split", "matches"}
_CATEGORIES: Mapping[str, Callable[[str], bool]] = {
    "CATEGORY_DIGIT": str.isdecimal,
    "CATEGORY_SPACE": str.isspace,
    "CATEGORY_WORD": lambda one: one.isalnum() or one == "_",
}


def grows(family: Reader | None, texts: Sequence[str]) -> tuple[float, list[str]]:
    """Of a reader, or of what all share: the worst ratio, and a sentence for each that is worse than it may be."""
    worst, found = 1.0, list[str]()
    for called, pattern, searched in _patterns(family):
        for attack in dict.fromkeys(_attacks(pattern)):
            ways = (pattern.match, pattern.search) if searched else (pattern.match,)
            ratio = max(_ratio(partial(_tried, way, attack), _LENGTHS) for way in ways)
            worst = max(worst, ratio)
            if ratio > WORST:
                found.append(f"{called}: {ratio:.0f} times as long for four times {attack(2)!r}")
                break
    for text in texts:
        assert family
        for piece in dict.fromkeys((text, *text.split("\n")[:_MOST_LINES])):
            ratio = _ratio(partial(_read, family, text, piece), _TEXTS)
            worst = max(worst, ratio)
            if ratio > WORST:
                found.append(f"read: {ratio:.0f} times as long for four times {piece[:100]!r}")
    return worst, found


def _tried(way: Callable[[str], object], attack: Attack, size: int) -> object:
    return way(attack(size))


def _read(family: Reader, text: str, piece: str, size: int) -> object:
    """Read the text, and behind it one of its lines, or itself, again and again."""
    return [*family.read(Part("grown", 1, f"{text}\n" + f"{piece}\n" * (size // (len(piece) + 1))))]


def _ratio(work: Callable[[int], object], sizes: tuple[int, int]) -> float:
    """How many times as long the longer takes; 1 where it takes next to nothing."""
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
            often = 1 + int(_ENOUGH / short)  # on a machine that is busy, the processor's clock alone tells
            return _seconds(work, sizes[1], often) / max(1e-3, _seconds(work, sizes[0], often))
    except TooSlow:
        return float("inf")


def _seconds(work: Callable[[int], object], size: int, often: int) -> float:
    """Of the processor, whose clock is coarse."""
    start = time.process_time()
    for _ in range(often):
        work(size)
    return time.process_time() - start


def _patterns(family: Reader | None) -> Iterator[tuple[str, re.Pattern[str], bool]]:
    """The expressions of a module, by name, and whether they are searched for within a text."""
    for module in (_module(family),) if family else _shared():
        source = Path(module.__file__ or "").read_text(encoding="utf-8")
        called = {node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)}
        searched = {name for call in called for name in _searched(call)}
        if begin := getattr(module, "BEGIN", None):
            yield f"{_name_of(module)}.BEGIN", re.compile(begin, re.MULTILINE), False
            yield f"{_name_of(module)}.BEGIN, loosened", re.compile(loosened(begin), re.MULTILINE), False
        for name, value in vars(module).items():
            for pattern in _within(value):
                yield f"{_name_of(module)}.{name}", pattern, name in searched
        for call in called:
            if (text := _inline(call)) and isinstance(call.func, ast.Attribute):
                yield f"{_name_of(module)}:{call.lineno}", re.compile(text), call.func.attr in _SEARCHES


def _module(family: Reader) -> ModuleType:
    return sys.modules[family.read.__module__]


def _name_of(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]


def _shared() -> Iterator[ModuleType]:
    """What is no family and holds expressions that families use."""
    families = set(map(_module, READERS))
    for package in (linkgauge.probes.dumps, linkgauge.probes):
        for one in iter_modules(package.__path__, f"{package.__name__}."):
            if not one.ispkg and (module := import_module(one.name)) not in families:
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
    """The name of an expression that a call searches for: _X.search(...), part.matches(_X)."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in _SEARCHES:
        yield from (one.id for one in (call.func.value, *call.args) if isinstance(one, ast.Name))


def _inline(call: ast.Call) -> str | None:
    """The expression of a call as re.fullmatch("...", ...)."""
    first = call.args[0] if call.args else None
    of_re = (
        isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and call.func.value.id == "re"
    )
    return first.value if of_re and isinstance(first, ast.Constant) and isinstance(first.value, str) else None


Attack = Callable[[int], str]


def _attacks(pattern: re.Pattern[str]) -> Iterator[Attack]:
    """Texts with a stretch of any length, that the expression almost matches."""
    for before, pump in dict.fromkeys(_stretches(list(_parser.parse(pattern.pattern, pattern.flags)), "")):
        for end in ("\0", "", before, "\n\0"):
            yield lambda n, before=before, pump=pump, end=end: before + pump * n + end  # type: ignore[misc]


def _stretches(nodes: Sequence[Any], before: str) -> Iterator[tuple[str, str]]:
    """What leads to each piece that may come often, and such a piece."""
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
    """A text that matches; of letters that may be any, `shift` says which."""
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
