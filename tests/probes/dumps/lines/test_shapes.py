"""Shapes of lines: a loosened expression matches the shape of each line that the expression matches."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkgauge.probes.dumps.core.reader import Reader
from linkgauge.probes.dumps.lines.shapes import shape, shape_expression
from linkgauge.probes.dumps.registry import READERS
from tests.support.samples import samples

LOOKING_AHEAD = ("rates",)  # few of the lines that hypothesis makes of the expression fit what it looks ahead for


@pytest.mark.parametrize(
    ("expression", "loose"),
    [
        ("a1b", r"a\db"),
        (r"\x1b[0m]x{3}\d", r"\x1b(?:[0m]|\d)x{3}\d"),
        ("[a-z]{1,8}", "[a-z]{1,8}"),
        (r"[^0-9\n]x", r"[^\n]x"),
        (r"[^ \n]x", r"[^ \n]x"),
        (r"[]7]\]", r"(?:[]7]|\d)\]"),
        ("(?:a|b)(?!c(d)e)f", "(?:a|b)f"),
        ("(?<=1)x(?=[0-9])", "x"),
        ("(?P<name>1)", r"(?P<name>\d)"),
        (r"\[1\]", r"\[\d\]"),
        ("[^ ]x", ""),
        (r"a\nb|c", "a|c"),
        (r"a(?:b|c\s{2}d|e){1,3}f|g", "a(?:b|c|e){1,3}|g"),
        (r"(?:(?:a\n)b)c", "(?:(?:a))"),
        (r"(?:a\n)?b", "(?:a|b)"),
        (r"(?:(?:a\n)?b|c)d|e", "(?:(?:a|b)|c)|e"),
        (r"(?:(?:a\n){0,3}b)?c", "(?:(?:a|b)|c)"),
        (r"(?:a\nb)*?c", "(?:a|c)"),
        (r"x(?:a\n)?b(?:c\n)?d|e", "x(?:a|b(?:c|d))|e"),
        ("(a)?b", "(a)?b"),
    ],
)
def test_loosened(expression: str, loose: str) -> None:
    assert shape_expression(expression) == loose
    re.compile(loose)


def test_a_shape() -> None:
    assert shape("[  12.345] GPU 7") == "[  00.000] GPU 0"


@pytest.mark.parametrize("family", READERS, ids=lambda family: family.name)
def test_a_line_of_blanks_is_matched_in_linear_time(family: Reader) -> None:
    r"""(?:[|]?[ \t]*NAME) behind ^[ \t]* tries each split of the blanks; (?:[|][ \t]*)? tries one."""
    assert not re.search(r"(?:\||\(\?:)(?:\\.|\[[^\]]+\]|\w)\?(?:\[ \\t\]|\\s)[*+]", family.begin)


@pytest.mark.parametrize("family", READERS, ids=lambda family: family.name)
@settings(max_examples=30)  # of each of forty tools
@given(data=st.data())
@pytest.mark.slow
def test_no_beginning_is_missed(family: Reader, data: st.DataObject) -> None:
    begin = re.compile(family.begin, re.MULTILINE)
    if family.name in LOOKING_AHEAD:
        texts = samples(recorded=False)[family.name]
        lines = [line for text in texts for line in text.split("\n") if begin.match(line)]
        line = data.draw(st.sampled_from(lines))
    else:
        line = data.draw(st.from_regex(begin))
    found = begin.search(line)
    assert found
    rest = line[found.start() :].partition("\n")[0]
    assert re.compile(shape_expression(family.begin), re.MULTILINE).match(shape(rest))


@pytest.mark.parametrize("family", READERS, ids=lambda family: family.name)
def test_a_loosened_beginning_still_tells_lines_apart(family: Reader) -> None:
    assert not re.compile(shape_expression(family.begin), re.MULTILINE).match("a line of 0 words")
