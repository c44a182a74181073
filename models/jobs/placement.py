"""Where the ranks of a job run: node, GPU, rail and leaf.

The Inspector gives the host and the process of each rank, and the Prometheus text its GPU. A table of the user adds or
replaces GPUs, rails and leaves. Without both, the GPUs of a host have the order of its ranks.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from .log import Communicator, JobLog

COLUMNS = ("rank", "host", "gpu", "rail", "leaf")
_REQUIRED = ("rank", "host", "gpu")
_MOST_ROWS = 1 << 20


class Unit(NamedTuple):
    """One GPU of the job as its process sees it. `position`: of several GPUs of one process."""

    host: str
    process: str
    position: int


class Place(Struct, frozen=True):
    """Where a unit runs. None: not known."""

    host: str
    gpu: int | None = None  # its number on the host
    rail: int | None = None  # the number of its NIC on the host
    leaf: str | None = None


class Row(Struct, frozen=True):
    """A row of the table of ranks, or a process of NCCL's log."""

    rank: int
    host: str
    gpu: int
    rail: int | None = None
    leaf: str | None = None
    process: str | None = None  # "pid 1639453", from the log; a table has ranks only


def read_rows(text: str) -> tuple[Row, ...]:
    """Read a table with the columns rank,host,gpu and, if known, rail,leaf. Raises ValueError with a sentence."""
    reader = csv.reader(line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    try:
        head = [name.strip() for name in next(reader, ())]
        if any(name not in head for name in _REQUIRED) or any(name not in COLUMNS for name in head):
            raise ValueError(f"the first line must be {','.join(COLUMNS)} (rail and leaf may be absent)")
        rows = [
            _row(dict(zip(head, map(str.strip, one), strict=False)), number) for number, one in enumerate(reader, 2)
        ]
    except csv.Error as wrong:
        raise ValueError(str(wrong)) from None
    if len(rows) > _MOST_ROWS or len({row.rank for row in rows}) < len(rows):
        raise ValueError("two lines have the same rank" if len(rows) <= _MOST_ROWS else "too many lines")
    return tuple(rows)


def _row(values: Mapping[str, str], number: int) -> Row:
    numbers = {name: int(text) for name in ("rank", "gpu", "rail") if (text := values.get(name, "")).isdecimal()}
    if not values.get("host") or not {"rank", "gpu"} <= numbers.keys():
        raise ValueError(f"line {number} has no rank, host and number of a GPU")
    return Row(numbers["rank"], values["host"], numbers["gpu"], numbers.get("rail"), values.get("leaf") or None)


def units_of(communicator: Communicator) -> Mapping[int, Unit]:
    """The unit of each rank."""
    seen = defaultdict[tuple[str, str], int](int)
    found = {}
    for rank, member in sorted(communicator.members.items()):
        key = member.host, member.process
        found[rank] = Unit(*key, seen[key])
        seen[key] += 1
    return found


def places_of(log: JobLog, rows: Sequence[Row] = ()) -> Mapping[Unit, Place]:
    """The place of each unit."""
    units = {one.id: units_of(one) for one in log.communicators.values()}
    by_host = defaultdict[str, dict[Unit, None]](dict)
    for one in units.values():
        for unit in one.values():
            by_host[unit.host][unit] = None
    ordered = _ordered(by_host, log, units)
    gpus = {unit: gpu for host in by_host for gpu, unit in enumerate(ordered[host])}
    gpus |= _labelled(log, units)
    rows = _with_full_names(rows, by_host)
    leaves = {row.host: row.leaf for row in rows}
    rails = {(row.host, row.gpu): row.rail for row in rows}
    gpus |= {unit: row.gpu for unit, row in _given(log, units, rows)}
    found = {}
    for unit, gpu in gpus.items():
        rail = rails.get((unit.host, gpu))
        found[unit] = Place(unit.host, gpu, gpu if rail is None else rail, leaves.get(unit.host))
    return found


def _ordered(
    by_host: Mapping[str, Collection[Unit]], log: JobLog, units: Mapping[str, Mapping[int, Unit]]
) -> Mapping[str, Sequence[Unit]]:
    """The units of each host in the order of their ranks in the largest communicator that has all of them.

    If none has, in the order of the processes.
    """
    found: dict[str, Sequence[Unit]] = {}
    for one in sorted(log.communicators.values(), key=lambda one: (-len(one.members), one.id)):
        own = defaultdict[str, list[Unit]](list)
        for unit in units[one.id].values():
            own[unit.host].append(unit)
        found |= {
            host: ranked for host, ranked in own.items() if host not in found and len(ranked) == len(by_host[host])
        }
    rest = {host: sorted(own, key=lambda unit: (len(unit.process), unit)) for host, own in by_host.items()}
    return rest | found


def _labelled(log: JobLog, units: Mapping[str, Mapping[int, Unit]]) -> dict[Unit, int]:
    """The GPUs that the Prometheus text names."""
    return {
        units[one.id][rank]: int(member.gpu[3:])
        for one in log.communicators.values()
        for rank, member in one.members.items()
        if member.gpu and member.gpu.startswith("GPU") and member.gpu[3:6].isdecimal()
    }


def _with_full_names(rows: Sequence[Row], hosts: Collection[str]) -> Sequence[Row]:
    """NCCL's log has the names of hosts without their domain, the Inspector has whole names."""
    full = {host.partition(".")[0]: host for host in hosts}
    return [replace(row, host=full.get(row.host, row.host)) if row.process else row for row in rows]


def _given(log: JobLog, units: Mapping[str, Mapping[int, Unit]], rows: Sequence[Row]) -> Iterator[tuple[Unit, Row]]:
    """The rows of units. The ranks of the table are those of the communicator that has as many ranks."""
    by_process = {(row.host, row.process): row for row in rows if row.process}
    by_rank = {row.rank: row for row in rows if not row.process}
    for one in log.communicators.values():
        for rank, unit in units[one.id].items():
            if (row := by_process.get((unit.host, unit.process))) is not None:
                yield unit, row
            elif one.n_ranks == len(by_rank) and rank in by_rank and by_rank[rank].host == unit.host:
                yield unit, by_rank[rank]
