"""Lines that a narrow window or a copy by hand cut: the finding of the whole lines, or a gap, never "ok"."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import pytest

from linkgauge.models.evaluate import evaluate
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.lines.cut_lines import cut_lines, pieces, without_cut_numbers
from linkgauge.probes.dumps.lines.table_rows import continued, open_rows
from linkgauge.probes.dumps.read import read_text

AT = 1.795e9
ROWS = (
    "GPU 00000000:41:00.0\n"
    "    Remapped Rows\n"
    "        Correctable Error                 : 0\n"
    "        Uncorrectable Error               : 2\n"
    "        Pending                           : {}\n"
    "        Remapping Failure Occurred        : No\n"
)
LINK = (
    "41:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)\n"
    "\tControl: I/O- Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr- Stepping- SERR- FastB2B- DisINTx-\n"
    "\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported\n"
    "\t\tLnkSta:\tSpeed 32GT/s, Width {}\n"
)
LIST = (
    "index, pci.bus_id, pcie.link.gen.current, pcie.link.gen.max, pcie.link.width.current, pcie.link.width.max\n"
    "0, 00000000:41:00.0, 5, 5, {}, 16\n"
)
TABLE = (
    "+-----------------------------------------------------------------------------------------+\n"
    "| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |\n"
    "|-----------------------------------------+------------------------+----------------------+\n"
    "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n"
    "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |\n"
    "|                                         |                        |               MIG M. |\n"
    "|=========================================+========================+======================|\n"
    "|   0  NVIDIA H100 80GB HBM3          On  |   00000000:41:00.0 Off |                    {} |\n"
    "| N/A   38C    P0             102W /  700W |       4MiB /  81559MiB |      0%      Default |\n"
    "|                                         |                        |             Disabled |\n"
    "+-----------------------------------------+------------------------+----------------------+\n"
)
PORT = (
    "CA 'mlx5_0'\n"
    "\tCA type: MT4129\n"
    "\tNumber of ports: 1\n"
    "\tPort 1:\n"
    "\t\tState: {}\n"
    "\t\tPhysical state: LinkUp\n"
    "\t\tRate: 400\n"
    "\t\tBase lid: 7\n"
    "\t\tLink layer: InfiniBand\n"
)
COUNTERS = "NIC statistics:\n     rx_crc_errors_phy: {}\n     rx_symbol_err_phy: 0\n     link_down_events_phy: 0\n"
ERRORS = (
    "GPU 00000000:41:00.0\n"
    "    ECC Mode\n"
    "        Current                           : Enabled\n"
    "        Pending                           : Enabled\n"
    "    ECC Errors\n"
    "        Volatile\n"
    "            SRAM Correctable              : 0\n"
    "            SRAM Uncorrectable Parity     : 0\n"
    "            DRAM Correctable              : 0\n"
    "            DRAM Uncorrectable            : {}\n"
)
# a text, the value of a fault, and that of a healthy device
TEXTS = {
    "rows": (ROWS, "Yes", "No"),
    "link": (LINK, "x8 (downgraded)", "x16"),
    "list": (LIST, "8", "16"),
    "table": (TABLE, "7", "0"),
    "port": (PORT, "Down", "Active"),
    "counters": (COUNTERS, "4711", "0"),
    "errors": (ERRORS, "3", "0"),
}
WIDTHS = range(20, 110)


def report(text: str) -> Report:
    return evaluate(assemble(read_text("dump.txt", text, AT), Site(), AT, origin="dumps"))


def faults(one: Report) -> set[str]:
    return {finding.code for finding in one.findings if finding.severity != "info"}


def cuts(text: str) -> Iterator[str]:
    """The text with a line break in each place within a line."""
    for place in range(1, len(text)):
        if "\n" not in text[place - 1 : place + 1]:
            yield f"{text[:place]}\n{text[place:]}"


def narrow(text: str, width: int, words: bool) -> str:
    """The text in a window of this width, which breaks lines anywhere or between words."""
    lines = text.splitlines()
    if words:
        return "\n".join("\n".join(textwrap.wrap(line, width, drop_whitespace=False) or [""]) for line in lines)
    return "\n".join(line[place : place + width] for line in lines for place in range(0, len(line), width))


@pytest.mark.parametrize("name", TEXTS)
def test_a_cut_in_any_place_hides_no_fault(name: str) -> None:
    text, fault, _ = TEXTS[name]
    expected = faults(report(text.format(fault)))
    assert expected
    for cut in cuts(text.format(fault)):
        one = report(cut)
        assert one.verdict != "ok", cut
        assert expected <= faults(one) or one.not_checked or one.findings, cut


@pytest.mark.parametrize("name", TEXTS)
def test_a_cut_in_any_place_makes_no_fault(name: str) -> None:
    text, _, healthy = TEXTS[name]
    assert report(text.format(healthy)).verdict == "ok"
    for cut in cuts(text.format(healthy)):
        assert not any(one.severity == "critical" for one in report(cut).findings), cut


@pytest.mark.parametrize("words", [False, True], ids=["anywhere", "between words"])
@pytest.mark.parametrize("name", TEXTS)
def test_a_narrow_window_hides_no_fault(name: str, words: bool) -> None:
    text, fault, _ = TEXTS[name]
    for width in WIDTHS:
        one = report(narrow(text.format(fault), width, words))
        assert one.verdict != "ok", width
        assert faults(one) or one.not_checked or one.findings, width


def test_all_widths_of_a_table() -> None:
    """From half of its width on: the rows are joined, also if blanks at the ends of lines are lost."""
    for width in range(46, 91):
        for words in (False, True):
            text = narrow(TABLE.format(7), width, words)
            assert faults(report(text)) == {"gpu-ecc"}, text
    assert continued(TABLE.splitlines()) == (set(), True)


def test_a_row_without_its_end_is_a_gap() -> None:
    lines = TABLE.format(0).splitlines()
    assert list(open_rows(lines)) == []
    lines[7] = lines[7][:-10]
    assert list(open_rows(lines)) == [7]
    assert report("\n".join(lines)).verdict == "unknown"


def test_a_name_without_its_value_is_a_gap() -> None:
    """Also if the value is lost. Titles ("Port 1:") and healthy outputs have no such lines."""
    text = ROWS.format("No")
    assert report(text).verdict == "ok"
    assert report(text.replace(": No\n        Remapping", ":\n        Remapping")).verdict == "unknown"
    assert list(pieces(["CA 'mlx5_0'", "\tPort 1:", "  Base lid: 4", *text.splitlines()])) == []
    assert list(pieces(["        Pending      : ", "      : Yes", ": No"])) == [0, 1, 2]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("GPU 0: NVIDIA H100 80GB HBM3\n\t Link 5: <inactive> (downgr\naded)\n", [1]),
        ("\t\tLnkSta:\tSpeed 32GT/s,\n Width x16\n", [0]),
        ("\t\tLnkS\nta:\tSpeed 32GT/s, Width x16\n", [0]),
        ("index, name, pstate\n0, H100, P0\n1, H100,\n P0\n", [2]),
        ("Critical Warning:   0\nx04\nTemperature:  35 Celsius\n", [0]),
        ("    Max   : 1\n6x\n", [0]),
        ("\tState: Dow\nn\n\tRate: 400\n", [0]),
    ],
)
def test_the_line_that_is_cut(text: str, found: list[int]) -> None:
    assert sorted(set(cut_lines(text.splitlines()))) == found


@pytest.mark.parametrize(
    "text",
    [
        "hca_id:\tmlx5_1\n\tfw_ver:\t28.1\nhca_id:\tmlx5_0\n\tfw_ver:\t28.1\n",  # titles
        "\t\tLnkSta:\tSpeed 32GT/s, Width x16\nand on the other node:\n\t\tLnkSta:\tSpeed 32GT/s, Width x16\n",
        "\t\tLnkSta:\tSpeed 32GT/s, Width x16\nlspci -vv | grep Lnk\n\t\tLnkSta:\tSpeed 32GT/s, Width x16\n",
        "   1048576  12.5\n...\n   2097152  12.5\n",  # lines that a person omitted
        "a, b, c\n1, 2\n",
        '{"rows": [\n1, 2]\n}\n',
    ],
)
def test_whole_lines_are_not_cut(text: str) -> None:
    assert list(cut_lines(text.splitlines())) == []


def test_a_number_that_is_cut_is_no_width() -> None:
    assert without_cut_numbers("\tLnkSta:\tSpeed 32GT/s, Width x1\n6\n") == "\tLnkSta:\tSpeed 32GT/s, Width x\n6\n"
    for text in ("\tLnkSta:\tSpeed 32GT/s, Width x1\n41:00.0 A", "\tLnkSta:\tSpeed 32GT/s, Width x16\n\n6"):
        assert without_cut_numbers(text) == text
