"""Arrays of disks as their tools print them: `zpool status`, `zpool list` and `mdadm --detail`.

OpenZFS (cmd/zpool/zpool_main.c: print_status_config, print_pool), mdadm (Detail.c). A pool is an array whose members
are its disks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

from ....models.facts.machine import Array
from ....models.facts.records import Evidence, Record
from ..core.part import Part

_STATES = "ONLINE|DEGRADED|FAULTED|OFFLINE|UNAVAIL|REMOVED|SUSPENDED"
_COUNT = r"[0-9]{1,9}(?:\.[0-9]{1,2})?[KMGT]?"
_ROW_OF_POOL = (
    rf"[\w.:/-]{{1,120}}[ ]{{1,80}}(?:{_STATES})[ ]{{1,8}}{_COUNT}[ ]{{1,8}}{_COUNT}[ ]{{1,8}}{_COUNT}(?:[ ]|$)"
)
_SIZE = r"[0-9]{1,20}(?:\.[0-9]{1,3})?[KMGTP]?"
# A row of `zpool list`: sizes, perhaps shares and "-", and the health of the pool.
_POOL_NAME = r"[\w.:-]{1,80}"
_VALUES = rf"(?:[ ]{{1,40}}|\t){_SIZE}(?:(?:[ ]{{1,40}}|\t)(?:{_SIZE}[%x]?|-)){{2,9}}"
_NAMES = "Raid Level|Raid Devices|Total Devices|Active Devices|Working Devices|Failed Devices|State"
BEGIN = (
    r"^[ \t]*(?:pool: [\w.:-]{1,80}[ \t]*$|NAME[ ]{1,120}STATE[ ]{1,8}READ[ ]{1,8}WRITE[ ]{1,8}CKSUM"
    r"|NAME[ ]{1,120}SIZE[ ]{1,40}ALLOC[ ]{1,40}FREE[ ]"
    r"|/dev/md[\w/-]{1,60}:[ \t]*\n(?:[ \t]*\n){0,2}[ \t]*(?:Version|Container|Raid Level) : )"
)
ANY_LINE = (
    rf"^[ \t]*(?:{_ROW_OF_POOL}|{_POOL_NAME}{_VALUES}(?:[ ]{{1,40}}|\t)(?:{_STATES})\b"
    r"|State : (?:clean|active|degraded|FAILED)\b|(?:Raid|Total|Active|Working|Failed) Devices : [0-9])"
)
_POOL = re.compile(r"[ \t]*pool: ([\w.:-]{1,80})[ \t]*$")
_POOL_STATE = re.compile(rf"[ \t]*state: ({_STATES})[ \t]*$")
_POOL_STATUS = re.compile(
    r"[ \t]*status: One or more devices .{0,40}?(?:faulted|could not be (?:opened|used)|unavailable|been removed)"
)
_ROW = re.compile(
    rf"(?P<indent>[ \t]*)(?P<name>[\w.:/-]{{1,120}})[ ]+(?P<state>{_STATES})"
    rf"[ ]+(?:{_COUNT})[ ]+(?:{_COUNT})[ ]+(?:{_COUNT})(?:[ ]|$)"
)
_LIST = re.compile(rf"(?P<name>{_POOL_NAME}){_VALUES}(?:[ ]+|\t)(?P<state>{_STATES})\b")
_GROUP = re.compile(r"(?:mirror|raidz[0-9]?|draid[\w:]*|spare|replacing|logs?|cache|special|dedup)(?:-[0-9]{1,4})?")
_NO_MEMBERS = re.compile(r"[ \t]*(?:spares|cache)[ \t]*$")
_BAD = ("DEGRADED", "FAULTED", "UNAVAIL", "REMOVED")
_STOPPED = ("FAULTED", "UNAVAIL", "SUSPENDED")  # states of a pool that does not run
_MD = re.compile(r"[ \t]*/dev/(?:md/)?([\w-]{1,60}):[ \t]*$")
_DETAIL = re.compile(rf"[ \t]*({_NAMES}) : (\S.{{0,80}}?)[ \t]*$")
_FAULTY = re.compile(
    r"[ \t]*\d{1,4}[ ]{1,12}\d{1,4}[ ]{1,12}\d{1,4}[ ]{1,12}(?:-|\d{1,4})[ ]{1,12}faulty[ ]+(\S{1,80})[ \t]*$"
)
_UNNAMED, _UNNAMED_ARRAY = "pool", "md"


class _Pool(Struct):
    name: str
    where: Evidence
    indent: int | None = None  # of the row of the pool itself
    state: str = "active"
    members: dict[str, bool] = field(default_factory=dict)  # whether the disk failed
    seen: Counter[str] = field(default_factory=Counter)  # number of rows of each name: a person has made them equal
    inside: bool = True  # the rows are of disks that hold data
    known: bool = False  # the state was read

    def take(self, state: str, where: Evidence) -> None:
        """Take the state of the pool or of a group."""
        self.known = True
        if state in _BAD and self.state == "active":
            self.state, self.where = "degraded", where


def read(part: Part) -> Iterator[Record]:
    """An `Array` per pool and per array of mdadm."""
    yield from _pools(part)
    yield from _listed(part)
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
        elif pool and (found := _POOL_STATE.match(line)):
            pool.take(found[1], part.cite(number, line))
            if found[1] in _STOPPED:
                pool.state = "inactive"
        elif pool and _POOL_STATUS.match(line):
            pool.take("DEGRADED", part.cite(number, line))
        elif pool and _NO_MEMBERS.match(line):
            pool.inside = False
    yield from _array(pool)


def _row(pool: _Pool, row: re.Match[str], where: Evidence) -> None:
    """A row of the table. The first one with the least indentation is of the pool, rows of groups are above disks."""
    name, state, indent = row["name"], row["state"], len(row["indent"])
    if pool.indent is None and pool.name in (name, _UNNAMED) and not _GROUP.fullmatch(name) and not _is_disk(name):
        pool.name, pool.indent = name, indent
        pool.take(state, where)
        if state in _STOPPED:
            pool.state = "inactive"
    elif pool.inside and _GROUP.fullmatch(name):
        pool.take(state, where)
    elif pool.inside:
        pool.seen[name] += 1
        pool.members[f"{name}#{pool.seen[name]}" if pool.seen[name] > 1 else name] = state in _BAD
    if state in _BAD:
        pool.where = where


def _is_disk(name: str) -> bool:
    return bool(re.match(r"(?:nvme\d|sd[a-z]|ata-|nvme-|scsi-|wwn-|/dev/|dm-\d)", name))


def _array(pool: _Pool | None) -> Iterator[Record]:
    """The pool. Members are counted only if their rows show why the pool is degraded: else rows are missing."""
    if pool is None or not (pool.members or pool.known):
        return
    failed = tuple(name for name, bad in pool.members.items() if bad)
    names = ("level", "state", "members", "faulty", "wanted", "missing")
    complete = bool(pool.members) and (bool(failed) or pool.state != "degraded")
    yield Array(
        key=pool.name,
        level="zfs",
        state="active" if pool.state == "degraded" and complete else pool.state,
        members=tuple(pool.members) if complete else None,
        faulty=failed if complete else None,
        wanted=len(pool.members) if complete else None,
        missing=len(failed) if complete else None,
        cites=dict.fromkeys(names if complete else ("level", "state"), pool.where),
    )


def _listed(part: Part) -> Iterator[Record]:
    """Rows of `zpool list`: only the state of the pool."""
    for number, line in part.lines():
        if (found := _LIST.match(line)) and not _GROUP.fullmatch(found["name"]) and not _is_disk(found["name"]):
            state = "inactive" if found["state"] in _STOPPED else "degraded" if found["state"] in _BAD else "active"
            cites = dict.fromkeys(("level", "state"), part.cite(number, line))
            yield Array(key=found["name"], level="zfs", state=state, cites=cites)


def _details(part: Part) -> Iterator[Record]:
    name, values, faulty = "", dict[str, tuple[str, Evidence]](), list[str]()
    end = part.text.count("\n")  # a number in a last line without an end can have lost digits
    for number, line in part.lines():
        if found := _MD.match(line):
            yield from _detail(name, values, faulty)
            name, values, faulty = found[1], {}, []
        elif row := _FAULTY.match(line):
            faulty.append(row[1].removeprefix("/dev/"))
        elif (known := _DETAIL.match(line)) and not (number == end and known[2].isdecimal()):
            if known[1] in values:  # the line with the name of the next array is missing
                yield from _detail(name, values, faulty)
                name, values, faulty = "", {}, []
            values[known[1]] = known[2], part.cite(number, line)
    yield from _detail(name, values, faulty)


def _detail(name: str, values: Mapping[str, tuple[str, Evidence]], faulty: Sequence[str]) -> Iterator[Record]:
    """`mdadm --detail`: the number of devices that the array should have, and of those that work, and its state."""
    wanted, active, total = (_number(values, f"{one} Devices") for one in ("Raid", "Active", "Total"))
    state, where = values.get("State", ("", None))
    present = [one for one in (active, total) if one is not None]
    if not state and (wanted is None or not present):
        return
    missing = max(0, wanted - min(present)) if wanted is not None and present else None
    if missing and state and not re.search(r"\b(?:degraded|FAILED|broken)\b", state):
        missing = None  # mdadm prints one of these words then, so a number is damaged
    stopped, reduced = re.search(r"\b(?:FAILED|inactive|broken)\b", state), "degraded" in state and not missing
    cites = {"state": where, "wanted": _cite(values, "Raid Devices")}
    cites["missing"] = _cite(values, "Active Devices") or _cite(values, "Total Devices")
    yield Array(
        key=name or _UNNAMED_ARRAY,
        level=values["Raid Level"][0] if "Raid Level" in values else "raid",
        state="inactive" if stopped else "degraded" if reduced else "active",
        wanted=wanted if missing is not None else None,
        missing=missing,
        faulty=tuple(faulty) or None,
        cites={field: cite for field, cite in cites.items() if cite},
    )


def _number(values: Mapping[str, tuple[str, Evidence]], name: str) -> int | None:
    text = values.get(name, ("",))[0]
    return int(text) if text.isdecimal() else None


def _cite(values: Mapping[str, tuple[str, Evidence]], name: str) -> Evidence | None:
    return values[name][1] if name in values else None
