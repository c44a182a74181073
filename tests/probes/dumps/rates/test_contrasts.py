"""Rates of two environments, and of a link and what came over it, in neighbouring sentences (contrasts.py)."""

from __future__ import annotations

import pytest

from tests.support.texts import found_in, report_of

_LOW = [("bandwidth-low", "info", "node")]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("On bare metal all_reduce_perf shows 372 GB/s. In our VM it stays at 141 GB/s.", (141.0, 372.0)),
        ("Bare metal: **47.1 GB/s**; guest: **19 GB/s**, same 8x H100 and firmware.", (19.0, 47.1)),
        ("Inside the container I get around 11 GB/s busbw. On the host it is 44 GB/s busbw.", (11.0, 44.0)),
        ("We measure 98.1 Gb/s outside of docker and 31.7 Gb/s in the pod with 4x NICs.", None),
        ("The nodes reach 186 Gb/s back-to-back. Through the switch they reach 21 Gb/s.", (2.62, 23.2)),
        ("Directly connected we saw 97 Gbit/s but through our switch 9.4 Gbit/s.", (1.18, 12.1)),
    ],
)
def test_the_second_environment_is_slower(text: str, numbers: tuple[float, float] | None) -> None:
    assert found_in(text) == _LOW
    (finding,) = report_of(text).findings
    assert finding.expected
    if numbers:
        seen = (round(float(finding.observed or 0) / 1e9, 2), round(float(finding.expected) / 1e9, 1))
        assert seen == (numbers[0], numbers[1])


@pytest.mark.parametrize(
    "text",
    [
        "On bare metal all_reduce_perf shows 372 GB/s. In our VM it reaches 361 GB/s.",
        "In the VM it is 372 GB/s. On bare metal it is 141 GB/s.",
        "On bare metal all_reduce reaches 372 GB/s. In the VM h2d copies reach 54 GB/s.",
        "On bare metal I get 320 GB/s. In the VM I had 180 GB/s, after the fix of the topology file I have 318 GB/s.",
        "If bare metal gives 320 GB/s, the VM could give 180 GB/s.",
        "On bare metal the limit is usually 320 GB/s, and VMs usually reach 180 GB/s.",
        "The VM has 180 GB of memory, and the bare metal host has 320 GB.",
        "We ran it on bare metal: 320 GB/s.",
    ],
)
def test_no_slower_environment(text: str) -> None:
    assert found_in(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "PCIe 3.0 x4 should give about 3.9 GB/s. That is a lot more than the 0.41 GB/s that I am getting.",
        "A PCIe 4.0 x16 slot gives 31.5 GB/s in theory, but I only measured 3.2 GB/s with the card.",
        "With PCIe Gen5 x8 that is 31.5 GB/s, yet we got 1.9 GB/s.",
    ],
)
def test_a_small_part_of_a_link(text: str) -> None:
    assert found_in(text) == [("bandwidth-low", "warning", "node")]
    assert "PCIe" in report_of(text).findings[0].message


@pytest.mark.parametrize(
    ("text", "low"),
    [
        ("PCIe 4.0 x16 gives 31.5 GB/s in theory, but I measured 26.8 GB/s.", False),
        (
            "PCIe 4.0 x16 gives 31.5 GB/s in theory, but I measured 13.1 GB/s.",
            True,
        ),  # 8 lanes, or the generation before
        ("Would PCIe 3.0 x4 give 3.9 GB/s, more than the 0.4 GB/s that we get?", False),
    ],
)
def test_a_part_of_a_link(text: str, low: bool) -> None:
    assert found_in(text) == low * _LOW


@pytest.mark.parametrize(
    ("text", "low"),
    [
        ("The speed I was getting was 410 MB/s, which is way less than it should be.", True),
        ("ib_write_bw shows 91 Gb/s, slower than we expected.", True),
        ("It reads 1.2 GB/s, much lower than advertised.", True),
        ("It reads 7.1 GB/s, not less than it should.", False),
        ("It reads 7.1 GB/s, more than it should.", False),
    ],
)
def test_less_than_it_should_be(text: str, low: bool) -> None:
    assert found_in(text) == low * _LOW


@pytest.mark.parametrize("links", [("PCIe 5.0 x16", 63), ("PCIe 4.0 x16", 32), ("PCIe Gen3 x16", 16)])
@pytest.mark.parametrize(
    "behind",
    [
        "but the network only reaches {low} GB/s.",
        "but my NVMe can only reach {low} GB/s.",
        "but a small 8 KB copy only gets {low} GB/s, as expected.",
        "that is more than the {low} GB/s I was getting before I moved the card.",
        "but the NFS share only gets {low} GB/s.",
        "but we only get {low} GB/s from the disk.",
        "yet I measured {low} GB/s, which should be enough.",
    ],
)
def test_another_thing_than_the_link_limits_the_rate(links: tuple[str, int], behind: str) -> None:
    for low in (0.37, 1, 2.5):
        for verb in ("gives", "should give", "offers"):
            assert found_in(f"{links[0]} {verb} {links[1]} GB/s, {behind.format(low=low)}") == []


@pytest.mark.parametrize(
    "text",
    [
        "On bare metal I get {a} GB/s. In the VM the memory bandwidth is {b} GB/s.",
        "On bare metal all_reduce shows {a} GB/s. In the VM the NFS mount gives {b} GB/s.",
        "On bare metal I get {a} GB/s. In the container the disk reads at {b} GB/s.",
        "On bare metal I get {a} GB/s. The VM should have {b} GB/s.",
    ],
)
def test_another_thing_in_the_second_environment(text: str) -> None:
    for high, low in ((320, 180), (45, 1.5)):
        assert found_in(text.format(a=high, b=low)) == []
