"""Arrays of disks as their tools print them: `zpool status` and `mdadm --detail`.

OpenZFS (cmd/zpool/zpool_main.c: print_status_config), mdadm (Detail.c). A pool is an array whose members are its disks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from ....models.facts.machine import Array
from ....models.facts.records import Evidence, Record
from ..core.part import Part

_STATES = "ONLINE|DEGRADED|FAULTED|OFFLINE|UNAVAIL|REMOVED|SUSPENDED"
_COUNT = r"[0-9]{1,9}(?:\.[0-9]{1,2})?[KMGT]?"
_ROW_OF_POOL = (
    rf"[\w.:/-]{{1,120}}[ ]{{1,80}}(?:{_STATES})[ ]{{1,8}}{_COUNT}[ ]{{1,8}}{_COUNT}[ ]{{1,8}}{_COUNT}(?:[ ]|$)"
)
BEGIN = (
    r"^[ \t]*(?:pool: [\w.:-]{1,80}[ \t]*$|NAME[ ]{1,120}STATE[ ]{1,8}READ[ ]{1,8}WRITE[ ]{1,8}CKSUM"
    r"|/dev/md[\w/-]{1,60}:[ \t]*\n[ \t]*(?:Version|Container|Raid Level) : )"
)
ANY_LINE = rf"^[ \t]*{_ROW_OF_POOL}"
_POOL = re.compile(r"[ \t]*pool: ([\w.:-]{1,80})[ \t]*$")
_ROW = re.compile(
    rf"(?P<indent>[ \t]*)(?P<name>[\w.:/-]{{1,120}})[ ]+(?P<state>{_STATES})"
    rf"[ ]+(?:{_COUNT})[ ]+(?:{_COUNT})[ ]+(?:{_COUNT})(?:[ ]|$)"
)
_GROUP = re.compile(r"(?:mirror|raidz[0-9]?|draid[\w:]*|spare|replacing|logs?|cache|special|dedup)(?:-[0-9]{1,4})?")
_NO_MEMBERS = re.compile(r"[ \t]*(?:spares|cache)[ \t]*$")
_BAD = ("DEGRADED", "FAULTED", "UNAVAIL", "REMOVED")
_STOPPED = ("FAULTED", "UNAVAIL", "SUSPENDED")  # states of a pool that does not run
_MD = re.compile(r"[ \t]*/dev/(?:md/)?([\w-]{1,60}):[ \t]*$")
_DETAIL = re.compile(r"[ \t]*(Raid Level|Raid Devices|Active Devices|State) : (\S.{0,80}?)[ \t]*$")
_UNNAMED = "pool"


class _Pool(Struct):
    name: str
    where: Evidence
    indent: int | None = None  # of the row of the pool itself
    state: str = "active"
    members: dict[str, bool] = field(default_factory=dict)  # whether the disk failed
    seen: Counter[str] = field(default_factory=Counter)  # number of rows of each name: a person has made them equal
    inside: bool = True  # the rows are of disks that hold data


def read(part: Part) -> Iterator[Record]:
    """An `Array` per pool and per array of mdadm."""
    yield from _pools(part)
    yield from _details(part)


def _pools(part: Part) -> Iterator[Record]:
    pool: _Pool | None = None
    for number, line in part.lines():
        if found := _POOL.match(line):
            yield from _array(pool)
            pool = _Pool(found[1], part.cite(number, line))
        elif row := _ROW.match(line):
            pool = pool or _Pool(_UNNAMED, part.cite(number, line))
            _row(pool, row, part.cite(number, line))
        elif pool and _NO_MEMBERS.match(line):
            pool.inside = False
    yield from _array(pool)


def _row(pool: _Pool, row: re.Match[str], where: Evidence) -> None:
    """A row of the table. The first one with the least indentation is of the pool, rows of groups are above disks."""
    name, state, indent = row["name"], row["state"], len(row["indent"])
    if pool.indent is None and pool.name in (name, _UNNAMED) and not _GROUP.fullmatch(name) and not _is_disk(name):
        pool.name, pool.indent = name, indent
        pool.state = "inactive" if state in _STOPPED else "active"
    elif pool.inside and not _GROUP.fullmatch(name):
        pool.seen[name] += 1
        pool.members[f"{name}#{pool.seen[name]}" if pool.seen[name] > 1 else name] = state in _BAD
    if state in _BAD:
        pool.where = where


def _is_disk(name: str) -> bool:
    return bool(re.match(r"(?:nvme\d|sd[a-z]|ata-|nvme-|scsi-|wwn-|/dev/|dm-\d)", name))


def _array(pool: _Pool | None) -> Iterator[Record]:
    if pool and (pool.members or pool.state == "inactive"):
        failed = tuple(name for name, bad in pool.members.items() if bad)
        names = ("level", "state", "members", "faulty", "wanted", "missing")
        yield Array(
            key=pool.name,
            level="zfs",
            state=pool.state,
            members=tuple(pool.members),
            faulty=failed,
            wanted=len(pool.members),
            missing=len(failed),
            cites=dict.fromkeys(names, pool.where),
        )


def _details(part: Part) -> Iterator[Record]:
    name, values = "", dict[str, tuple[str, Evidence]]()
    for number, line in part.lines():
        if found := _MD.match(line):
            yield from _detail(name, values)
            name, values = found[1], {}
        elif name and (known := _DETAIL.match(line)):
            values[known[1]] = known[2], part.cite(number, line)
    yield from _detail(name, values)


def _detail(name: str, values: Mapping[str, tuple[str, Evidence]]) -> Iterator[Record]:
    """`mdadm --detail`: the number of devices that the array should have, and of those that work."""
    wanted, active = (values[one][0] if one in values else "" for one in ("Raid Devices", "Active Devices"))
    if not (wanted.isdecimal() and active.isdecimal()) or "State" not in values:
        return
    state, where = values["State"]
    level, stopped = values.get("Raid Level", ("raid", where))[0], re.search(r"\b(?:FAILED|inactive|broken)\b", state)
    yield Array(
        key=name,
        level=level,
        state="inactive" if stopped else "active",
        wanted=int(wanted),
        missing=max(0, int(wanted) - int(active)),
        cites={"wanted": values["Raid Devices"][1], "missing": values["Active Devices"][1], "state": where},
    )
