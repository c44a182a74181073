"""Result files of nccl-tests (-J) and rccl-tests (-x, as JSON).

https://github.com/NVIDIA/nccl-tests, src/util.cu; https://github.com/ROCm/rccl-tests, src/common.cu.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from ....models.facts.gpu import Gpu
from ....models.facts.records import Evidence, NotChecked, Record
from ..core.json_values import documents, list_of, object_of
from ..core.part import Part
from ..host import environment
from . import nccl

BEGIN = (
    r"^[ \t]*(?:\{\s{0,20}\"version\":\s?[0-9]{1,3},\s{0,20}\"start_time\":"
    r"|(?:\[\s{0,20})?\{\s{0,20}\"numCycle\":)"
)
_OPS = {
    "AllReduce": "all_reduce",
    "AllGather": "all_gather",
    "ReduceScatter": "reduce_scatter",
    "AlltoAll": "alltoall",
    "Broadcast": "broadcast",
    "Reduce": "reduce",
    "Gather": "gather",
    "Scatter": "scatter",
    "SendRecv": "sendrecv",
}
_BUS = re.compile(r"([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})(\.[0-7])?")
_MOST = 1e6  # GB/s
_OBJECT = re.compile(r"\{")
_MOST_RANKS = 100_000

_Rows = list[tuple[int, float, float, Evidence]]


def read(part: Part) -> Iterator[Record]:
    """A GPU for each rank of the first host, the bus bandwidth of each size, and the environment variables."""
    records: dict[tuple[str, int], _Rows] = defaultdict(list)
    for one in documents(part, _OBJECT):
        if isinstance(one, NotChecked):
            yield one
        elif "numCycle" in one.value:
            _record(records, one.value, part.where(one.line))
        else:
            yield from _run(part, one.value, part.where(one.line))
    for (op, ranks), rows in records.items():
        yield from nccl.bandwidths(part, rows, op, ranks)


def _run(part: Part, run: Mapping[str, Any], where: str) -> Iterator[Record]:
    """One run of nccl-tests: its arguments, its GPUs, and its table (out of place)."""
    for variable in list_of(run.get("env")):
        if isinstance(variable, str):
            yield from environment.variable(variable, Evidence(where, variable[:300]))
    devices = [object_of(one) for one in list_of(object_of(run.get("config")).get("devices"))]
    for one in devices:
        if one.get("hostname") == devices[0].get("hostname"):
            yield from _gpu(one, where)
    named = next((found[1] for word in list_of(run.get("args"))[:1] if (found := nccl.NAME.search(str(word)))), None)
    rows: _Rows = []
    for one in map(object_of, list_of(run.get("results"))):
        body = object_of(one.get("out_of_place"))
        _add(rows, one.get("size"), body.get("alg_bw"), body.get("bus_bw"), where)
    yield from nccl.bandwidths(part, rows, named, len(devices))


def _gpu(device: Mapping[str, Any], where: str) -> Iterator[Gpu]:
    number, name, bus = device.get("device"), device.get("device_info"), device.get("device_hex")
    if isinstance(number, int) and 0 <= number < _MOST_RANKS and isinstance(name, str) and name.isprintable():
        found = _BUS.fullmatch(bus) if isinstance(bus, str) else None
        cite = Evidence(where, f"device {number} [{bus}] {name}"[:300])
        address = f"{found[1]}{found[2] or '.0'}" if found else None
        yield Gpu(key=f"gpu{number}", name=name.strip(), address=address, cites={"name": cite})


def _record(records: dict[tuple[str, int], _Rows], one: Mapping[str, Any], where: str) -> None:
    """One line of rccl-tests: a size, in place or out of place."""
    op, ranks, inside = _OPS.get(str(one.get("name"))), one.get("ranks"), one.get("inPlace")
    if op and isinstance(ranks, int) and 0 < ranks < _MOST_RANKS and not inside:
        _add(records[op, ranks], one.get("size"), one.get("algBw"), one.get("busBw"), where)


def _add(rows: _Rows, size: object, algorithm: object, bus: object, where: str) -> None:
    """Append a row of three numbers. For very small sizes the tools print a rate of 0, as in the tables."""
    if not isinstance(size, int) or isinstance(size, bool) or not 0 < size < 1 << 63:
        return
    numbers = [
        rate for rate in (algorithm, bus) if isinstance(rate, int | float) and 0 <= rate < _MOST
    ]  # Python's JSON accepts NaN
    if len(numbers) == 2:
        evidence = Evidence(where, f"size {size}: busbw {numbers[1]:g}")
        rows.append((size, float(numbers[0]), float(numbers[1]), evidence))
