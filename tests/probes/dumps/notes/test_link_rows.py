"""PCIe links in rows that scripts print: an address, and names of values as programs write them."""

from __future__ import annotations

from itertools import permutations, product

import pytest

from tests.support.texts import found_in, report_of

NOW = ("current_link_width", "cur_link_width", "curr_width", "link_width", "currentLinkWidth", "pcie_width", "width")
MOST = ("max_link_width", "max_width", "maxLinkWidth", "maximum_link_width", "link_width_max", "pcie.width.max")
SIGNS = ("=", ":", ": ", " ", " = ")
BETWEEN = (" ", ", ", "; ", " | ", "\t")
WHERE = ("{a} ", "{a}: ", "/sys/bus/pci/devices/{a}: ", "[{a}] ", "{a} | ", "{a} - ", "Device {a}: ")
PAIRS = (
    "current x{w} max x16",
    "cur=x{w} max=x16",
    "x{w}/x16",
    "x{w}/16",
    "{w}x / 16x",
    "x{w} (x16)",
    "x{w} (max x16)",
    "x{w} of x16",
    "width {w}/16",
    "width: {w} (max 16)",
    "link x{w}, supports x16",
    "LnkCap x16 LnkSta x{w}",
    "LnkSta x{w} LnkCap x16",
    "x{w}/x16 8.0 GT/s/16.0 GT/s",
    "x{w}/x16 speed 16.0/16.0 GT/s",
    "Gen4 x{w} (max Gen4 x16)",
    "gen4/gen4 x{w}/x16",
    "(10de:2204): x{w} / x16",
)
TABLES = {
    "columns": "{0:<16}{1:<12}{2:<12}\n",
    "commas": "{},{},{}\n",
    "bars": "| {} | {} | {} |\n",
    "tabs": "{}\t{}\t{}\n",
}
HEADERS = (
    ("BDF", "CurWidth", "MaxWidth"),
    ("Address", "Current Link Width", "Max Link Width"),
    ("Device", "current_link_width", "max_link_width"),
    ("PCI Bus ID", "width", "max width"),
)
FIRST, SECOND = "0000:41:00.0", "0000:61:00.0"


def _narrow(text: str) -> set[tuple[str, str]]:
    return {(code, subject) for code, _, subject in found_in(text)}


@pytest.mark.parametrize("now", NOW)
@pytest.mark.parametrize("most", MOST)
def test_names_of_values(now: str, most: str) -> None:
    for sign, between in product(SIGNS, BETWEEN):
        if now == "width" and sign != "=":
            continue  # a word of prose, which the rows below have
        text = "".join(
            f"{a} {between.join((f'{now}{sign}{w}', f'{most}{sign}16'))}\n" for a, w in ((FIRST, 8), (SECOND, 16))
        )
        assert _narrow(text) == {("pcie-link-narrow", FIRST)}, text


def test_each_order_of_the_fields() -> None:
    fields = "current_link_width={w}", "max_link_width=16", "current_link_speed=16.0 GT/s PCIe", "max_link_speed=16GT/s"
    for order in permutations(fields):
        for form in ("{a} {r}\n", "{r} {a}\n"):
            text = "".join(form.format(a=a, r=" ".join(order).format(w=w)) for a, w in ((FIRST, 8), (SECOND, 16)))
            assert _narrow(text) == {("pcie-link-narrow", FIRST)}, text


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("where", WHERE)
def test_pairs_of_values(pair: str, where: str) -> None:
    row = f"{where}{pair}\n"
    assert _narrow(row.format(a=FIRST, w=8) + row.format(a=SECOND, w=16)) == {("pcie-link-narrow", FIRST)}
    assert _narrow(row.format(a=FIRST, w=4)) == {("pcie-link-narrow", FIRST)}
    assert not found_in(row.format(a=FIRST, w=16) + row.format(a=SECOND, w=16))


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_tables(header: tuple[str, ...], table: str) -> None:
    if "{0:<" in table:
        table = table.replace("16}", "18}").replace("12}", "22}")
    rows = [header, (FIRST, "8", "16"), (SECOND, "16", "16")]
    assert _narrow("".join(table.format(*row) for row in rows)) == {("pcie-link-narrow", FIRST)}
    assert not found_in("".join(table.format(*row) for row in (header, (FIRST, "16", "16"))))


def test_a_gpu_at_rest_has_a_lower_speed() -> None:
    row = "{a} (10de:2204) current_link_speed=2.5 GT/s PCIe max_link_speed=16.0 GT/s PCIe width=16 max_width=16\n"
    report = report_of(row.format(a=FIRST) + row.format(a=SECOND))
    assert {one.severity for one in report.findings} <= {"info"}


@pytest.mark.parametrize(
    "text",
    [
        f"{FIRST} target_link_width=8 max_link_width=16",
        f"{FIRST} width=8 width=4 max_width=16",
        f"{FIRST} slot_width=8 max_link_width=16",
        f"{FIRST} max_link_width=16",
        f"{FIRST} current_link_width=8",
    ],
)
def test_rows_that_do_not_say_it(text: str) -> None:
    assert not found_in(f"{text}\n")
    assert report_of(f"{text}\n").verdict == "unknown"


@pytest.mark.parametrize("count", [2, 4, 8])
@pytest.mark.parametrize(("least", "most"), [(4, 8), (8, 16), (2, 4)])
@pytest.mark.parametrize("name", ["NVIDIA GeForce RTX 4060", "NVIDIA L40S"])
def test_half_of_equal_gpus_with_fewer_lanes_are_named(count: int, least: int, most: int, name: str) -> None:
    """No width is that of most of them, and the others show that the card can have all its lanes here."""
    head = "index, name, pcie.link.gen.current, pcie.link.width.current, pcie.link.width.max\n"
    rows = [f"{one}, {name}, 4, {least if one < count // 2 else most}, {most}\n" for one in range(count)]
    report = report_of(head + "".join(rows))
    named = {one.subject for one in report.findings if one.code == "pcie-link-narrow" and one.severity == "warning"}
    assert named == {f"gpu{one}" for one in range(count // 2)}
    alike = report_of(head + "".join(f"{one}, {name}, 4, {most}, {most}\n" for one in range(count)))
    assert not alike.findings
