"""The JSON form of a status report of NCCL's RAS subsystem (nccl_ras.py)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from ....models.facts.job_ranks import Rank, RankState
from ....models.facts.machine import Nccl
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, NotChecked, Record
from ..core.json_pieces import pieces
from ..core.json_values import documents, list_of, object_of
from ..core.part import Part

_OBJECT = re.compile(r"\{")
_HASH = re.compile(r"0x(?P<hash>[0-9a-f]{1,16})")
_HOST = re.compile(r"[\da-f.:]{2,45}")
_MOST = 10_000_000
_RUNNING = (0, 7)  # ncclSuccess, ncclInProgress
_ERRORS = {  # ncclResult_t in nccl.h, in the words of the text form
    1: "Unhandled CUDA error",
    2: "System error",
    3: "Internal error",
    4: "Invalid argument",
    5: "Invalid usage",
    6: "Remote process error",
}


def read(part: Part) -> Iterator[Record]:
    """The library and the ranks that differ. Of a cut document, what stands before the cut."""
    for one in documents(part, _OBJECT):
        if isinstance(one, NotChecked):
            yield one
            for value, line in pieces(part, 0):
                yield from _report(part, value, line, whole=False)
        else:
            yield from _report(part, object_of(one.value), one.line, whole=True)


def _report(part: Part, report: Mapping[str, Any], line: int, whole: bool) -> Iterator[Record]:
    version = report.get("nccl_version")
    communicators = list(map(object_of, list_of(report.get("communicators"))))
    if isinstance(version, str) and (found := re.match(r"\d+\.\d+(?:\.\d+)?", version)):
        nodes = _nodes(communicators) if whole else None
        hosts = "" if nodes is None else f", {nodes} hosts"
        cite = part.cite(line, f"nccl_version {version}{hosts}")
        cites = {"version": cite, **({} if nodes is None else {"nodes": cite})}
        yield Nccl(key="nccl", version=found[0], nodes=nodes, cites=cites)
    for one in communicators:
        yield from _communicator(part, one, line)


def _nodes(communicators: Sequence[Mapping[str, Any]]) -> int | None:
    """The number of hosts of all ranks; None if a rank or its host is not in the report."""
    ranks = [list(_listed(one)) for one in communicators]
    hosts = {_text(rank.get("host"), _HOST) for several in ranks for rank in several}
    complete = all(len(several) == one.get("size") for several, one in zip(ranks, communicators, strict=True))
    return len(hosts) if hosts and complete and None not in hosts else None


def _communicator(part: Part, one: Mapping[str, Any], line: int) -> Iterator[Record]:
    name = _text(one.get("hash"), _HASH)
    if name is None:
        return
    name = f"{int(name, 16):016x}"
    ranks, missing = ([*map(object_of, list_of(one.get(lists)))] for lists in ("ranks", "missing_ranks"))
    where = part.where(line)
    for rank in missing:
        if state := _missing(object_of(rank.get("status"))):
            yield from _rank(name, rank, where, {"state": state})
    for rank in ranks:
        status = object_of(rank.get("status"))
        codes = [code for code in map(status.get, ("init_state", "async_error")) if _is_count(code)]
        if failed := [code for code in codes if code not in _RUNNING]:
            error = _ERRORS.get(failed[0], f"error {failed[0]}")
            yield from _rank(name, rank, where, {"state": "failed", "error": error})
    yield from _late(name, ranks, where, one.get("size"))
    numbers = [rank.get("rank") for rank in (*ranks, *missing)]
    size = one.get("size")
    different = len({*map(str, numbers)})
    if _is_count(size) and not len(numbers) == different == size:
        why = f"communicator {name} has {size} ranks, and the report lists {different} of them"
        yield NotChecked(
            what="Rank", subject="node", reason=Reason.INCOMPLETE, path=where, detail=why, how="query RAS again"
        )


def _missing(status: Mapping[str, Any]) -> RankState | None:
    """The state of a rank that did not report; None if the status is not complete."""
    dead, unresponsive = status.get("considered_dead"), status.get("unresponsive")
    if not (isinstance(dead, bool) and isinstance(unresponsive, bool)):
        return None
    return "dead" if dead else "unresponsive" if unresponsive else "absent"


def _late(name: str, ranks: Sequence[Mapping[str, Any]], where: str, size: object) -> Iterator[Rank]:
    """Ranks that have launched fewer operations than most of all `size` ranks. Without a majority, nobody is late."""
    if not isinstance(size, int):
        return
    counts = [object_of(rank.get("collective_counts")) for rank in ranks]
    for operation in dict.fromkeys(operation for one in counts for operation in one):
        each: list[int] = [one[operation] for one in counts if _is_count(one.get(operation), 1 << 63)]
        majority, number = Counter(each).most_common(1)[0] if each else (0, 0)
        if number * 2 <= size:
            continue
        for rank, one in zip(ranks, counts, strict=True):
            launched = one.get(operation)
            if _is_count(launched, 1 << 63) and launched < majority:
                late = {"state": "late", "operation": operation, "launched": launched, "majority": majority}
                yield from _rank(name, rank, where, late)


def _rank(communicator: str, one: Mapping[str, Any], where: str, about: Mapping[str, Any]) -> Iterator[Rank]:
    number, pid, gpu = (one.get(name) for name in ("rank", "pid", "nvml_dev"))
    if not _is_count(number):
        return
    values = {
        "number": number,
        "host": _text(one.get("host"), _HOST),
        "pid": pid if _is_count(pid, 1 << 31) else None,
        "gpu": gpu if _is_count(gpu, 1 << 10) else None,
        **about,
    }
    text = ", ".join(f"{name} {value}" for name, value in values.items() if value is not None)
    yield rank_of(communicator, values, Evidence(where, text))


def rank_of(communicator: str, values: Mapping[str, Any], cite: Evidence) -> Rank:
    """The fact of a rank; the evidence is that of each value that is known."""
    known = {name: value for name, value in values.items() if value is not None}
    key = "/".join(map(str, filter(None, (communicator, str(values["number"]), values.get("operation")))))
    return Rank(key=key, **known, cites=dict.fromkeys(known, cite))


def _listed(communicator: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for name in ("ranks", "missing_ranks"):
        yield from map(object_of, list_of(communicator.get(name)))


def _is_count(value: object, most: int = _MOST) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < most


def _text(value: object, pattern: re.Pattern[str]) -> str | None:
    found = pattern.fullmatch(value) if isinstance(value, str) else None
    return found[found.lastgroup or 0] if found else None
