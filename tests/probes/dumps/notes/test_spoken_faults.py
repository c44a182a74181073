"""Faults that people state in sentences and tables of their own, and sentences that state none."""

from __future__ import annotations

import pytest

from tests.support.texts import found_in

NARROW = (
    "My {card} runs at x{now} instead of x{most}.",
    "Both {card} cards run at x{now} instead of x{most}, any idea?",
    "{card} läuft nur mit x{now} statt x{most}",
    "{card} 显卡只有 x{now},应该是 x{most}",
    "{card} は x{most} なのに x{now} です",
    "The {card} should be x{most} but it is only x{now}",
    "Why is my {card} at x{now} instead of x{most}?",
)
OTHER = (
    "Would a {card} at x{now} instead of x{most} be slower?",
    "If the {card} runs at x{now} instead of x{most}, reseat it.",
    "The {card} was at x{now} instead of x{most}; fixed by reseating.",
    "A {card} at x{now} instead of x{most} is normal on this board",
    "What if a {card} fell off the bus?",
    "No {card} fell off the bus since the update",
)
CARDS = ("RTX 4090", "A100", "RTX 3060 Ti", "Tesla P40")


@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize("sentence", NARROW)
def test_a_link_of_a_card_without_a_number(sentence: str, card: str) -> None:
    for now in (1, 4, 8):
        assert found_in(f"{sentence.format(card=card, now=now, most=16)}\n") == [
            ("pcie-link-narrow", "critical", "gpu")
        ]


@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize("sentence", OTHER)
def test_a_condition_and_the_past_are_no_fault(sentence: str, card: str) -> None:
    assert found_in(f"{sentence.format(card=card, now=8, most=16)}\n") == []


def test_the_output_beside_a_sentence_decides() -> None:
    query = "name, pcie.link.width.current, pcie.link.width.max\nNVIDIA A100 80GB PCIe, {}, 16\n"
    said = "I think my A100 runs at x8 instead of x16\n\n"
    assert found_in(said + query.format(8)) == [("pcie-link-narrow", "critical", "gpu0")]
    assert found_in(said + query.format(16)) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The A100 (GPU1, 0000:07:00.0) fell off the bus.", ("gpu-missing", "critical", "0000:07:00.0")),
        ("the second 4090 keeps falling off the bus", ("gpu-missing", "critical", "node")),
        ("nvidia-smi shows only 7 GPUs, there should be 8", ("gpu-missing", "critical", "node")),
        ("fi_info lists only 15 of the expected 16 EFA interfaces", ("nic-missing", "critical", "node")),
        ("HW Thermal Slowdown: Active on GPU 4", ("gpu-throttled", "warning", "gpu4")),
        ("Xid 94 contained ECC error on GPU 0000:b9:00.0.", ("gpu-xid", "warning", "0000:b9:00.0")),
        ("IOMMU default domain = Translated. This halved the bandwidth.", ("iommu-translation", "warning", "node")),
        ("GPU 0-6 all at 55 GB/s, GPU 7 at 13 GB/s", ("bandwidth-low", "warning", "gpu7")),
    ],
)
def test_sentences(text: str, expected: tuple[str, str, str]) -> None:
    assert expected in found_in(f"{text}\n")


HEADS = (
    ("GPU", "current", "max"),
    ("Slot", "Card", "BDF", "Link now", "Link max"),
    ("#", "Model", "PCI address", "Width (sysfs)", "Max width (sysfs)"),
)


@pytest.mark.parametrize("lanes", ["x{}", "×{}", "**x{}**"])
@pytest.mark.parametrize("head", HEADS)
def test_a_table_with_the_columns_of_its_writer(head: tuple[str, ...], lanes: str) -> None:
    def table(width: int) -> str:
        names = {"GPU": "RTX A6000 `{}`", "BDF": "{}", "PCI address": "{}", "Card": "RTX A6000", "Model": "RTX A6000"}
        rows = []
        for address, now in (("21:00.0", 16), ("41:00.0", 16), ("61:00.0", width)):
            values = {"Slot": "1", "#": "1", **{one: names[one].format(address) for one in names}}
            rows.append([values.get(one) or lanes.format(16 if "max" in one.lower() else now) for one in head])
        return "".join(f"| {' | '.join(row)} |\n" for row in (head, ["---"] * len(head), *rows))

    assert found_in(table(4)) == [("pcie-link-narrow", "critical", "0000:61:00.0")]
    assert found_in(table(16)) == []


def test_a_machine_of_an_alert_is_no_gpu() -> None:
    assert found_in("Annotations: GPU 5 on gpu-113 reported XID 79\n") == [("gpu-xid", "critical", "gpu5")]


@pytest.mark.parametrize(
    ("sentence", "fault"),
    [
        ("We see recurring correctable errors on 0000:c3:00.0", True),
        ("Chronic AER `RxErr` + `BadTLP` on `0000:c3:00.0/1`", True),
        ("No recurring AER errors on 0000:c3:00.0", False),
        ("Intermittent link tests passed on 0000:c3:00.0", False),
        ("Constant AER monitoring on 0000:c3:00.0", False),
        ("Since the reseat there are no more frequent errors on 0000:c3:00.0", False),
    ],
)
def test_bus_errors_of_a_function_in_a_sentence(sentence: str, fault: bool) -> None:
    assert [code for code, _, _ in found_in(f"{sentence}\n")] == ["pcie-errors"] * fault
