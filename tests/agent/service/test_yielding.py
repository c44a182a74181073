"""Work that rests now and then, by clocks that go when they are told to."""

from __future__ import annotations

from linkgauge.agent.service.yielding import yield_after_bursts


class Work:
    """Its steps, and when it rested."""

    def __init__(self) -> None:
        self.worked, self.now = 0.0, 100.0
        self.rests: list[tuple[float, float]] = []
        self._step = yield_after_bursts(
            lambda: self.rests.append((round(self.worked, 3), round(self.now, 3))),
            lambda: self.worked,
            lambda: self.now,
        )

    def step(self, worked: float, waited: float = 0.0) -> None:
        """One that takes so many seconds of a processor, and waits so many besides."""
        self.worked += worked
        self.now += worked + waited
        self._step()


def test_rests_come_with_the_work() -> None:
    """However many steps it has."""
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


def test_who_waits_is_told_of() -> None:
    """A source that hangs takes no processor, and systemd's watchdog wants to hear something all the same."""
    work = Work()
    for _ in range(5):
        work.step(0.0, 0.6)
    assert [now for _, now in work.rests] == [101.2, 102.4]
