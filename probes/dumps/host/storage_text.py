"""df, mount, /proc/mounts, /proc/mdstat, lsblk and nvme list, as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ....models.facts.machine import Array, Disk, Mount, Nvme
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, NotChecked, Record
from ....models.facts.units import GIB, KIB, MIB
from ...storage.mounts import is_job_storage
from ..core.part import Part
from ..lines.flattened_mdstat import FLAT, lines_of

BEGIN = (
    r"^[ \t]*(?:Filesystem[ ]+(?:Type[ ]+)?(?:(?:1K|1M|1G|1024)-blocks|Size)[ ]+Used[ ]|NAME[ ]+MAJ:MIN[ ]+RM[ ]"
    r"|Node[ ]{2,40}(?:Generic[ ]{2,40})?SN[ ]{2,40}Model[ ]|Subsystem[ ]{2,40}Subsystem-NQN[ ]|Device[ ]{2,40}"
    r"(?:Cntlid[ ]{1,8})?SN[ ]{2,40}MN[ ]|NAME[ ]+(?:FSTYPE|ALIGNMENT|DISC-ALN|SIZE|TYPE|KNAME|MODEL|ROTA)[ ]|"
    r"Personalities :(?: \[|$)|md[0-9_]{1,6} : (?:in)?active "
    r"|\S{1,200} on /\S{0,200} type [a-z0-9._]{1,30} \(r[wo]\b"
    rf"|\S{{1,200}} /\S{{0,200}} [a-z0-9._]{{1,30}} r[wo](?:,\S*)? [0-9] [0-9]$|{FLAT})"
)
# A row of df -h without its heading; the second line of an array in mdstat.
ANY_LINE = (
    r"^(?:\S{1,200}[ \t]+(?:[a-z][\w.]*[ \t]+)?[\d.,]+[KMGTP][ \t]+[\d.,]+[KMGTP]?[ \t]+-?[\d.,]+[KMGTP]?[ \t]+[\d-]+%"
    r"[ \t]+/"
    r"|[│├└─|`-]*[a-z][\w.!-]*[ ]+\d+:\d+[ ]+[01][ ]+\S+[ ]+[01][ ]+(?:disk|part)\b"
    r"|nvme\d{1,4}[ ]{1,20}(?:\d{1,5}[ ]+)?\S{1,20}[ ]+\S[^\n]{0,60}[ ](?:pcie|tcp|rdma|fc)[ ]+[0-9a-f]"
    r"|/dev/\S{1,60}[ ]+(?:[a-z]\w*[ ]+)?\d+[ ]+\d+[ ]+-?\d+[ ]+\d+%[ ]+/"
    r"|[ ]*\d{1,18} blocks [^\n]{0,120}\[\d{1,5}/\d{1,5}\] \[[U_]+\])"
)
_UNNAMED = "md"
_DF_HEADING = re.compile(r"[ \t]*Filesystem[ ]+(Type[ ]+)?(1K-blocks|1024-blocks|1M-blocks|1G-blocks|Size)[ ]")
_DF = re.compile(
    r"(\S+)[ \t]+(?:([a-z][\w.]*)[ \t]+)?([\d.,]+[KMGTP]?)[ \t]+[\d.,]+[KMGTP]?[ \t]+(-?[\d.,]+[KMGTP]?)[ \t]+[\d-]+%"
    r"[ \t]+(/.*)$"
)
_MOUNTED = re.compile(r"[ \t]*(\S+) on (/\S*) type ([\w.]+) \((r[wo])?\b")
_PROC_MOUNTS = re.compile(r"[ \t]*(\S+) (/\S*) ([\w.]+) (r[wo])\b\S* [0-9] [0-9][ \t]*$")
_MD = re.compile(
    r"[ \t]*(md\w{1,16}) : (active|inactive)(?: \((?:auto-)?read-only\))?(?: (raid\d+|linear|faulty|multipath))?"
    r"((?: [\w!-]{1,32}\[\d+\](?:\([A-Z]\))*)*)[ \t]*$"
)
_MEMBER = re.compile(r"([\w!-]{1,32})\[\d+\]((?:\([A-Z]\))*)")
_BLOCKS = re.compile(r"[ \t]*\d+ blocks .*\[(\d{1,5})/(\d{1,5})\](?:[ \t]*(\S{1,400}))?")
_LSBLK = re.compile(r"([ \t│├└─|`-]*)(\w[\w.!-]*)[ ]+\d+:\d+[ ]+[01][ ]+\S+[ ]+[01][ ]+(\w+)(?:[ ]+(/\S*))?[ \t]*$")
_NVME = re.compile(r"[ \t]*/dev/(nvme\d{1,4}n\d{1,4})[ ]")
_CONTROLLER = re.compile(
    r"[ \t]*(?P<name>nvme\d{1,4})[ ]+(?:\d{1,5}[ ]+)?\S{1,20}[ ]+(?P<model>\S[^\n]{0,39}?)[ ]+(?P<firmware>\S{1,8})[ ]+"
    r"(?P<transport>pcie|tcp|rdma|fc|loop)[ ]+(?P<address>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])?"
)
_PLACES = re.compile(r"\[[U_]+\]").fullmatch
_UNITS = {"K": KIB, "M": MIB, "G": GIB, "T": GIB << 10, "P": GIB << 20}
_BLOCK_SIZES = {"1K-blocks": KIB, "1024-blocks": KIB, "1M-blocks": MIB, "1G-blocks": GIB, "Size": 1}
_HUMAN = re.compile(r"[ \t]\d[\d.,]*[KMGTP][ \t]")  # a size with its unit
_SHARED = 1 << 40  # bytes of a file system that is named without a path: GPFS, BeeGFS
_VIRTUAL = ("none", "udev", "dev", "run", "tmpfs", "devtmpfs", "overlay", "rootfs", "shm", "cgroup", "efivarfs", "zfs")
_LONGEST = 2000  # characters of a line


def read(part: Part) -> Iterator[Record]:
    """Mounted file systems that store data, disks with their partitions, and arrays.

    The format of each line identifies it.
    """
    reading = _Reading(part)
    records: list[Record] = []
    for number, line in part.lines():
        if 5 < len(line) <= _LONGEST:
            for one in lines_of(line):
                records += reading.line(one, partial(part.cite, number, line))
    yield from reading.clear(records)
    yield from reading.arrays.values()


_Cite = Callable[[], Evidence]


class _Reading:
    """The current table and the arrays so far. Counts of an array are on the line after it."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.unit = 0  # bytes per block in df
        self.heading, self.model = "", (0, 0)  # of nvme list: the names of the columns, the place of the model
        self.disks: list[tuple[int, str]] = []  # open entries of lsblk: indentation and name
        self.arrays: dict[str, Array] = {}
        self.last = ""
        self.tables = 0  # of df so far
        self.places: dict[tuple[int, str], dict[str, Evidence]] = {}  # the devices of each path in a table of df

    def clear(self, records: Iterable[Record]) -> Iterator[Record]:
        """The records, with a gap for each path that a table of df has with two devices: one of the paths is cut."""
        several = [(point, rows) for (_, point), rows in self.places.items() if len(rows) > 1]
        cited = {cite.source for _, rows in several for cite in rows.values()}
        for one in records:
            if not isinstance(one, Mount) or cited.isdisjoint(cite.source for cite in one.cites.values()):
                yield one
        for point, rows in several:
            path = next(iter(rows.values())).source
            why = f"df shows {', '.join(list(rows)[:4])} on the same path: a path is cut"
            yield NotChecked(what="Mount", subject=point, reason=Reason.CONTRADICTED, path=path, detail=why, how="df")

    def line(self, line: str, cite: _Cite) -> Iterator[Record]:
        """The records of one line."""
        if heading := _DF_HEADING.match(line):
            self.unit, self.tables = _BLOCK_SIZES[heading[2]], self.tables + 1
        elif "%" in line:
            yield from self._df(line, cite)
        elif found := (" on /" in line and _MOUNTED.match(line)) or (line[-1].isdigit() and _PROC_MOUNTS.match(line)):
            known = {"read_only": found[4] == "ro"} if found[4] else {}
            yield from _mount(found[2], found[1], found[3], cite, known)
        elif " : " in line and (found := _MD.match(line)):
            self._array(found, cite)
        elif " blocks " in line and (found := _BLOCKS.match(line)):
            if not self.last:  # the line before it is missing
                self.last = _UNNAMED
                self.arrays.setdefault(_UNNAMED, Array(key=_UNNAMED, level=_level(line)))
            yield from self._members(int(found[1]), int(found[2]), found[3], cite)
        elif found := _LSBLK.match(line):
            yield from self._block(found, cite)
        elif line.lstrip().startswith(("--", "/dev/nvme")) or _is_heading(line):
            yield from self._nvme(line, cite)
        elif found := _CONTROLLER.match(line):
            yield _controller(found, cite)

    def _df(self, line: str, cite: _Cite) -> Iterator[Record]:
        if found := _DF.match(line.strip()):
            self.places.setdefault((self.tables, found[5].strip()), {}).setdefault(found[1], cite())
            clear = self.unit or _HUMAN.search(line)  # without the heading, the size of a block is not known
            pairs = (("size", found[3]), ("free", found[4])) if clear else ()
            sizes = {name: _bytes(text, self.unit or 1) for name, text in pairs}
            known = {name: size for name, size in sizes.items() if size is not None}
            for name in sizes.keys() - known:
                how, detail = "df -B1", f"{dict(pairs)[name]!r} has no unit"
                yield NotChecked(
                    what=f"Mount.{name}",
                    subject=found[5].strip(),
                    reason=Reason.INCOMPLETE,
                    path=cite().source,
                    detail=detail,
                    how=how,
                )
            yield from _mount(found[5].strip(), found[1], found[2], cite, known)

    def _array(self, found: re.Match[str], cite: _Cite) -> None:
        """A line of mdstat. (F) marks a failed member, (S) a spare."""
        members = [(one[1], one[2]) for one in _MEMBER.finditer(found[4])]
        evidence = cite()
        self.last = found[1]
        self.arrays[found[1]] = Array(
            key=found[1],
            level=found[3],
            state=found[2],
            members=tuple(name for name, marks in members if "(S)" not in marks),
            faulty=tuple(name for name, marks in members if "(F)" in marks),
            cites=dict.fromkeys(("level", "state", "members", "faulty"), evidence),
        )

    def _members(self, wanted: int, active: int, places: str | None, cite: _Cite) -> Iterator[NotChecked]:
        """The counts of an array. `places`: its members again, as "[UU_]". They do not count if both disagree."""
        array, evidence = self.arrays[self.last], cite()
        self.last = ""
        if places is None or (places[1:-1].count("U"), len(places) - 2) != (active, wanted) or not _PLACES(places):
            why = f"[{wanted}/{active}] and {places or 'nothing behind it'} do not agree"
            yield NotChecked(
                what="Array.missing",
                subject=array.key,
                reason=Reason.INCOMPLETE,
                path=evidence.source,
                detail=why,
                how="cat /proc/mdstat; mdadm --detail",
            )
            return
        listed = array.members
        if listed is not None and len(listed) - len(array.faulty or ()) < active:
            yield _fewer(array.key, listed, active, evidence)
            listed = None
        self.arrays[array.key] = Array(
            key=array.key,
            level=array.level,
            state=array.state,
            members=listed,
            faulty=array.faulty,
            wanted=wanted,
            missing=max(0, wanted - active),
            cites={**array.cites, "wanted": evidence, "missing": evidence},
        )

    def _block(self, found: re.Match[str], cite: _Cite) -> Iterator[Record]:
        """A line of lsblk's tree: a disk, or a partition below it. Devices on top of them are left out."""
        depth, name, kind = len(found[1]), found[2], found[3]
        while self.disks and self.disks[-1][0] >= depth:
            self.disks.pop()
        above = self.disks[-1][1] if self.disks else None
        self.disks.append((depth, name))
        if kind == "disk":
            yield Disk(key=name)
        elif kind == "part" and (above := _whole_of(name) or above):
            yield Disk(key=name, partition_of=above, cites={"partition_of": cite()})
        if found[4]:
            yield from _mount(found[4], f"/dev/{name}", None, cite, {})

    def _nvme(self, line: str, cite: _Cite) -> Iterator[Record]:
        """A row of nvme list. The dashes above give the column widths. The third or fourth column is the model."""
        if _is_heading(line):
            self.heading = line
        elif line.lstrip().startswith("--"):
            columns = [found.span() for found in re.finditer("-+", line)]
            aligned = all(re.match(r"\S", self.heading[begin:]) for begin, _ in columns)
            named = (one for one in columns if aligned and self.heading[slice(*one)].strip() == "Model")
            usual = columns[len(columns) - 5] if not self.heading and len(columns) in (7, 8) else (0, 0)
            self.heading, self.model = "", next(named, usual)
        elif found := _NVME.match(line):
            model = line[slice(*self.model)].strip()
            if model and model.isprintable():
                yield Disk(key=found[1], model=model, cites={"model": cite()})


def _is_heading(line: str) -> bool:
    """Whether the line has the names of the columns of nvme list."""
    return "Model " in line and "Namespace" in line


def _whole_of(partition: str) -> str | None:
    """The disk of a partition, by the names of the kernel (block/genhd: "p" if the disk ends in a digit)."""
    found = re.fullmatch(r"((?:nvme\d+n|mmcblk|md|nbd|loop)\d+)p\d+|((?:sd|vd|xvd|hd)[a-z]{1,3})\d+", partition)
    return (found[1] or found[2]) if found else None


def _level(line: str) -> str:
    """The level that the second line of an array states. Else only levels with redundancy count members."""
    found = re.search(r" level (\d{1,2}),", line)
    return f"raid{found[1]}" if found else "raid"


def _fewer(array: str, listed: Sequence[str], active: int, evidence: Evidence) -> NotChecked:
    why = f"the line of the array names {', '.join(listed) or 'no disk'}, and {active} are active: a name is missing"
    return NotChecked(what="Array.members", subject=array, reason=Reason.CONTRADICTED, path=evidence.source, detail=why)


def _controller(found: re.Match[str], cite: _Cite) -> Nvme:
    """A controller row of nvme list -v."""
    fields = {"model": found["model"].strip(), "firmware": found["firmware"], "transport": found["transport"]}
    fields["address"] = found["address"] or ""
    known: dict[str, Any] = {name: value for name, value in fields.items() if value and value.isprintable()}
    return Nvme(key=found["name"], cites=dict.fromkeys(known, cite()), **known)


def _mount(point: str, device: str, fstype: str | None, cite: _Cite, known: Mapping[str, Any]) -> Iterator[Record]:
    """A file system that stores data. df without -T prints the type as the device of a virtual file system."""
    virtual = fstype or (device if device in ("tmpfs", "overlay", "zfs") else "tmpfs" if device == "shm" else None)
    fact = Mount(key=point, device=device, fstype=virtual, **known)
    shared = known.get("size", 0) >= _SHARED and re.fullmatch(r"[\w.-]{1,80}", device) and device not in _VIRTUAL
    remote = fstype is None and (":/" in device or bool(shared))
    if not device.startswith("/dev/loop") and (remote or is_job_storage(fact)):
        names = ("device", "fstype", "size", "free", "read_only")
        cites = dict.fromkeys((name for name in names if getattr(fact, name) is not None), cite())
        yield Mount(key=point, device=device, fstype=virtual, cites=cites, **known)


def _bytes(text: str, unit: int) -> int | None:
    """Bytes of "1048576" (blocks) or "1.8T" (-h, rounded). None: a size of -h whose unit is missing."""
    found = re.fullmatch(r"([0-9]{1,18}(?:[.,][0-9])?)([KMGTP]?)", text)
    if not found or (unit == 1 and not found[2] and found[1] != "0"):
        return None
    return int(float(found[1].replace(",", ".")) * _UNITS.get(found[2], 1) * unit)
