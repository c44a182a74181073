"""When each source is read again. The pause after a hang grows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from linkgauge.agent.pipeline.registry import SOURCES, named
from linkgauge.agent.pipeline.source import Interval
from linkgauge.agent.service.schedule import Intervals, LastRun, due, updated_runs
from linkgauge.models.facts.gpu import Driver, Gpu
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import NotChecked, Record
from linkgauge.probes.calls.timeouts import no_answer, stuck

GPUS = named("gpus")
USUAL = Intervals(cycle=15, slow=600, discovery=3600)
LOST = NotChecked(what="Gpu", subject="node", reason=Reason.NO_ANSWER, detail=no_answer(80))


def test_everything_at_first_then_each_in_its_time() -> None:
    assert due(SOURCES, {}, USUAL, 0) == list(SOURCES)
    last_runs = updated_runs({}, {one.name: () for one in SOURCES}, 100)
    asked = {now: {one.interval for one in due(SOURCES, last_runs, USUAL, 100 + now)} for now in (14, 15, 600, 3600)}
    assert asked == {
        14: set(),
        15: {Interval.CYCLE},
        600: {Interval.CYCLE, Interval.SLOW},
        3600: {Interval.CYCLE, Interval.SLOW, Interval.DISCOVERY},
    }
    assert due(SOURCES, last_runs, USUAL, 3700) == list(SOURCES)


def test_a_cycle_that_comes_a_little_early_asks_all_the_same() -> None:
    """Otherwise a source whose interval equals the cycle would be read in every second cycle only."""
    assert due(GPUS, {"gpus": LastRun(at=0)}, USUAL, 14.99)


def test_added_or_removed_devices_make_all_sources_due() -> None:
    last_runs = {"node": LastRun(at=0), "settings": LastRun(at=0), "gpus": LastRun(at=0, hung=1)}
    asked = due(named("node", "settings", "gpus"), last_runs, USUAL, 15, changed=True)
    assert [one.name for one in asked] == ["node", "settings"]  # what hangs does so still


def test_what_hung_is_asked_after_1_5_and_30_minutes() -> None:
    now, last_runs, asked = 0.0, dict[str, LastRun](), list[float]()
    while now <= 8000:
        if due(GPUS, last_runs, USUAL, now):
            asked.append(now)
            last_runs = updated_runs(last_runs, {"gpus": [LOST]}, now)
        now += 15
    assert asked == [0, 60, 360, 2160, 3960, 5760, 7560]
    last_runs = updated_runs(last_runs, {"gpus": []}, 7560)  # it has answered
    assert due(GPUS, last_runs, USUAL, 7575) == list(GPUS)


def test_how_a_source_says_that_it_hung() -> None:
    records: dict[str, Record] = {
        "call": LOST,
        "in the kernel": NotChecked(
            what="Mount.free", subject="node", reason=Reason.NO_ANSWER, detail=stuck("process 17")
        ),
        "through another": NotChecked(
            what="Event",
            subject="node",
            reason=Reason.NO_ANSWER,
            path="dev/kmsg",
            detail=f"no; journal: {no_answer(10)}",
        ),
        "driver": Driver(key="nvidia", failure=no_answer(40), failure_reason=Reason.NO_ANSWER),
        "gpu": Gpu(key="gpu3", failure=no_answer(8), failure_reason=Reason.NO_ANSWER),
        "refused": NotChecked(what="Gpu", subject="node", reason=Reason.DRIVER, detail="Driver Not Loaded"),
        "lost": Gpu(key="gpu3", failure="GPU is lost"),
        "well": Gpu(key="gpu3"),
    }
    last_runs = updated_runs({}, {name: [one] for name, one in records.items()}, 0)
    hung = [name for name, last_run in last_runs.items() if last_run.hung]
    assert hung == ["call", "in the kernel", "through another", "driver", "gpu"]


@given(st.lists(st.tuples(st.integers(1, 4000), st.booleans(), st.booleans()), max_size=60))
def test_what_hung_is_never_asked_within_a_minute(steps: list[tuple[int, bool, bool]]) -> None:
    """For any changes of devices and any length of cycles."""
    now, last_runs, last = 0.0, dict[str, LastRun](), None
    for step, hangs, changed in steps:
        now += step
        if due(GPUS, last_runs, USUAL, now, changed):
            assert last is None or now - last >= 60
            last_runs = updated_runs(last_runs, {"gpus": [LOST] if hangs else []}, now)
            last = now if hangs else None
