"""Sources that run in a separate thread, on machines whose files never answer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, suppress

import psutil
import pytest

from linkgauge.agent.pipeline.hang_guard import HangGuard, collect_all
from linkgauge.agent.pipeline.source import Source
from linkgauge.models.facts.machine import Mount, Node
from linkgauge.models.facts.records import NotChecked, Record, Run
from linkgauge.probes.calls.timeouts import hung
from linkgauge.probes.calls.worker import Workers
from linkgauge.probes.host.host import Host, Unreadable
from linkgauge.probes.host.recorded import Recorded
from tests.support.mounts import needs_proc
from tests.support.nodes.trees import tree
from tests.support.waiting import until

SLOW = "sys/class/net/eth0/speed"
PATIENCE = 0.5  # seconds; on a busy machine a thread may wait for a processor longer than for a file
FILES = {SLOW: "100000", "proc/version": "Linux", "etc/hostname": "n1"}


class Hanging(Recorded):
    """A machine with one file that answers only after the test allows it."""

    def __init__(self) -> None:
        super().__init__(1000, tree(FILES).entries)
        self.origin = "live"
        self.may = threading.Event()
        self.asked: list[str] = []

    def read(self, path: str) -> str | None:
        self.asked.append(path)
        if path == SLOW:
            self.may.wait()
        return super().read(path)

    def call(self, what: str, *args: str, deadline: float) -> Iterator[Record]:
        self.asked.append(what)
        return super().call(what, *args, deadline=deadline)


@pytest.fixture
def host() -> Iterator[Hanging]:
    one = Hanging()
    yield one
    one.may.set()


@pytest.fixture
def hang_guard() -> Iterator[HangGuard]:
    with closing(HangGuard(PATIENCE)) as one:
        yield one


def read_first(host: Host) -> Iterator[Record]:
    yield Node(key="node", kernel=host.read("proc/version"))


def read_ports(host: Host) -> Iterator[Record]:
    yield Node(key="node", hostname=host.read("etc/hostname"))
    yield Node(key="node", kernel=host.read(SLOW))


def read_broken(host: Host) -> Iterator[Record]:
    yield Node(key="node", hostname=host.read("etc/hostname"))
    raise RuntimeError("a bug")


FIRST, PORTS = Source("first", read_first), Source("ports", read_ports)
SOURCES = (FIRST, PORTS, Source("broken", read_broken))


def facts(records: tuple[Record, ...]) -> list[tuple[str | None, str | None]]:
    return [(one.hostname, one.kernel) for one in records if isinstance(one, Node)]


def gaps(records: tuple[Record, ...]) -> list[NotChecked]:
    return [one for one in records if isinstance(one, NotChecked)]


def test_a_file_that_never_answers_does_not_block(hang_guard: HangGuard, host: Hanging) -> None:
    """Records from before the hang stay, and the sources behind it are read."""
    collected = hang_guard.collect(SOURCES, host)
    assert list(collected) == ["first", "ports", "broken"]
    assert facts(collected["first"]) == [(None, "Linux")]
    assert facts(collected["ports"]) == facts(collected["broken"]) == [("n1", None)]
    (gap,) = gaps(collected["ports"])
    assert (gap.what, gap.subject, gap.why) == ("ports", "node", f"{SLOW}: no answer within 0.5 s")
    assert hung(gap)
    assert gap.how
    assert [one.ok for records in collected.values() for one in records if isinstance(one, Run)] == [True, False, False]


def test_it_is_asked_again_once_it_has_answered(hang_guard: HangGuard, host: Hanging) -> None:
    hang_guard.collect(SOURCES, host)
    assert hang_guard.stuck == 1
    again = hang_guard.collect(SOURCES, host)
    assert host.asked.count(SLOW) == 1  # it is never in flight twice
    assert [(one.why, hung(one)) for one in gaps(again["ports"])] == [
        ("ports, asked before, still hangs in the kernel", True)
    ]
    assert facts(again["first"]) == [(None, "Linux")]
    host.may.set()
    until(lambda: not hang_guard.stuck)
    assert facts(hang_guard.collect(SOURCES, host)["ports"]) == [("n1", None), (None, "100000")]


def read_others(host: Host) -> Iterator[Record]:
    for path in (SLOW, f"{SLOW}/below", f"{SLOW}er"):
        try:
            text = host.read(path)
        except Unreadable as refused:
            text = refused.why
        yield Node(key="node", kernel=text)


def test_other_sources_do_not_read_a_hanging_file(hang_guard: HangGuard, host: Hanging) -> None:
    """The thread reads no files below it. It reads its neighbours."""
    collected = hang_guard.collect((PORTS, Source("others", read_others)), host)
    why = f"{SLOW}, asked before, still hangs in the kernel"
    assert facts(collected["others"]) == [(None, why), (None, why), (None, None)]
    assert (hang_guard.stuck, host.asked.count(SLOW)) == (1, 1)


def read_much(host: Host) -> Iterator[Record]:
    with suppress(Exception):
        host.read(SLOW)
    yield from host.call("statvfs", "/", deadline=60)
    host.read("etc/hostname")
    yield from ()


def test_a_thread_that_wakes_up_late_asks_nothing_more(
    hang_guard: HangGuard, host: Hanging, caplog: pytest.LogCaptureFixture
) -> None:
    """By then another thread reads the sources behind it, with the same child processes."""
    hang_guard.collect((Source("much", read_much), FIRST), host)
    host.may.set()
    until(lambda: not hang_guard.stuck)
    assert host.asked == [SLOW, "proc/version"]
    assert caplog.records == []


class Calling(Hanging):
    """Persistent child processes answer the calls."""

    def __init__(self) -> None:
        super().__init__()
        self.workers = Workers()

    def call(self, what: str, *args: str, deadline: float) -> Iterator[Record]:
        return self.workers.call(what, args, deadline)


def read_space(host: Host) -> Iterator[Record]:
    yield from host.call("statvfs", "/", deadline=60)


@needs_proc
def test_children_outlive_the_asking() -> None:
    """The kernel ends the children with the thread that started them, so this thread must stay."""
    host, hang_guard = Calling(), HangGuard()
    try:
        seen = []
        for _ in range(2):
            (space,) = (
                one
                for one in hang_guard.collect((Source("space", read_space),), host)["space"]
                if isinstance(one, Mount)
            )
            assert space.free
            seen.append([child.pid for child in psutil.Process().children() if child.is_running()])
        assert seen[0] == seen[1] != []
    finally:
        host.workers.close()
        hang_guard.close()


def test_all_at_once(host: Hanging) -> None:
    records = tuple(collect_all([PORTS, FIRST], host, PATIENCE))
    assert facts(records) == [("n1", None), (None, "Linux")]
    assert [one.why for one in gaps(records)] == [f"{SLOW}: no answer within 0.5 s"]
