"""The JSON lines of the NCCL Inspector, formats v4.0 to v4.3 (NVIDIA/nccl, plugins/profiler/inspector).

Up to v4.2 each line has the communicator and the process. From v4.3 on a `dump_stats` line has them, and as many lines
as it counts belong to it. A damaged line ends such a batch: the rest could be of another communicator.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

import msgspec
from msgspec import Struct, field

from ...models.jobs.log import STEPS, Communicator, JobLog, Kind, Member

OPS = {
    "AllReduce": "all_reduce",
    "AllGather": "all_gather",
    "ReduceScatter": "reduce_scatter",
    "Broadcast": "broadcast",
    "Reduce": "reduce",
    "AlltoAll": "alltoall",
    "AllToAll": "alltoall",
    "Send": "send",
    "Recv": "recv",
}
ALGORITHMS = ("RING", "TREE", "NVLS", "NVLS_TREE", "COLLNET_DIRECT", "COLLNET_CHAIN", "PAT")
PROTOCOLS = ("LL", "LL128", "SIMPLE")
_OWN_CONTEXT = ("v4.0", "v4.1", "v4.2")
_TRUSTED = ("kernel_gpu", "")  # the first formats have no timing source
_LONGEST = 3600e6  # microseconds of an operation; watchdogs end a job earlier
_LARGEST = 1 << 50  # bytes of a message
_LARGEST_NUMBER = 1 << 63
_MOST_RANKS = 1 << 20
FULL = "lines of ranks beyond the number that is kept"
_NAME = 80  # characters of a name that are kept


class _Header(Struct):
    id: str | int
    rank: int
    n_ranks: int
    nnodes: int | None = None
    comm_name: str | None = None


class _Metadata(Struct):
    hostname: str
    pid: int
    inspector_output_format_version: str = ""
    dump_timestamp_us: float = 0.0


class _Collective(Struct):
    coll: str
    coll_sn: int
    coll_msg_size_bytes: int
    coll_exec_time_us: float
    coll_algo: str = ""
    coll_proto: str = ""
    coll_timing_source: str = ""


class _Peer(Struct):
    p2p: str
    p2p_sn: int
    p2p_peer: int
    p2p_msg_size_bytes: int
    p2p_exec_time_us: float
    p2p_timing_source: str = ""


class _Stats(Struct):
    coll_records: int = 0
    p2p_records: int = 0
    proxy_records: int = 0
    coll_dropped_since_last_dump: int = 0
    p2p_dropped_since_last_dump: int = 0


class _Line(Struct):
    header: _Header | None = None
    metadata: _Metadata | None = None
    coll_perf: _Collective | None = None
    p2p_perf: _Peer | None = None
    dump_stats: _Stats | None = None
    proxy_trace: msgspec.Raw = field(default_factory=msgspec.Raw)


_decode = msgspec.json.Decoder(_Line).decode


class LinesReader:
    """Adds the lines of one file to a log. Each file needs its own reader."""

    def __init__(self, log: JobLog) -> None:
        self._log = log
        self._batch: tuple[Communicator, Member, float] | None = None
        self._left = 0  # lines of the batch

    def read(self, lines: Iterable[bytes]) -> None:
        """Add whole lines."""
        log = self._log
        for line in lines:
            if not line.strip():
                continue
            log.lines += 1
            try:
                self._add(_decode(line))
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                log.problems["damaged lines"] += 1
                self._end_of_batch()
                self._batch = None

    def end(self) -> None:
        """The file has no more lines."""
        self._end_of_batch()

    def _end_of_batch(self) -> None:
        if self._left > 0:
            self._log.problems["announced lines that are missing or follow a damaged line"] += self._left
        self._left = 0

    def _add(self, line: _Line) -> None:
        if line.dump_stats is not None:
            self._begin(line, line.dump_stats)
            return
        where = self._where(line)
        if where is None:
            return
        communicator, member, at = where
        if (one := line.coll_perf) is not None:
            values = one.coll, one.coll_algo, one.coll_proto, one.coll_msg_size_bytes, -1
            self._time(member, one.coll_sn, values, one.coll_exec_time_us, one.coll_timing_source)
            if at and communicator.members.get(0) is member:
                communicator.mark(one.coll_sn, at)
        elif (two := line.p2p_perf) is not None:
            if not 0 <= two.p2p_peer < communicator.n_ranks:
                self._log.problems["lines with a rank that its communicator does not have"] += 1
                return
            values = two.p2p, "", "", two.p2p_msg_size_bytes, two.p2p_peer
            self._time(member, two.p2p_sn, values, two.p2p_exec_time_us, two.p2p_timing_source)

    def _begin(self, line: _Line, stats: _Stats) -> None:
        """A dump_stats line. Up to v4.2 it only counts."""
        self._end_of_batch()
        self._batch = None
        lost = stats.coll_dropped_since_last_dump + stats.p2p_dropped_since_last_dump
        if lost > 0:
            self._log.problems["operations that the ranks did not write, because their buffers were full"] += lost
        if line.header is None or line.metadata is None:
            self._log.problems["lines without a communicator"] += 1
            return
        known = self._known(line.header, line.metadata)
        if known and line.metadata.inspector_output_format_version not in _OWN_CONTEXT:
            self._batch = known
            self._left = max(0, stats.coll_records) + max(0, stats.p2p_records) + max(0, stats.proxy_records)

    def _where(self, line: _Line) -> tuple[Communicator, Member, float] | None:
        if line.header is not None and line.metadata is not None:
            return self._known(line.header, line.metadata)
        if self._batch is not None and self._left > 0:
            self._left -= 1
            return self._batch
        self._log.problems["lines without a communicator"] += 1
        return None

    def _known(self, header: _Header, metadata: _Metadata) -> tuple[Communicator, Member, float] | None:
        log = self._log
        at = metadata.dump_timestamp_us / 1e6
        if not (0 <= header.rank < header.n_ranks <= _MOST_RANKS):
            log.problems["lines with a rank that its communicator does not have"] += 1
            return None
        name = None if header.comm_name in (None, "", "unknown") else header.comm_name[:_NAME]
        found = log.communicator_of(str(header.id)[:_NAME], header.n_ranks, header.nnodes, name)
        member = self._member(found, header.rank, metadata) if found and header.n_ranks == found.n_ranks else None
        if found is not None and header.n_ranks != found.n_ranks:
            found.inconsistent = True
            log.problems["lines whose n_ranks differs from that of other lines of the communicator"] += 1
        if found is None:
            log.problems[FULL] += 1
        if found is None or member is None:
            return None
        if 0 < at < 1e11:
            log.seen_at(member.host, at)
        return found, member, at

    def _member(self, communicator: Communicator, rank: int, metadata: _Metadata) -> Member | None:
        host, process = metadata.hostname[:_NAME], f"pid {metadata.pid}"
        member = communicator.members.get(rank)
        if member is None:
            self._log.seen_version(metadata.inspector_output_format_version[:_NAME])
            member = self._log.member_of(communicator, rank, host, process)
            if member is None:
                self._log.problems[FULL] += 1
        elif member.process != process or member.host != host:
            member.duplicate = True
            self._log.problems["lines of a rank that another process has too"] += 1
            return None
        return member

    def _time(
        self, member: Member, number: int, values: tuple[str, str, str, int, int], time: float, timed_by: str
    ) -> None:
        log = self._log
        if timed_by not in _TRUSTED:
            log.problems["operations whose time is of the CPU, not of the GPU"] += 1
            return
        if not 0 < time < _LONGEST or not 0 <= number < _LARGEST_NUMBER or not 0 < values[3] < _LARGEST:
            log.problems["operations with an impossible time, size or number"] += 1
            return
        kind = kind_of(*values)
        if kind is None:
            log.problems["operations of an unknown name"] += 1
            return
        series = log.series_of(member, kind)
        if series is None:
            log.problems["operations beyond the number of kinds that are kept"] += 1
            return
        series.add(number, time * (kind.size / values[3]), log.depth)


@lru_cache(maxsize=4096)
def kind_of(op: str, algorithm: str, protocol: str, size: int, peer: int) -> Kind | None:
    """The kind of an operation in the Inspector's words. None: its name is unknown."""
    known = OPS.get(op)
    if known is None:
        return None
    algorithm, protocol = algorithm.upper(), protocol.upper()
    return Kind(
        known,
        algorithm if algorithm in ALGORITHMS else "",
        protocol if protocol in PROTOCOLS else "",
        round(math.log2(size) * STEPS),
        peer,
    )
