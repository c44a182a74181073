"""The flows of a row with their rates."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from ....models.bandwidth.expectations import BEFORE, WANTED
from ....models.facts.gpu import GpuPair
from ....models.facts.network_paths import PATH_RATE, NodePair
from ....models.facts.records import Evidence, Flow, Observation, Record
from ..core.part import Part
from .rows import RateRow
from .words import is_address, is_device

PATHS = frozenset({"PIX", "PXB", "PHB", "NODE", "SYS"})


def flows_of(part: Part, row: RateRow, cite: Evidence) -> Iterator[Record]:
    """The flows of a row with their rates in one direction."""
    if row.collective:
        ranks = tuple(end for end in row.alone if end.startswith("gpu")) or ("rank0",)
        for value, _ in row.rates[:1]:
            yield part.rate(Flow(row.collective, ranks, row.size), value, cite, "bus_bandwidth")
        return
    if _is_adapter_alone(row):
        end, best = row.alone[0], max(value for value, _ in row.rates)
        yield NodePair(key=end, rate=best, cites={"rate": cite})
    named: list[tuple[str, ...]] = [*row.pairs] or [(end,) for end in row.alone]
    flows = [_ends(pair, row) for pair in named]
    every = [ends for _, ends in flows]
    at_once = len(flows) > 1 and bool(row.joined or row.marks & {"together", "sum", "also", "beside", "each"})
    for place, (op, ends) in enumerate(flows):
        if "beside" in row.marks and place and len(row.rates) == 1:
            break  # the number is the rate of the first flow
        others = tuple(other for other in every if other != ends) if at_once else ()
        others += (ends[::-1],) if "both" in row.marks else ()
        flow = Flow(op, ends, row.size, "nvlink" if row.path.startswith("NV") else "", others)
        yield from _rates(part, row, flow, place, len(flows), cite)
        yield from _pair(row, ends, cite)


def _is_adapter_alone(row: RateRow) -> bool:
    """Whether the row has the rate of one adapter of a test of several."""
    return not row.pairs and len(row.alone) == 1 and is_nic(row.alone[0]) and not row.marks and row.size is None


def _rates(part: Part, row: RateRow, flow: Flow, place: int, count: int, cite: Evidence) -> Iterator[Observation]:
    """The rate of one flow. The row has one number for each flow, or one for all."""
    several = row.rates if len(row.rates) != count or count == 1 else [row.rates[place]]
    shared = count if len(row.rates) == 1 and count > 1 and not row.marks & {"each", "beside"} else 1
    for value, mark in several:
        value /= shared * (2 if "both" in row.marks else 1)
        if value:
            before = mark == "before" and (len(several) > 1 or "change" in row.marks)
            yield part.rate(flow, value, cite, BEFORE if before else WANTED if mark == "wanted" else "rate")


def _ends(ends: tuple[str, ...], row: RateRow) -> tuple[str, tuple[str, ...]]:
    """Operation and ends of a flow. An adapter sends to its port."""
    nics = [end for end in ends if is_nic(end)]
    if nics:
        device, _, port = nics[0].replace(":", "/").partition("/")
        wire = f"{device}/{port or 1}"
        memory = next((end for end in ends if end not in nics), device)
        reads = "downward" in row.marks
        return ("read", (wire, memory)) if reads else ("write", (memory, wire))
    if len(ends) == 1 and is_disk(ends[0]):
        return ("write", ("host", ends[0])) if "upward" in row.marks else ("read", (ends[0], "host"))
    if len(ends) == 1:
        return "copy", (ends[0], "host") if "downward" in row.marks else ("host", ends[0])
    return "copy", ends


def _pair(row: RateRow, ends: tuple[str, ...], cite: Evidence) -> Iterator[GpuPair]:
    if row.path in PATHS and all(end.startswith("gpu") for end in ends):
        a, b = sorted(ends, key=lambda end: int(end[3:]))
        yield GpuPair(key=f"{a}-{b}", a=a, b=b, path=row.path, cites={"path": cite})


def is_nic(end: str) -> bool:
    """Whether the end is an adapter."""
    return is_device(end) and not end.startswith(("gpu", "numa", "host")) and not is_disk(end) and not is_address(end)


def is_disk(end: str) -> bool:
    """Whether the end is a disk."""
    return bool(re.match("nvme|sd[a-z]", end))


def path_rates(part: Part, row: RateRow, cite: Evidence) -> Iterator[Observation]:
    """The rate of a row that names a type of path instead of its ends."""
    rate = row.rates[0][0] / (2 if "both" in row.marks else 1)
    yield replace(part.rate(Flow("copy", ()), rate, cite, PATH_RATE), about=row.path)
