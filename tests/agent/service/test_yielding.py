"""Work that yields the processor, with clocks that the test moves."""

from __future__ import annotations

from linkgauge.agent.service.yielding import yield_after_bursts


class Work:
    """The steps of the work, and the times of its rests."""

    def __init__(self) -> None:
        self.worked, self.now = 0.0, 100.0
        self.rests: list[tuple[float, float]] = []
        self._step = yield_after_bursts(
            lambda: self.rests.append((round(self.worked, 3), round(self.now, 3))),
            lambda: self.worked,
            lambda: self.now,
        )

    def step(self, worked: float, waited: float = 0.0) -> None:
        """A step with this processor time and this waiting time in seconds."""
        self.worked += worked
        self.now += worked + waited
        self._step()


def test_rests_come_with_the_work() -> None:
    """Rests depend on the processor time of the work, not on the number of its steps."""
    work = Work()
    for _ in range(10):
        work.step(0.004)
    assert [worked for worked, _ in work.rests] == [0.012, 0.024, 0.036]
    work.step(0.05)  # one that takes long is one burst
    assert [worked for worked, _ in work.rests][3:] == [0.09]


def test_without_work_no_rest() -> None:
    work = Work()
    for _ in range(100):
        work.step(0.0, 0.005)
    assert work.rests == []


def test_rests_while_a_source_hangs() -> None:
    """A hanging source uses no processor time, and systemd's watchdog still needs a signal."""
    work = Work()
    for _ in range(5):
        work.step(0.0, 0.6)
    assert [now for _, now in work.rests] == [101.2, 102.4]
