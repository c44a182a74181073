"""Lists of devices in every layout give the same finding: one device of many has a slower link."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

import pytest

from tests.support.texts import found_in, report_of

Rows = Sequence[Mapping[str, str]]


def bars(rows: Rows) -> str:
    names = list(rows[0])
    lines = [names, ["---"] * len(names), *([row[name] for name in names] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def separated(sign: str) -> Callable[[Rows], str]:
    return lambda rows: "".join(f"{sign.join(line)}\n" for line in (rows[0], *(row.values() for row in rows)))


def columns(rule: str) -> Callable[[Rows], str]:
    def table(rows: Rows) -> str:
        lines = ["".join(f"{cell:<18}" for cell in line).rstrip() for line in (rows[0], *(r.values() for r in rows))]
        return "\n".join((lines[0], *([rule] if rule else []), *lines[1:], ""))

    return table


def as_json(rows: Rows) -> str:
    return json.dumps({"devices": list(rows)}, indent=1) + "\n"


def as_json_in_one_line(rows: Rows) -> str:
    return json.dumps(list(rows)) + "\n"


def as_yaml(rows: Rows) -> str:
    return "devices:\n" + "".join(
        f"{'  - ' if place == 0 else '    '}{name}: {value}\n"
        for row in rows
        for place, (name, value) in enumerate(row.items())
    )


def as_blocks(rows: Rows) -> str:
    blocks = (list(row.items()) for row in rows)
    return "\n".join(
        f"[{device}]\n" + "".join(f"{name} = {value}\n" for name, value in rest) for (_, device), *rest in blocks
    )


LAYOUTS: Mapping[str, Callable[[Rows], str]] = {
    "bars": bars,
    "commas": separated(","),
    "tabs": separated("\t"),
    "semicolons": separated(";"),
    "columns": columns(""),
    "columns with a rule": columns("-" * 54),
    "columns with a double rule": columns("=" * 54),
    "JSON": as_json,
    "JSON in one line": as_json_in_one_line,
    "YAML": as_yaml,
    "blocks": as_blocks,
}
# Names of the columns: of the device, its link now, and the names of the devices
GPUS = [f"GPU {number}" for number in range(4)]
ADAPTERS = [f"mlx5_{number}" for number in range(4)]
FUNCTIONS = [f"0000:{bus}:00.0" for bus in ("18", "2a", "3b", "4c")]
DRIVES = [f"nvme{number}n1" for number in range(4)]
WIDTHS = ("width", "link_width", "Link Width", "pcie_width", "Current Width", "lanes")


def rows_of(names: Sequence[str], device: str, column: str, values: Sequence[str]) -> Rows:
    return [{device: name, column: value} for name, value in zip(names, values, strict=True)]


def codes(text: str) -> set[tuple[str, str]]:
    return {(code, subject) for code, severity, subject in found_in(text) if severity != "info"}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("names", "device"), [(GPUS, "GPU"), (ADAPTERS, "device"), (FUNCTIONS, "BDF")])
def test_one_narrow_link_of_four(layout: str, names: Sequence[str], device: str) -> None:
    for column in WIDTHS:
        for number, name in enumerate(names):
            values = ["16"] * 4
            values[number] = "8"
            subject = name.replace("GPU ", "gpu")
            text = LAYOUTS[layout](rows_of(names, device, column, values))
            assert codes(text) == {("pcie-link-narrow", subject)}, text


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("value", ["x{}", "Gen5 x{}", "32GT/s x{}", "PCIe Gen5 x{}"])
def test_values_that_say_what_they_are(layout: str, value: str) -> None:
    values = [value.format(width) for width in (4, 4, 2, 4)]
    assert codes(LAYOUTS[layout](rows_of(DRIVES, "device", "link", values))) == {("storage-link-slow", "nvme2")}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("names", "device"), [(GPUS, "GPU"), (ADAPTERS, "device"), (FUNCTIONS, "BDF")])
def test_equal_links_give_no_finding(layout: str, names: Sequence[str], device: str) -> None:
    for width in ("16", "8", "4"):
        text = LAYOUTS[layout](rows_of(names, device, "width", [width] * 4))
        report = report_of(text)
        assert not codes(text)
        assert report.verdict == ("ok" if width == "16" else "unknown"), text


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_port_with_half_the_rate(layout: str) -> None:
    for value in ("{} Gb/s", "{}G", "{} Gbps"):
        rates = zip(ADAPTERS, (400, 200, 400, 400), strict=True)
        rows = [{"HCA": name, "state": "Active", "rate": value.format(rate)} for name, rate in rates]
        text = LAYOUTS[layout](rows)
        assert codes(text) == {("nic-rate-low", "mlx5_1/1")}, text


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("mark", ["FAIL", "degraded!!", "❌ bad", "ERROR 17"])
def test_a_mark_of_a_fault_in_other_words_is_not_ok(layout: str, mark: str) -> None:
    rows = [
        {"GPU": f"GPU {number}", "width": "16", "bond test": mark if number == 2 else "fine"} for number in range(4)
    ]
    report = report_of(LAYOUTS[layout](rows))
    assert report.verdict == "unknown"
    assert any("marked as a fault" in one.detail for one in report.not_checked)


def test_adapters_with_an_address_and_a_port() -> None:
    heading = "Device   PCI address    Link     Width    State\n"
    row = "mlx5_{n}   0000:{b}:00.0   32GT/s   {w}   {s}\n"
    text = heading + "".join(
        row.format(n=n, b=b, w="x8 >!<" if n == 1 else "x16", s="DOWN" if n == 2 else "ACTIVE")
        for n, b in enumerate(("18", "2a", "3b", "4c"))
    )
    assert ("pcie-link-narrow", "0000:2a:00.0") in codes(text)
    assert ("nic-port-down", "mlx5_2/1") in codes(text)


@pytest.mark.parametrize(
    "text",
    [
        "name  width  height\nphoto  16  9\nphoto2  8  9\n",
        "step, loss, speed\n1, 2.3, 16\n2, 2.2, 8\n",
        "epoch\tgpu\tlr\n1\t8\t0.1\n2\t4\t0.1\n",
        '{"batch": 8, "gpu": 4, "width": 1024}\n',
        "model:\n  name: llama\n  width: 4096\n  heads: 32\n",
    ],
)
def test_tables_about_other_things(text: str) -> None:
    report = report_of(text)
    assert not report.findings
    assert report.verdict == "unknown"
