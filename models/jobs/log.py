"""What the ranks of a job recorded of their operations, reduced while it is read: memory does not grow with its lines.

Each series keeps the times of at most `depth` operations. The number of the operation selects them, so all ranks of a
communicator keep the times of the same operations, and these can be compared rank by rank.
"""

from __future__ import annotations

from array import array
from collections import Counter
from sys import intern
from typing import NamedTuple

from msgspec import Struct, field

DEPTH = 64  # times of one series: their median has a standard error of 1.6 % at a scatter of 10 %
_ALL = 1 << 32
_MANY = 40_000  # series from which on the depth is halved, again at each doubling: it bounds the memory
_SHALLOWEST = 8
MOST_SERIES = 200_000  # of a log; a job of 16,384 ranks has about ten per rank
MOST_MEMBERS = 100_000  # of a log; a job of 16,384 ranks has about five communicators per rank
_MOST_NAMES = 20  # versions, and numbers of jobs
_MOST_MARKS = 64  # times of dumps that a communicator keeps
STEPS = 4  # size classes in each power of two


class Kind(NamedTuple):
    """Operations whose times can be compared. `size_class` is the logarithm of the message size in quarters of 2."""

    op: str  # all_reduce, all_gather, reduce_scatter, broadcast, reduce, alltoall, send, recv
    algorithm: str  # RING, TREE, NVLS ..., or ""
    protocol: str  # LL, LL128, SIMPLE, or ""
    size_class: int
    peer: int = -1  # rank at the other end of a send or recv

    @property
    def size(self) -> int:
        """The message size that the times of the class are scaled to, in bytes."""
        return round(2 ** (self.size_class / STEPS))


class Series(Struct):
    """Times of one kind of operation of one rank, in microseconds at the size of the class."""

    count: int = 0
    limit: int = _ALL
    numbers: array[int] = field(default_factory=lambda: array("Q"))
    times: array[float] = field(default_factory=lambda: array("f"))

    def add(self, number: int, time: float, depth: int) -> None:
        """Add the time of the operation with this number."""
        self.count += 1
        if self.limit == _ALL or _mixed(number) < self.limit:
            self.numbers.append(number)
            self.times.append(time)
            while len(self.numbers) > depth and self.limit > 1:
                self._halve()

    def _halve(self) -> None:
        self.limit >>= 1
        kept = [index for index, number in enumerate(self.numbers) if _mixed(number) < self.limit]
        self.numbers = array("Q", [self.numbers[index] for index in kept])
        self.times = array("f", [self.times[index] for index in kept])


def _mixed(number: int) -> int:
    """A number below 2^32 that looks random. Operations repeat in steps: every n-th one would be of the same layer."""
    mixed = (number ^ (number >> 15)) * 0x9E3779B1 & 0xFFFFFFFF
    mixed = (mixed ^ (mixed >> 13)) * 0x85EBCA77 & 0xFFFFFFFF
    return mixed ^ (mixed >> 16)


class Member(Struct):
    """One rank of a communicator: the process that recorded it, and its series."""

    host: str
    process: str  # "pid 1639453", or the UUID of the GPU
    gpu: str | None = None  # "GPU0", from the Prometheus text
    series: dict[Kind, Series] = field(default_factory=dict)
    duplicate: bool = False  # two processes say that they are this rank


class Communicator(Struct):
    """The ranks that run collectives together."""

    id: str
    n_ranks: int
    n_nodes: int | None = None
    name: str | None = None
    members: dict[int, Member] = field(default_factory=dict)
    inconsistent: bool = False  # its lines differ in n_ranks
    marks: list[tuple[int, float]] = field(default_factory=list)  # number of an operation, and a time after it

    def mark(self, number: int, at: float) -> None:
        """Note that the operation was complete at this time, in seconds since 1970."""
        if not self.marks or at > self.marks[-1][1]:
            self.marks.append((number, at))
            if len(self.marks) > _MOST_MARKS:
                del self.marks[1::2]

    def time_before(self, number: int) -> float | None:
        """A time when the operation was not complete yet, in seconds since 1970: of the last dump before it."""
        return next((at for marked, at in reversed(self.marks) if marked < number), None)


class JobLog(Struct):
    """Everything that was read of a job, and what could not be used."""

    communicators: dict[str, Communicator] = field(default_factory=dict)
    problems: Counter[str] = field(default_factory=Counter)  # what -> lines or files
    unread: Counter[str] = field(default_factory=Counter)  # reason -> files and folders that were not read
    versions: set[str] = field(default_factory=set)  # of the format
    jobs: set[str] = field(default_factory=set)  # Slurm's numbers
    clocks: dict[str, tuple[float, float]] = field(default_factory=dict)  # host -> first and last time that it wrote
    averaged: bool = False  # each time is the mean of a window (Prometheus text)
    files: int = 0
    lines: int = 0
    bytes: int = 0
    series: int = 0
    members: int = 0
    depth: int = DEPTH

    def communicator_of(self, key: str, n_ranks: int, n_nodes: int | None, name: str | None) -> Communicator | None:
        """The communicator, a new one if it is the first of its name. None: the log is full."""
        found = self.communicators.get(key)
        if found is None and self.members < MOST_MEMBERS:
            found = self.communicators[key] = Communicator(key, n_ranks, n_nodes, name)
        return found

    def member_of(self, communicator: Communicator, rank: int, host: str, process: str) -> Member | None:
        """Add a rank to a communicator. None: the log is full."""
        if self.members >= MOST_MEMBERS:
            return None
        self.members += 1
        member = communicator.members[rank] = Member(intern(host), intern(process))
        return member

    def series_of(self, member: Member, kind: Kind) -> Series | None:
        """The series of this kind, a new one if it is the first. None: the log is full."""
        found = member.series.get(kind)
        if found is None and self.series < MOST_SERIES:
            found = member.series[kind] = Series()
            self.series += 1
            if self.series > _MANY * DEPTH // self.depth and self.depth > _SHALLOWEST:
                self.depth //= 2
        return found

    def seen_version(self, version: str) -> None:
        """Note the version of the format."""
        if version and len(self.versions) < _MOST_NAMES:
            self.versions.add(version)

    def seen_job(self, job: str) -> None:
        """Note Slurm's number of the job."""
        if len(self.jobs) < _MOST_NAMES:
            self.jobs.add(job)

    def seen_at(self, host: str, at: float) -> None:
        """Note the clock of a host, in seconds since 1970."""
        first, last = self.clocks.get(host, (at, at))
        self.clocks[host] = min(first, at), max(last, at)
