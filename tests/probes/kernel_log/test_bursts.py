"""Bursts of equal lines of the kernel log within a day."""

from __future__ import annotations

import pytest

from linkgauge.probes.kernel_log.patterns import group_events, merged
from linkgauge.probes.kernel_log.ring_buffer import KMSG


@pytest.mark.parametrize(
    ("seconds", "bursts"),
    [
        ([0, 100, 200, 300], 1),  # no silence of three minutes
        ([0, 180, 361], 2),
        ([0, 600, 1200, 1800], 4),
        ([0, 90_000, 90_001], 1),  # the first is older than a day
        ([700, 0, 1400], 3),  # lines of several processors are not in the order of their times
    ],
)
def test_bursts_of_a_day_are_counted(seconds: list[int], bursts: int) -> None:
    text = "NVRM: Xid (PCI:0000:53:00): 79, GPU has fallen off the bus."
    (whole,) = group_events(((1.8e9 + second, text) for second in seconds), KMSG)
    assert whole.bursts == bursts
    parts = [list(group_events([(1.8e9 + second, text)], KMSG)) for second in sorted(seconds)]
    joined = parts[0]
    for part in parts[1:]:
        joined = list(merged(joined, part))
    assert joined[0].count == len(seconds)
    if max(seconds) <= 86_400:
        assert joined[0].bursts == bursts
