"""Private words of the kernel log, and the lines of drivers that stay as they are."""

from __future__ import annotations

from linkgauge.models.facts.machine import Event
from linkgauge.probes.kernel_log.patterns import event_of
from linkgauge.probes.kernel_log.private_words import without_private_words


def test_private_words_of_a_line_have_stand_ins_and_its_device_has_its_name() -> None:
    lines = (
        "NVRM: Xid (PCI:0000:53:00): 31, pid=7, name=wonka train, Ch 00000008",
        "ice 0000:1a:00.0 wonka0: NIC Link is Down, serial S6CKNT0W700868, 10.1.2.3",
        "ice 0000:1a:00.1 wonka1: NIC Link is Down, serial S6CKNT0W700868 of wonka0",
    )
    events = [event for line in lines if isinstance(event := event_of(line), Event)]
    assert [one.text for one in without_private_words(events)] == [
        "NVRM: Xid (PCI:0000:53:00): 31, pid=7, name=some-program-1, Ch 00000008",
        "ice 0000:1a:00.0 wonka0: NIC Link is Down, serial some-word-1, 198.18.0.1",
        "ice 0000:1a:00.1 wonka1: NIC Link is Down, serial some-word-1 of some-word-2",
    ]
