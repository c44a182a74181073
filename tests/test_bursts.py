"""Work that rests now and then."""

from __future__ import annotations

import time

from linkgauge.agent.bursts import in_bursts

BURST = 0.01  # seconds


def work(seconds: float) -> None:
    """Keep a processor for so long."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def test_rests_come_with_the_work() -> None:
    """As many as there were bursts: however many steps they had."""
    used: list[float] = []
    step = in_bursts(lambda: used.append(time.process_time()))
    began = time.process_time()
    for _ in range(400):
        work(BURST / 20)
        step()
    bursts = [later - earlier for earlier, later in zip([began, *used], used, strict=False)]
    assert 4 <= len(used) <= 20  # of 0.2 s; a step that takes long makes a burst longer, and another less
    assert min(bursts) >= BURST


def test_without_work_no_rest() -> None:
    rests: list[None] = []
    step = in_bursts(lambda: rests.append(None))
    for _ in range(100):
        step()
    assert len(rests) <= 1  # were this machine to stand still for a second


def test_who_waits_is_told_of() -> None:
    """A source that hangs takes no processor, and systemd's watchdog wants to hear something all the same."""
    rests: list[None] = []
    step = in_bursts(lambda: rests.append(None))
    time.sleep(1.1)
    step()
    step()
    assert len(rests) == 1
