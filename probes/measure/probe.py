"""Probes: active measurements that state their bytes and seconds before they move any data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias

from msgspec import Struct

from ...models.facts.records import Record
from ...models.report import Report
from ..host.host import Host

# passive moves no data, quick is short enough to run before a job, full measures all paths.
Effort: TypeAlias = Literal["passive", "quick", "full"]


class Probe(Struct, frozen=True, kw_only=True):
    """One call (calls/registry.py) that moves bytes, and its cost on a healthy machine."""

    name: str  # of the call: "host_copy"
    args: tuple[str, ...]
    kinds: frozenset[tuple[str, ...]]  # device kinds of the ends of its flows: {("numa", "gpu"), ("gpu", "numa")}
    seconds: float
    bytes: int
    deadline: float  # seconds after which its process is killed

    @property
    def call(self) -> tuple[str, ...]:
        """Its name and arguments. Captures show them."""
        return self.name, *self.args

    def __call__(self, host: Host) -> Iterator[Record]:
        """Yield the measurement; for a recorded machine the recorded one."""
        yield from host.call(self.name, *self.args, deadline=self.deadline)


class Scope(Struct, frozen=True, kw_only=True):
    """What a run measures: the requested effort, devices and targets."""

    effort: Effort = "quick"
    ends: frozenset[str]  # device IDs: flows without any of them as an end are left out
    mounts: tuple[str, ...] = ()  # folders on network and cloud disks that may be read
    write_to: str | None = None  # folder in which a test file may be written
    owned: bool = False  # the caller owns the GPUs: contexts may be created on GPUs in exclusive mode
    peers: tuple[str, ...] = ()  # machines on which the same tools run as servers; traffic crosses the network
    again: frozenset[frozenset[tuple[str, ...]]] | None = None  # only runs with exactly these ends; None: all
    rounds: int = 1  # how many times the runs are measured, one round after the other


Plan: TypeAlias = Callable[[Report, Scope], Iterator[Probe]]  # yields the probes of one kind, most useful first
