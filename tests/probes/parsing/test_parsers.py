"""The small texts of sysfs: what each is worth, and that no text breaks a parser."""

from __future__ import annotations

from ast import literal_eval
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.pcie_rates import WIDTHS, generation
from linkgauge.probes.parsing.parsers import (
    count,
    cpu_list,
    decimal,
    flag,
    hexadecimal,
    is_lost,
    known,
    pcie_speed,
    pcie_width,
    shown,
    word,
)
from linkgauge.probes.sysfs.fact_reader import Parser

VALUES: list[tuple[Parser, dict[str, Any]]] = [
    (decimal, {"0": 0, "42": 42, "-1": -1, "+7": 7, "007": 7, "18446744073709551615": 2**64 - 1}),
    (count, {"0": 0, "42": 42, "-0": 0}),
    (known, {"0": 0, "3": 3, "-1": None, "-7": None}),
    (hexadecimal, {"0x10de": 0x10DE, "0x030200": 0x030200, "0x0": 0, "0xFFff": 0xFFFF}),
    (flag, {"0": False, "1": True}),
    (word, {"GPU 3": "GPU 3", "": None, "  ": None, " Slot 7 ": "Slot 7", "Größe": "Größe"}),
    (cpu_list, {"": (), "0": (0,), "0-3": (0, 1, 2, 3), "0-1,4,6-7": (0, 1, 4, 6, 7), "0, 2-2": (0, 2), "5,": (5,)}),
    (
        pcie_speed,
        {
            "2.5 GT/s PCIe": 2.5e9,
            "5.0 GT/s PCIe": 5e9,
            "5 GT/s": 5e9,
            "8.0 GT/s PCIe": 8e9,
            "16.0 GT/s PCIe": 16e9,
            "32.0 GT/s PCIe": 32e9,
            "64.0 GT/s PCIe": 64e9,
            "128 GT/s": 128e9,
            "Unknown": None,
            "Unknown speed": None,
        },
    ),
    (pcie_width, {**{str(lanes): lanes for lanes in WIDTHS}, "0": None, "63": None, "255": None}),
]
RUBBISH: list[tuple[Parser, tuple[str, ...]]] = [
    (decimal, ("", " 1", "1 ", "1\n", "0x1", "1.0", "1_000", "--1", "9" * 21, "٣", "²", "one")),
    (count, ("-1", "")),
    (known, ("", "none")),
    (hexadecimal, ("", "10de", "0x", "0xg", "0x" + "f" * 17, "-0x1", "0x1 ")),
    (flag, ("", "2", "yes", "01", "٠")),
    (word, ("a\nb", "\x1b[2J", "\0", "tab\t", "\u202e")),
    (cpu_list, ("a", "3-1", "1-", "-1", "0--1", "0,0", "2,1", "0-3,2", "0-3:1/2", "0-10000", "0\0-7")),
    (
        pcie_speed,
        ("", "32", "32 MT/s", "0 GT/s", "7.0 GT/s", "33 MHz PCI", "32.0 GT/s PCIe x16", "-8 GT/s", "8,0 GT/s"),
    ),
    (pcie_width, ("", "x16", "3", "17", "64", "-1", "1e1")),
]
PARSERS = [parser for parser, _ in VALUES]


@pytest.mark.parametrize(
    ("parser", "text", "value"), [(parser, text, value) for parser, table in VALUES for text, value in table.items()]
)
def test_values(parser: Parser, text: str, value: Any) -> None:
    assert repr(parser(text)) == repr(value)  # True is not 1, and 2.5e9 is not 2500000000


@pytest.mark.parametrize(("parser", "text"), [(parser, text) for parser, texts in RUBBISH for text in texts])
def test_rubbish_is_a_clear_error(parser: Parser, text: str) -> None:
    with pytest.raises(ValueError, match=r" is (not|neither|negative)"):
        parser(text)


@pytest.mark.parametrize("parser", PARSERS)
@given(st.text() | st.text("0123456789-,x.+ GT/sPCIeUnknwf"))
def test_any_text_is_a_value_or_a_clear_error(parser: Parser, text: str) -> None:
    message = "no error"
    try:
        parser(text)
    except ValueError as wrong:
        message = str(wrong)
    assert message.isprintable()
    assert message.isascii()
    assert 5 < len(message) < 500


@given(st.sets(st.integers(0, 300)))
def test_a_list_of_cpus_as_the_kernel_writes_it(cpus: set[int]) -> None:
    text = ",".join(str(cpu) for cpu in sorted(cpus))
    assert cpu_list(text) == tuple(sorted(cpus))


@given(st.integers(0, 4999), st.integers(0, 4999))
def test_a_range_of_cpus(first: int, more: int) -> None:
    assert cpu_list(f"{first}-{first + more}") == tuple(range(first, first + more + 1))


def test_a_long_list_of_wide_ranges_fills_no_memory() -> None:
    with pytest.raises(ValueError, match="is not a list of CPUs"):
        cpu_list("0-999999," * 100_000)


@given(st.from_regex(r"[0-9]{1,3}(\.[0-9])? GT/s( PCIe)?", fullmatch=True))
def test_a_speed_is_that_of_a_generation(text: str) -> None:
    try:
        speed = pcie_speed(text)
    except ValueError:
        return
    assert speed is not None
    assert generation(speed)


@pytest.mark.parametrize(
    ("speed", "width", "lost"),
    [
        ("Unknown", "63", True),
        ("Unknown speed", "255", True),
        ("Unknown", "0", False),
        ("Unknown", None, False),
        ("32.0 GT/s PCIe", "63", False),
        (None, "63", False),
        (None, None, False),
    ],
)
def test_a_device_that_answers_no_more(speed: str | None, width: str | None, lost: bool) -> None:
    assert is_lost(speed, width) is lost


@given(st.text())
def test_a_shown_text_is_a_literal_of_its_beginning(text: str) -> None:
    """Unambiguous, so that a message says exactly what stood there."""
    assert literal_eval(shown(text, 10)) == (text if len(text) <= 10 else f"{text[:10]}...")
