"""What a port negotiated, in sentences: it is a rate of the port, and no rate that a test reached."""

from __future__ import annotations

import pytest

from tests.support.texts import report_of

SPEEDS = (
    ("10", "1000", "Mb/s"),
    ("100", "1000", "Mb/s"),
    ("10", "25", "Gb/s"),
    ("25", "100", "Gbps"),
    ("100", "400", "Gb/s"),
)
SENTENCES = (
    "The NIC negotiates {have} {unit} instead of {want} {unit}.",
    "Sometimes the adapter boots or renegotiates at {have} {unit} instead of {want} {unit}.",
    "After the reboot the link is at {have} {unit} instead of {want} {unit}",
)
TESTS = (
    "iperf3 between the nodes shows {have} {unit} instead of {want} {unit}",
    "We reach {have} {unit} instead of {want} {unit} with NCCL",
    "worker-3 connects at {have} {unit}, expected {want} {unit}",
    "ens1f0 up: iperf gives {have} {unit}, expected {want} {unit}",
    "node3: {have} {unit}, expected {want} {unit}, link up",
)
SLOW = (
    "The node is connected at {} since the switch was replaced",
    "The port only negotiates at {}",
    "The network works at {} although the router shows 1 Gb.",
    "# [BUG] Node connected at {} once the VLAN is on",
)
MEGABITS = ("100Mb/s", "10 Mbps", "100 Mbit/s", "100 Mb")
HARMLESS = (
    "The BMC is connected at {} only",
    "The PDU negotiates at {}, the rest of the rack runs at 400G.",
    "It boots at {}, then negotiates 1000Mb/s within two seconds.",
    "The printer is connected at {} through the office switch since May.",
    "Is it normal that the port connects at {}?",
    "With WoL the NIC is linked at {} in standby only.",
    "Fix a bug where the link came up at {} only",
    "Our VPN is connected at {} since Monday",
)


@pytest.mark.parametrize(("have", "want", "unit"), SPEEDS)
@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_port_that_is_slow(sentence: str, have: str, want: str, unit: str) -> None:
    report = report_of(sentence.format(have=have, want=want, unit=unit) + "\n")
    assert {one.code for one in report.findings} == {"nic-rate-low"}
    assert all(have in one.message and want in one.message for one in report.findings)


@pytest.mark.parametrize(("have", "want", "unit"), SPEEDS)
@pytest.mark.parametrize("sentence", TESTS)
def test_the_rate_of_a_test(sentence: str, have: str, want: str, unit: str) -> None:
    report = report_of(sentence.format(have=have, want=want, unit=unit) + "\n")
    assert {one.code for one in report.findings} == {"bandwidth-low"}
    assert report.verdict == "unknown"


@pytest.mark.parametrize("speed", MEGABITS)
@pytest.mark.parametrize("sentence", SLOW)
def test_a_port_at_megabits(sentence: str, speed: str) -> None:
    report = report_of(sentence.format(speed) + "\n")
    assert {(one.code, one.severity) for one in report.findings} == {("nic-rate-low", "warning")}


@pytest.mark.parametrize("speed", MEGABITS)
@pytest.mark.parametrize("sentence", HARMLESS)
def test_devices_and_states_that_have_megabits(sentence: str, speed: str) -> None:
    assert report_of(sentence.format(speed) + "\n").findings == ()


@pytest.mark.parametrize("mark", ["-", " - ", "–", " to "])
def test_a_range_that_is_low(mark: str) -> None:
    (found,) = report_of(f"We only get 10{mark}11 Gbps with iperf3\n").findings
    assert (found.code, found.observed) == ("bandwidth-low", 11e9 / 8)
