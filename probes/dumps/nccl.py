"""Tables of nccl-tests (all_reduce_perf and its siblings): https://github.com/NVIDIA/nccl-tests, src/common.cu."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...models.facts import Gpu
from ...models.said import Evidence, Flow, Observation, Said
from ...models.units import from_gigabytes

# Launchers put the rank in front of every line: mpirun "[1,0]<stdout>:", srun and torchrun "0:".
_PREFIX = re.compile(r"^(?:\[\d+,\d+\]<std(?:out|err)>:|\d+: ?)\s*")
_RANK = re.compile(
    r"#\s+Rank\s+(?P<rank>\d+)\b.*?\bon\s+(?P<host>\S+)\s+device\s+(?P<device>\d+)\s+"
    r"\[(?P<bus>[0-9a-fx:.]+)\]\s+(?P<name>\S.*?)\s*$"
)
_NAME = re.compile(r"\b(all_reduce|all_gather|reduce_scatter|alltoall|broadcast|reduce|sendrecv|gather|scatter)_perf\b")


def recognise(text: str) -> bool:
    """Whether the text holds a table of nccl-tests: a heading with size, algbw and busbw."""
    return any(_heading(_plain(line)) for line in text.splitlines())


def read(name: str, text: str, at: float) -> Iterator[Said]:
    """A GPU for each rank's line, and the bus bandwidth of each size (out of place) as an observation.

    `at` is in seconds since 1970: the tables carry no time.
    """
    columns: list[str] | None = None
    ranks, rows = 0, []
    for number, line in enumerate(text.splitlines(), 1):
        plain = _plain(line)
        rank = _RANK.match(plain)
        if rank:
            ranks += 1
            yield _gpu(rank, f"{name}:{number}", plain)
        columns = _heading(plain) or columns
        row = _row(columns, plain) if columns else None
        if row:
            rows.append((*row, Evidence(f"{name}:{number}", plain.strip())))
    if not rows:
        return
    op, implied = _collective(text, rows[-1][1], rows[-1][2])
    ends = tuple(f"rank{rank}" for rank in range(ranks or implied))
    for size, _, bus, evidence in rows:
        flow = Flow(op, ends, size)
        yield Observation(
            about=flow, quantity="bus_bandwidth", unit="bytes_per_second", value=from_gigabytes(bus), at=at, busy=True,
            evidence=evidence,
        )  # fmt: skip


def _plain(line: str) -> str:
    return _PREFIX.sub("", line)


def _heading(line: str) -> list[str] | None:
    words = line.lstrip("# ").split()
    return words if words[:1] == ["size"] and {"algbw", "busbw", "time"} <= set(words) else None


def _row(columns: Sequence[str], line: str) -> tuple[int, float, float] | None:
    """Size in bytes, algorithm and bus bandwidth in GB/s of a line of the table; None for any other line."""
    cells = line.split()
    size = cells[0].replace("_", "") if cells else ""
    if len(cells) != len(columns) or not re.fullmatch(r"[0-9]{1,18}", size) or not int(size):
        return None
    try:
        algorithm, bus = float(cells[columns.index("algbw")]), float(cells[columns.index("busbw")])
    except ValueError:
        return None
    return (int(size), algorithm, bus) if 0 <= algorithm < 1e6 and 0 <= bus < 1e6 else None


def _collective(text: str, algorithm: float, bus: float) -> tuple[str, int]:
    """Which collective, and over how many ranks, from its command or else from busbw / algbw of the largest size.

    The ratio is 2(n-1)/n for all_reduce, which alone goes above 1, and (n-1)/n for all_gather, reduce_scatter and
    alltoall (doc/PERFORMANCE.md of nccl-tests).
    """
    named = _NAME.search(text)
    ratio = bus / algorithm if algorithm else 0.0
    if 1 < ratio < 2:
        return (named[1] if named else "all_reduce"), max(2, round(2 / (2 - ratio)))
    ranks = max(2, round(1 / (1 - ratio))) if 0 < ratio < 1 else 1
    return (named[1] if named else "collective"), ranks


def _gpu(rank: re.Match[str], where: str, line: str) -> Gpu:
    """The GPU of a rank on the first host; later versions print its bus as 0000:53:00, older ones as 0x53."""
    bus = rank["bus"]
    address = f"{bus}.0" if re.fullmatch(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}", bus) else None
    evidence = {"name": Evidence(where, line.strip())}
    return Gpu(key=f"gpu{rank['device']}", name=rank["name"], address=address, cites=evidence)
