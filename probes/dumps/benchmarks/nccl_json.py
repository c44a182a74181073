"""Result files of nccl-tests (-J) and rccl-tests (-x, as JSON).

https://github.com/NVIDIA/nccl-tests, src/util.cu; https://github.com/ROCm/rccl-tests, src/common.cu.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from ....models.facts.records import Evidence, Record
from ..core.json_values import each_document, list_of, member, number, objects
from ..core.part import Part
from ..host import environment
from . import nccl

BEGIN = (
    r"^[ \t]*(?:\{\s{0,20}\"version\":\s?[0-9]{1,3},\s{0,20}\"start_time\":"
    r"|(?:\[\s{0,20})?\{\s{0,20}\"numCycle\":)"
)
_MOST = 1e6  # GB/s
_OBJECT = re.compile(r"\{")
_MOST_RANKS = 100_000


def read(part: Part) -> Iterator[Record]:
    """A GPU for each rank of the first host, the bus bandwidth of each size, and the environment variables."""
    records: dict[tuple[str, int], list[nccl.Measured]] = defaultdict(list)

    def document(part: Part, run: Any, where: str) -> Iterator[Record]:
        if "numCycle" not in run:
            yield from _run(part, run, where)
            return
        # A line of rccl-tests: a size, in place or out of place
        op, ranks = nccl.OPS.get(str(run.get("name")).lower()), run.get("ranks")
        if op and isinstance(ranks, int) and 0 < ranks < _MOST_RANKS and not run.get("inPlace"):
            records[op, ranks] += _rows([run], "algBw", "busBw", where)

    yield from each_document(part, _OBJECT, document)
    for (op, ranks), rows in records.items():
        yield from nccl.bandwidths(part, rows, op, ranks)


def _run(part: Part, run: Any, where: str) -> Iterator[Record]:
    """One run of nccl-tests: its arguments, its GPUs, and its table (out of place)."""
    for variable in list_of(run.get("env")):
        if isinstance(variable, str):
            yield from environment.variable(variable, Evidence(where, variable[:300]))
    devices = objects(member(run, "config.devices"))
    for one in devices:
        key, name, bus = one.get("device"), one.get("device_info"), one.get("device_hex")
        if one.get("hostname") != devices[0].get("hostname"):
            continue
        if isinstance(key, int) and 0 <= key < _MOST_RANKS and isinstance(name, str) and name.isprintable():
            yield nccl.gpu(key, name, str(bus), Evidence(where, f"device {key} [{bus}] {name}"[:300]))
    named = next((found[1] for word in list_of(run.get("args"))[:1] if (found := nccl.NAME.search(str(word)))), None)
    rows = _rows(objects(run.get("results")), "out_of_place.alg_bw", "out_of_place.bus_bw", where)
    yield from nccl.bandwidths(part, list(rows), named, len(devices))


def _rows(several: Iterable[Any], algorithm: str, bus: str, where: str) -> Iterator[nccl.Measured]:
    """The rows with three numbers. For very small sizes the tools print a rate of 0, as in the tables."""
    for one in several:
        size, rates = one.get("size"), [number(member(one, path), _MOST) for path in (algorithm, bus)]
        if isinstance(size, int) and number(size, 1 << 63) and None not in rates:
            yield size, rates[0] or 0.0, rates[1] or 0.0, Evidence(where, f"size {size}: busbw {rates[1]:g}")
