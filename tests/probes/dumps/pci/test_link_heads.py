"""Links below headlines with an address that scripts print (pci/link_heads.py)."""

from __future__ import annotations

from itertools import product

import pytest

from linkgauge.models.facts.machine import Pci
from linkgauge.models.facts.reason import Reason
from linkgauge.probes.dumps.read import read_text
from tests.support.texts import AT, found_in, report_of

LINKS = {
    "lspci": "\tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM L1\n\tLnkSta:\tSpeed 16GT/s, Width x{w}{mark}\n",
    "the state first": "  LnkSta: Speed 16GT/s, Width x{w}{mark}\n  LnkCap: Speed 16GT/s, Width x16, ASPM L1\n",
    "sysfs": "current_link_width: {w}\nmax_link_width: 16\n",
    "sysfs, the maximum first": "  max_link_width=16\n  current_link_width={w}\n  current_link_speed=16.0 GT/s PCIe\n",
}
BARE = (
    "{a}",
    "{a}:",
    "=== {a} ===",
    "--- {a} ---",
    "[{a}]",
    "## {a}",
    "Device {a}",
    "Device: {a}",
    "Slot: {a}",
    "BDF={a}",
    "PCI address: {a}",
    "Checking device {a} ...",
)
OF_GPUS = (
    "GPU {n}: {a}",
    "GPU#{n} {a}",
    "GPU at {a}:",
    "Card: {a} 3D controller: NVIDIA Corporation GA100 [A100 PCIe 40GB] (rev a1)",
    "Card {n}: {a} VGA compatible controller [0300]: NVIDIA Corporation AD102 [10de:2684] (rev a1)",
    "{a} NVIDIA RTX A6000",
    "NVIDIA RTX A6000 ({a})",
    "Card {n}: {a} [10de:2204] GeForce",
    "Checking GPU {n} in slot 4 at {a}",
)
ADDRESSES = ("41:00.0", "0000:41:00.0"), ("61:00.0", "0000:61:00.0"), ("00000000:81:00.0", "00000000:81:00.0")


def _text(head: str, link: str, widths: tuple[int, ...], mark: str = "") -> str:
    rows = enumerate(zip(ADDRESSES, widths, strict=False))
    return "".join(f"{head.format(a=a, n=n)}\n{link.format(w=w, mark=mark)}" for n, ((a, _), w) in rows)


@pytest.mark.parametrize("head", [*BARE, *OF_GPUS])
def test_the_narrow_one_has_its_address(head: str) -> None:
    for link, widths in product(LINKS.values(), [(8, 16), (16, 8), (16, 4, 16)]):
        narrow = next(name for (_, name), width in zip(ADDRESSES, widths, strict=False) if width < 16)
        severity = "info" if head in BARE else "critical"  # a bare address can be that of a port
        found = found_in(_text(head, link, widths))
        assert ("pcie-link-narrow", severity, narrow) in found, (link, widths)
        assert len(found) == 1


@pytest.mark.parametrize("head", BARE)
def test_a_narrow_link_of_an_unknown_kind_is_unknown(head: str) -> None:
    assert report_of(_text(head, LINKS["lspci"], (8, 16))).verdict == "unknown"


@pytest.mark.parametrize("head", [*BARE, *OF_GPUS])
def test_whole_links(head: str) -> None:
    for link in LINKS.values():
        assert not found_in(_text(head, link, (16, 16, 16)))
    slower = LINKS["lspci"].replace("Sta:\tSpeed 16GT/s", "Sta:\tSpeed 2.5GT/s (downgraded)")
    found = found_in(_text(head, slower, (16, 16)))
    assert {(code, severity) for code, severity, _ in found} <= {("pcie-link-slow", "info")}  # GPUs at rest


@pytest.mark.parametrize(
    "head",
    [
        "The port above 41:00.0 shows",
        "Unlike the GPU at 41:00.0, this one has",
        "The slot of 41:00.0",
        "41:00.0 and 61:00.0",
        "I pulled the card 41:00.0 and put the old one back, which showed this",
    ],
)
def test_prose_about_another_link_names_none(head: str) -> None:
    found = found_in(f"{head}\n{LINKS['lspci'].format(w=8, mark=' (downgraded)')}")
    assert all(subject != "0000:41:00.0" for _, _, subject in found)


@pytest.mark.parametrize("prompt", ["$ ", "# ", "root@n7:~# ", "[root@n7 ~]# ", ""])
@pytest.mark.parametrize("command", ["lspci -s {} -vv", "sudo lspci -vv -s {} | grep Lnk"])
@pytest.mark.parametrize("between", ["", "...\n", "\n"])
def test_a_command_for_one_function(prompt: str, command: str, between: str) -> None:
    link = LINKS["lspci"].format(w=8, mark="")
    text = f"{prompt}{command.format('41:00.0')}\n{between}{link}"
    assert [subject for _, _, subject in found_in(text)] == ["0000:41:00.0"]
    other = f"{prompt}{command.format('41:00.0')}\n$ lspci -vv\n{link}"
    assert "0000:41:00.0" not in [subject for _, _, subject in found_in(other)]


def test_only_the_first_link_below_a_headline_is_of_it() -> None:
    link = LINKS["lspci"].format(w=8, mark="")
    assert {subject for _, _, subject in found_in(f"41:00.0\n{link}{link}")} == {"0000:41:00.0", "text:4"}


def test_two_headlines_with_one_address_name_none() -> None:
    link, other = (LINKS["lspci"].format(w=width, mark="") for width in (8, 4))
    assert {subject for _, _, subject in found_in(f"41:00.0\n{link}41:00.0\n{other}")} == {"text:2", "text:5"}


def test_commands_below_a_heading() -> None:
    """The numbers of lines are those of the file, and the heading says what the devices are."""
    text = "| a | b |\n|---|---|\n| c | d |\n\n### Links of the GPUs\n\n```bash\n"
    for address in ("01:00.0", "03:00.0"):
        text += f"$ sudo lspci -vvv -s {address} | grep -E 'LnkSta|LnkCap'\n"
        text += "LnkCap: Port #0, Speed 16GT/s, Width x16, ASPM L1\nLnkSta: Speed 16GT/s, Width x8 (downgraded)\n\n"
    narrow = [("pcie-link-narrow", "critical", f"0000:{address}") for address in ("01:00.0", "03:00.0")]
    assert found_in(f"{text}```\n") == narrow


STATE = "LnkCap: Speed 32GT/s, Width x4    LnkSta: Speed 32GT/s, Width x{w}{mark}"
RATES = (
    "~110 Gbps per lane (consistent with PCIe Gen5 x4 ~126 Gbps theoretical).",
    "The copy reaches 3.2 GB/s instead of 12 GB/s.",
    "gpu0 -> gpu1: 48.1 GB/s",
)


@pytest.mark.parametrize("before", RATES)
@pytest.mark.parametrize("address", ["0002:01:00.0", "41:00.0", "  0002:01:00.0", "- 0002:01:00.0"])
def test_a_row_behind_a_sentence_about_rates(before: str, address: str) -> None:
    """The sentence does not take the row with it: the row has the width that it has alone."""
    for w, mark in ((2, " (downgraded)"), (4, "")):
        row = f"{address}  {STATE.format(w=w, mark=mark)}\n"
        links = [
            {one.width for one in read_text("text", text, AT) if isinstance(one, Pci) and one.width}
            for text in (row, f"Measured:\n{before}\n\nThe other box:\n\n{row}")
        ]
        assert links == [{w}, {w}]


def test_two_lists_that_disagree() -> None:
    """Whether an unnamed function lost lanes, or two machines have it, the text does not say."""
    narrow = STATE.format(w=2, mark=" (downgraded)")
    rows = [f"0000:01:00.0  {STATE.format(w=4, mark='')}", f"0002:01:00.0  {STATE.format(w=4, mark='')}"]
    report = report_of("\n".join(("One box:", *rows, "", "The other box:", rows[0], f"0002:01:00.0  {narrow}\n")))
    assert report.verdict == "unknown"
    assert [one.message for one in report.findings if one.code == "pcie-link-narrow"] == []
    assert [one.subject for one in report.not_checked if one.reason is Reason.CONTRADICTED] == ["0002:01:00.0"]
