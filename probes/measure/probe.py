"""What may be measured: a probe says what it would move and how long it would take before anything moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ...models.facts.records import Record
from ...models.report import Report
from ..host.host import Host

# Nothing moves; what a job can wait for; every way there is.
Effort: TypeAlias = Literal["passive", "quick", "full"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One call (call_registry.py) that moves bytes, and what it costs where all is well."""

    name: str  # of the call: "host_copy"
    args: tuple[str, ...]
    kinds: frozenset[tuple[str, ...]]  # of the ends of the flows that it measures: {("numa", "gpu"), ("gpu", "numa")}
    seconds: float
    bytes: int
    deadline: float  # seconds after which its process is killed

    def __call__(self, host: Host) -> Iterator[Record]:
        """What it measures; with a recorded machine what it measured then."""
        yield from host.call(self.name, *self.args, deadline=self.deadline)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be measured."""

    effort: Effort = "quick"
    ends: frozenset[str]  # ids of devices: flows that end at none of them are left out
    mounts: tuple[str, ...] = ()  # file systems of network and cloud disks that may be read
    write_to: str | None = None  # the folder in which a file may be written
    owned: bool = False  # the GPUs are the caller's: contexts may be made on those in exclusive mode
    peers: tuple[str, ...] = ()  # machines at which the same tools wait as servers: traffic crosses the network


Plan: TypeAlias = Callable[[Report, Wanted], Iterator[Probe]]  # the probes of one kind, in the order of their worth
