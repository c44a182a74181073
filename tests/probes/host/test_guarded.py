"""Files that are not read, because a driver always refuses them or the kernel logs their readers."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from linkgauge.models.facts.records import Record
from linkgauge.models.report import Origin
from linkgauge.probes.host.entries import Link, UnreadableFile
from linkgauge.probes.host.guarded import Guarded
from linkgauge.probes.host.host import Host, Unreadable
from tests.support.nodes.trees import tree

COUNTER = "sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error"
SPEED = "sys/class/net/eth0/speed"
REFUSED = UnreadableFile(errno.EINVAL, "Invalid argument")


@dataclass
class Complaining:
    """A machine whose kernel logs who reads some files."""

    host: Host
    log: Path
    of: frozenset[str]
    reads: list[str] = field(default_factory=list)
    origin: Origin = "live"

    def read(self, path: str) -> str | None:
        self.reads.append(path)
        if path in self.of:
            with self.log.open("a") as log:
                log.write(f"3,9,100,-;mlx5_core 0000:d2:00.0: mlx5_cmd_out_err:838:(pid {os.getpid()}): ACCESS_REG\n")
        return self.host.read(path)

    def list(self, path: str) -> list[str]:
        return self.host.list(path)

    def resolve(self, path: str) -> str | None:
        return self.host.resolve(path)

    def call(self, what: str, *args: str, deadline: float) -> Iterator[Record]:
        return self.host.call(what, *args, deadline=deadline)

    def now(self) -> float:
        return self.host.now()


@pytest.fixture
def guarded() -> Iterator[Callable[[Host, Path], Guarded]]:
    """Hosts that read a log of the kernel, which they close."""
    with ExitStack() as stack:
        yield lambda host, log: stack.enter_context(closing(Guarded(host, str(log))))


def test_a_counter_that_is_refused_is_asked_once(tmp_path: Path) -> None:
    machine = Complaining(tree({COUNTER: REFUSED, SPEED: REFUSED}), tmp_path / "kmsg", frozenset())
    host = Guarded(machine, str(tmp_path / "none"))
    for _ in range(3):
        for path in (COUNTER, SPEED):
            with pytest.raises(Unreadable, match="Invalid argument"):
                host.read(path)
    assert machine.reads == [COUNTER, SPEED, SPEED, SPEED]  # a port that is down may come up


def test_a_file_of_which_the_kernel_complains(tmp_path: Path, guarded: Callable[[Host, Path], Guarded]) -> None:
    (tmp_path / "kmsg").touch()
    files = {f"sys/a{number}": f"{number}" for number in range(4)}
    machine = Complaining(tree(files), tmp_path / "kmsg", frozenset({"sys/a2"}))
    host = guarded(machine, tmp_path / "kmsg")
    assert [host.read(path) for path in files] == ["0", "1", "2", "3"]
    host.look()
    assert [host.read(path) for path in files] == ["0", "1", "2", "3"]  # by which it is found
    host.look()
    assert [host.read(path) for path in files if path != "sys/a2"] == ["0", "1", "3"]
    with pytest.raises(Unreadable, match="caused a complaint"):
        host.read("sys/a2")
    assert machine.reads.count("sys/a2") == 2


def test_complaints_about_others(tmp_path: Path, guarded: Callable[[Host, Path], Guarded]) -> None:
    log = tmp_path / "kmsg"
    log.write_text(f"3,1,1,-;before (pid {os.getpid()})\n")  # by an earlier one of this number
    machine = Complaining(tree({"sys/a": "0"}), log, frozenset())
    host = guarded(machine, log)
    for _ in range(3):
        assert host.read("sys/a") == "0"
        with log.open("a") as more:
            more.write("3,2,2,-;mlx5_cmd_out_err:838:(pid 1): ACCESS_REG\n\0\xff\n")
        host.look()
    assert (host.list("sys"), host.resolve("sys/a"), host.now(), host.origin) == (["a"], "sys/a", 1000, "live")


def test_where_links_lead_is_asked_until_devices_come_or_go(tmp_path: Path) -> None:
    link = "sys/bus/pci/devices/0000:01:00.0"
    places = [f"sys/devices/pci0000:00/0000:00:0{port}.0/0000:01:00.0" for port in (1, 2)]
    first, second = (tree({link: Link(f"../../../{place[4:]}"), f"{place}/vendor": "0x10de"}) for place in places)
    machine = Complaining(tree({}), tmp_path / "kmsg", frozenset())
    host = Guarded(machine, str(tmp_path / "none"))
    assert host.resolve(link) is None
    machine.host = first
    assert host.resolve(link) == places[0]  # what was not there is looked for again
    machine.host = second
    assert host.resolve(link) == places[0]
    host.forget()
    assert host.resolve(link) == places[1]


def test_what_may_go_without_a_sign_is_asked_each_time(tmp_path: Path) -> None:
    """A module of the kernel: no device need come or go with it."""
    module = "sys/module/nvidia_peermem"
    machine = Complaining(tree({f"{module}/refcnt": "0"}), tmp_path / "kmsg", frozenset())
    host = Guarded(machine, str(tmp_path / "none"))
    assert host.resolve(module) == module
    machine.host = tree({})
    assert host.resolve(module) is None
