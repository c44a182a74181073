"""Files that are split into the outputs of tools."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.records import Record
from linkgauge.probes.dumps.core.clean import clean
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.core.reader import Reader
from linkgauge.probes.dumps.core.split import is_filler, split
from linkgauge.probes.dumps.lines.markup import without_markup
from linkgauge.probes.dumps.registry import READERS


def nothing(part: Part) -> Iterator[Record]:
    del part
    yield from ()


FRUIT, TREES = Reader("fruit", r"^(?:apple|pear)\b", nothing), Reader("trees", r"^oak ", nothing)
LOGS = tuple(Reader(name, rf"^{name}: ", nothing, lines=True) for name in ("wind", "rain"))


def parts(text: str) -> list[tuple[str, int, str]]:
    return [(made.name if made else "", part.first, part.text) for made, part in split("f", text, 1.0, (FRUIT, TREES))]


def test_each_output_goes_on_to_the_next() -> None:
    text = "hello\napple 1\n  red\noak a\n  tall\napple 2\n"
    assert parts(text) == [
        ("", 1, "hello\n"),
        ("fruit", 2, "apple 1\n  red\n"),
        ("trees", 4, "oak a\n  tall\n"),
        ("fruit", 6, "apple 2\n"),
    ]


def test_neighbours_of_one_family_are_one_part() -> None:
    assert parts("apple 1\npear 2\nanything\napple 3") == [("fruit", 1, "apple 1\npear 2\nanything\napple 3")]


def test_logs_in_one_file_are_a_part_each() -> None:
    text = "rain: 1\n  more\nwind: 1\nrain: 2\n\nwind: 2\nwind: 3\napple\nrain: 3\nwind: 4\n$ ls\nrain: 5\n"
    found = [(made.name if made else "", part) for made, part in split("f", text, 1.0, (*LOGS, FRUIT))]
    assert [(name, part.first, part.text) for name, part in found] == [
        ("rain", 1, "rain: 1\n  more\n\nrain: 2\n\n"),
        ("wind", 3, "wind: 1\n\n\nwind: 2\nwind: 3\n"),
        ("fruit", 8, "apple\n"),
        ("rain", 9, "rain: 3\n"),
        ("wind", 10, "wind: 4\n"),
        ("", 11, "$ ls\n"),
        ("rain", 12, "rain: 5\n"),
    ]


def test_a_beginning_of_several_lines_is_found_behind_another_that_begins_alike() -> None:
    made = Reader("json", r'^\{\s{0,9}"fruit"', nothing)
    text = '{\n  "tree": 1\n}\n{\n  "fruit": 1\n}\n'
    assert [(one, part.first) for one, part in split("f", text, 1.0, (made,))] == [(None, 1), (made, 4)]


def test_blocks_of_lines_are_numbered_on() -> None:
    text = "rest of a line\n" * 150_000 + "apple\n" + "rest\n" * 300_000 + "oak x\n"
    assert [(name, first) for name, first, _ in parts(text)] == [("", 1), ("fruit", 150_001), ("trees", 450_002)]


def test_prompts_and_fences_and_headlines_end_an_output() -> None:
    for between in (
        "$ lspci -vv",
        "root@node1:~# nvidia-smi",
        "[me@a b]$ /usr/bin/ls",
        "(venv) me@a:/tmp$ ls",
        "```",
        "```text",
        "========== dmesg ==========",
        "## what I tried",
        "# lspci",
    ):
        assert parts(f"apple 1\n{between}\nrest\n") == [("fruit", 1, "apple 1\n"), ("", 2, f"{between}\nrest\n")]


def test_a_brace_of_another_json_hides_no_beginning() -> None:
    """The next line shows the tool. The cache of lines has single lines."""
    fio = '{\n  "fio version" : "fio-3.28"\n}\n'
    told = [made.name if made else "" for made, _ in split("f", f'{{\n "a": 1\n}}\n{fio}', 0.0, READERS)]
    assert told == ["", "fio"]


def test_lines_that_mean_nothing() -> None:
    for text, nothing in (("+-----+---+\n\n", True), ("```\n$ nvidia-smi\n", True), ("+-- a --+\n", False)):
        assert is_filler(Part("f", 1, text)) is nothing


def test_comments_of_outputs_do_not() -> None:
    for line in ("#", "#       size         count", "# nThread 1", "$", "  # 5", "--"):
        assert parts(f"apple 1\n{line}\nrest\n") == [("fruit", 1, f"apple 1\n{line}\nrest\n")], line


def test_colour_codes_carriage_returns_and_zero_bytes_are_gone() -> None:
    text = "\x1b[4mapple\x1b[0m 1\r\n\x1b]0;title\x07red\x00\r\n"
    assert clean(text) == "apple 1\nred\n"
    assert parts(text) == [("fruit", 1, "apple 1\nred\n")]


def test_a_citation_has_the_line_of_the_file() -> None:
    part = Part("a.txt", 7, "one\n  two\n")
    assert [part.cite(number, line).source for number, line in part.lines()] == ["a.txt:7", "a.txt:8", "a.txt:9"]
    assert part.cite(1, "  two").text == "two"
    assert part.last == "8"


lines = st.sampled_from(
    ["rain: 1", "wind: 2", "apple 1", "pear", "oak x", "rest", "", "$ ls", "```", "# size count", "oak", "\x1b[1mapple"]
)


@given(st.lists(lines, max_size=30))
def test_no_line_is_lost_or_read_twice(some: list[str]) -> None:
    text = "\n".join(some)
    whole = clean(text).split("\n")
    shown = [""] * len(whole)
    for _, part in split("f", text, 0.0, (*LOGS, FRUIT, TREES)):
        for place, line in enumerate(part.text.rstrip("\n").split("\n")):
            number = int(part.place(place)) - 1  # places are not in succession in a doubly spaced text
            assert not (line and shown[number])
            shown[number] = shown[number] or line
    assert shown == whole


@given(st.text())
def test_any_text_is_cut_by_the_real_families(text: str) -> None:
    shown = "".join(part.text for _, part in split("f", text, 0.0, READERS)).split()
    plain, _ = without_markup(clean(text))
    assert sorted(shown) == sorted(plain.split())  # interleaved logs are read one after the other


def test_what_begins_an_output_on_two_lines() -> None:
    """An equal first line with other text below does not hide the output."""
    boxes = Reader("boxes", r"^(?:\{\s{0,9}\"box\"|Box 1\n\s+size)", nothing)
    for text in ('{\n "other"\n}\n' * 5 + '{\n "box"\n}\n', "Box 1\nnone\nBox 1\n  size\n"):
        found = [made for made, _ in split("f", text, 1.0, (FRUIT, boxes))]
        assert found == [None, boxes], text
