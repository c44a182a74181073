"""Values on which two sources disagree, as text."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ...models.facts.merge import Conflict
from ...models.facts.records import Fact
from ...models.facts.registry import kind_name
from ...models.inventory.snapshot import Snapshot
from .terminal import hanging, safe, short
from .vocabulary import counted, in_words

WIDTH = 98
_LONGEST = 400  # characters of a value; the processors of a NUMA node can be many
_UNCITED = "the GPUs' driver (NVML)"  # all other sources cite the place of a value


def as_conflicts(snapshot: Snapshot, tools: Collection[str]) -> str:
    """Each conflict with both values and their sources, then the tools that could not run. `tools`: names of tools."""
    lines = [*_points(snapshot), *_missing(snapshot, tools)]
    return "".join(f"{line}\n" for line in lines)


def _points(snapshot: Snapshot) -> Iterator[str]:
    if not snapshot.conflicts:
        yield "The sources agree on every value that two of them report."
        return
    one, several = "point on which sources disagree", "points on which sources disagree"
    yield f"{counted(len(snapshot.conflicts), one, several)}; a stated fault is used, else the first source."
    for conflict in snapshot.conflicts:
        yield ""
        yield from _point(conflict)


def _point(conflict: Conflict) -> Iterator[str]:
    kind, name = kind_name(type(conflict.kept)), conflict.field
    yield from hanging("", in_words(kind, [name], safe(conflict.kept.key), False), WIDTH, 2)
    for role, fact in (("used ", conflict.kept), ("other", conflict.other)):
        yield from hanging(f"  {role}  ", f"{_value(getattr(fact, name))}  {_source(fact, name)}", WIDTH)


def _value(value: object) -> str:
    if isinstance(value, tuple):
        return short(", ".join(map(str, value)) or "none", _LONGEST)
    return short(f"{value:.15g}" if isinstance(value, float) else str(value), _LONGEST)


def _source(fact: Fact, name: str) -> str:
    return f"({safe(fact.cites[name].source)})" if name in fact.cites else f"({_UNCITED})"


def _missing(snapshot: Snapshot, tools: Collection[str]) -> Iterator[str]:
    lost = [one for one in snapshot.not_checked if one.what in tools]
    if lost:
        yield ""
    for one in lost:
        how = f" ({one.how})" if one.how else ""
        yield from hanging("", f"not compared: {one.what}: {safe(one.why)}{how}", WIDTH, 2)
    if snapshot.origin == "live" and not any(run.name in tools for run in snapshot.runs):
        yield from ("", "--with-tools also compares with nvidia-smi, lstopo and ibstat, if they are installed.")
