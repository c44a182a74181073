"""TCP tests between hosts, compared with the speed of the ports in the same text."""

from __future__ import annotations

import pytest

from tests.support.texts import found_in, report_of


def _text(rates: list[str], speeds: list[int], link: str = "yes") -> str:
    ports = [
        f"Settings for ens{at}f0np0:\n\tSpeed: {speed}Mb/s\n\tDuplex: Full\n\tLink detected: {link}\n"
        for at, speed in enumerate(speeds, 1)
    ]
    rows = [f"| `box-{chr(97 + at)} -> box-{chr(98 + at)}` | {rate} |" for at, rate in enumerate(rates)]
    return "\n".join([*ports, "| Path | Result |", "| --- | --- |", *rows, ""])


@pytest.mark.parametrize(
    ("rates", "speeds"),
    [
        (["`9.41 Gbits/sec`, `20231` retransmits", "`9.38 Gbits/sec`, `18812` retransmits"], [200000]),
        (["7.2 Gbits/sec, 991 retr", "6.9 Gbits/sec, 1031 retr", "7.1 Gbits/sec, 902 retr"], [100000, 100000]),
        (["940 Mbits/sec (retransmits: 12)", "938 Mbits/sec (retransmits: 3)"], [25000]),
    ],
)
def test_far_below_the_ports(rates: list[str], speeds: list[int]) -> None:
    text = _text(rates, speeds)
    assert found_in(text) == [("bandwidth-low", "warning", "node")]
    assert f"of {speeds[0] / 8000:.1f}" in report_of(text).findings[0].message or speeds[0] == 25000


@pytest.mark.parametrize(
    "text",
    [
        _text(["94.1 Gbits/sec, 12 retr", "93.8 Gbits/sec, 0 retr"], [100000]),
        _text(["31.0 Gbits/sec, 12 retr", "30.8 Gbits/sec, 0 retr"], [400000]),  # one stream
        _text(["9.41 Gbits/sec, 3 retr", "9.40 Gbits/sec, 0 retr"], [10000]),
        _text(["9.41 Gbits/sec, 3 retr", "9.40 Gbits/sec, 0 retr"], [200000, 10000]),
        _text(["9.41 Gbits/sec, 3 retr", "9.40 Gbits/sec, 0 retr"], []),
        _text(["9.41 s, 3 retr", "9.40 s, 0 retr"], [200000]),
    ],
)
def test_rates_of_the_ports_and_other_rows(text: str) -> None:
    assert found_in(text) == []


@pytest.mark.parametrize("name", ["wlp3s0", "wlan0", "eno1"])
@pytest.mark.parametrize("rate", ["0.42 Gbits/sec", "880 Mbits/sec"])
def test_a_test_that_can_have_run_over_another_interface(name: str, rate: str) -> None:
    rows = [f"{rate}, 12 retr", f"{rate}, 3 retr"]
    link = f"3: {name}: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP qlen 1000\n"
    link += "    link/ether 02:00:00:00:00:07 brd ff:ff:ff:ff:ff:ff\n\n"
    report = report_of(link + _text(rows, [100000]))
    assert [one[:2] for one in found_in(link + _text(rows, [100000]))] == [("bandwidth-low", "info")]
    assert report.verdict == "unknown"
    over = _text([f"{one} over Wi-Fi" for one in rows], [100000])
    assert not [one for one in report_of(over).findings if one.severity != "info"]
