"""What texts say of links, ports and settings beside other lines of the same text."""

from __future__ import annotations

import pytest

from tests.support.texts import report_of

LIMITED = (
    "pci 0000:{bus}:00.0: {now} Gb/s available PCIe bandwidth, limited by {speed} GT/s PCIe x8 link at 0000:00:01.1 "
    "(capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)\n"
)


def limited(at: float, now: str, speed: str, bus: str = "01") -> str:
    return f"[{at:12.6f}] " + LIMITED.format(bus=bus, now=now, speed=speed)


def severities(text: str, code: str) -> list[str]:
    return [one.severity for one in report_of(text).findings if one.code == code]


def test_a_link_that_comes_back_slower_is_a_warning() -> None:
    before, after = limited(0.5, "63.008", "8.0"), limited(90.5, "16.000", "2.5")
    assert severities(before + after, "pcie-path-bottleneck") == ["warning"]
    assert severities(before + limited(90.5, "63.008", "8.0"), "pcie-path-bottleneck") == ["info"]
    assert severities(limited(0.5, "16.000", "2.5") + limited(9.0, "63.008", "8.0"), "pcie-path-bottleneck") == ["info"]


def test_the_uplink_of_a_chipset_is_no_fault() -> None:
    line = limited(0.5, "63.012", "16.0").replace("x8 link", "x4 link")
    assert severities(line, "pcie-path-bottleneck") == ["warning"]
    assert severities(line + line.replace("0000:01:", "0000:07:"), "pcie-path-bottleneck") == ["info"]


@pytest.mark.parametrize("state", ["INIT", "ARMED", "Initializing"])
def test_a_port_that_waits_for_a_subnet_manager(state: str) -> None:
    text = f"mlx5_0 port 1: state {state}\nmlx5_1 port 1: state ACTIVE\n"
    assert severities(text, "nic-port-down") == ["warning"]
    assert severities(text.replace(state, "DOWN"), "nic-port-down") == ["info"]


def test_a_line_of_a_list_that_is_not_understood_prevents_ok() -> None:
    assert report_of("mlx5_0 port 1: state ACTIVE\nmlx5_1 port 1: state ACTIVE\n").verdict == "ok"
    assert report_of("mlx5_0 port 1: frobnicated twice\nmlx5_1 port 1: state ACTIVE\n").verdict == "unknown"


@pytest.mark.parametrize(
    ("bar", "found"), [("1", []), ("3", ["warning"])]
)  # only the same window of memory ends the message
def test_only_the_same_window_gets_its_space(bar: str, found: list[str]) -> None:
    text = (
        "pci 0000:06:00.0: BAR 1: no space for [mem size 0x2000000000 64bit pref]\n"
        f"pci 0000:06:00.0: BAR {bar}: assigned [mem 0x2000000000-0x3fffffffff 64bit pref]\n"
    )
    assert [one for one in severities(text, "pcie-bar1-small") if one != "info"] == found


def test_a_sentence_about_a_link_that_lspci_shows_whole() -> None:
    link = "\t\tLnkCap:\tPort #0, Speed {0}GT/s, Width x16\n\t\tLnkSta:\tSpeed {0}GT/s, Width {1}\n"
    head, said = (
        "2f:00.0 VGA compatible controller: Example [Card]\n",
        "The tool says that my GPU runs at x2 instead of x16.\n",
    )
    assert report_of(head + link.format(32, "x16") + said).verdict == "unknown"
    assert report_of(head + link.format(32, "x8") + said).verdict == "failed"


def test_a_message_that_the_text_calls_a_false_positive() -> None:
    line = 'node7:1:1 [0] NCCL WARN Missing "iommu=pt" from kernel command line which can lead to hang!\n'
    assert report_of(line).verdict == "degraded"
    assert report_of(line + "On these kernels the warning is a false positive.\n").verdict == "unknown"


def test_a_check_of_processors_is_none_of_ports() -> None:
    assert report_of("[CRITICAL]: Processor None (EXAMPLE-T4) status is: None\n").findings == ()


@pytest.mark.parametrize("variable", ["NCCL_IB_DISABLE", "NCCL_NET"])
def test_a_variable_whose_effect_the_log_shows_is_a_warning(variable: str) -> None:
    value = {"NCCL_IB_DISABLE": "1", "NCCL_NET": "Socket"}[variable]
    line = f"n1:7:7 [0] NCCL INFO {variable} set by environment to {value}.\n"
    channel = "n1:7:9 [0] NCCL INFO Channel 00/0 : 1[60] -> 0[60] [receive] via NET/Socket/0\n"
    assert report_of(line + channel).verdict == "degraded"
    assert report_of(line).verdict == "unknown"


@pytest.mark.parametrize("link", ["PCIe x2 (Max: Gen 4 x16)", "Gen 1 instead of Gen 5"])
def test_a_link_that_a_program_misreports(link: str) -> None:
    title, line = "# PCIe Link Speed misreported in 9070xt\n", f"In the tool the link of the card is at {link}\n"
    (found,) = report_of(title + line).findings
    assert found.severity == "info"
    assert "shows another link than there is" in found.message
    assert [one.severity for one in report_of(line).findings] == ["critical"]


def test_a_link_that_no_program_misreports() -> None:
    line = "The GPU link is at x8 instead of x16, and nvidia-smi does not misreport it.\n"
    assert [one.severity for one in report_of(line).findings] == ["critical"]
