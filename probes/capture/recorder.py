"""Recording a machine while sources read it. The recording contains exactly what they read."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Mapping

from ...models.facts.jsonl import encode
from ...models.facts.records import Record
from ...models.report import Origin
from ..calls.registry import CALLS
from ..host.entries import NOT_RECORDED, UNASKED, UNLISTED, Entry, Folder, Link, UnreadableFile
from ..host.host import Host, Unreadable
from ..host.recorded import Names, Recorded
from ..kernel_log.ring_buffer import KMSG, STAT, boot_line, relevant
from ..system.cloud_init import INSTANCE_DATA, instance_type_alone
from ..system.container import CGROUP, cgroup_marks
from ..system.cpu import CPUINFO, processor_lines
from ..system.job_variables import ENVIRON, known_variables
from ..system.settings import STATUS, status_lines

# Replaces the ID of the reading process, so that recordings of one machine are equal.
_PROCESS = re.compile(r"proc/[0-9]+(?=/|$)")
# Only the evaluated part of these files is recorded: the rest is private.
_PARTS = {
    CGROUP: cgroup_marks,
    CPUINFO: processor_lines,
    ENVIRON: known_variables,
    INSTANCE_DATA: instance_type_alone,
    KMSG: relevant,
    STAT: boot_line,
    STATUS: status_lines,
}
_ID_LINE = re.compile(r"^PCI_(?:SUBSYS_)?ID=([0-9A-F]{4}):([0-9A-F]{4})$", re.MULTILINE)
_ID_FILES = ("/vendor", "/device", "/subsystem_vendor", "/subsystem_device")


class Recording:
    """A Host that forwards all reads to another Host and stores the results. recorded() returns equal results."""

    def __init__(self, host: Host) -> None:
        self.origin: Origin = host.origin
        self._host = host
        self._taken = int(host.now())
        self._entries: dict[str, Entry] = {}
        self._listed: dict[str, Names] = {}
        self._missing: set[str] = set()
        self._resolved: dict[str, str | None] = {}
        self._calls: dict[tuple[str, ...], tuple[str, ...]] = {}

    def read(self, path: str) -> str | None:
        try:
            text = self._host.read(path)
        except Unreadable as refusal:
            self._refuse(path, refusal)
            raise
        place = self._resolve(path)
        if place is not None and text is not None:
            self._entries[place] = text
        return text

    def list(self, path: str) -> Names:
        try:
            names = self._host.list(path)
        except Unreadable as refusal:
            self._refuse(path, refusal, folder=True)
            raise
        place = self._resolve(path)
        if place is not None and isinstance(self._entries[place], Folder):
            self._entries[place] = Folder()
            self._listed[place] = names
        return names

    def resolve(self, path: str) -> str | None:
        return self._resolve(path)

    def call(self, what: str, *args: str, deadline: float) -> Iterator[Record]:
        """Forward the call. A measurement that runs again adds its results; of another call, the last results stay."""
        lines: list[str] = []
        try:
            for record in self._host.call(what, *args, deadline=deadline):
                lines.append(encode(record))
                yield record
        finally:
            before = self._calls.get((what, *args), ()) if what in CALLS and CALLS[what].measures else ()
            self._calls[(what, *args)] = (*before, *lines)

    def now(self) -> float:
        return self._host.now()

    def recorded(self) -> Recorded:
        """Return the reads so far, and the names of all entries in listed folders."""
        entries = dict(self._entries)
        known: set[str] = set()
        for path in entries:
            while path not in known:
                known.add(path)
                path = path.rpartition("/")[0]
        for folder, names in self._listed.items():
            for name in names:
                path = f"{folder}/{name}" if folder else name
                if path not in known:
                    entries[path] = Link("") if path in self._missing else UNASKED
        for path, entry in self._entries.items():
            if isinstance(entry, str) and path.endswith("/pci.ids"):
                entries[path] = _reduced(entry, entries)
        for path, part in _PARTS.items():
            place = self._resolved.get(path) or path
            if isinstance(text := entries.get(place), str):
                entries[place] = part(text)
        return Recorded(self._taken, entries, dict(self._calls))

    def _resolve(self, path: str) -> str | None:
        """Return the resolved path; None if it does not exist. Stores the links on the path."""
        if path in self._resolved:
            return self._resolved[path]
        folder, _, name = path.rpartition("/")
        above = self._resolve(folder) if path else ""
        here = f"{above}/{name}" if above else name
        try:
            place = self._host.resolve(path)
        except Unreadable as refusal:
            self._entries[here] = Link(UnreadableFile(refusal.code, refusal.why))
            raise
        if place is None:
            self._missing.add(here)
        else:
            place = place if _PROCESS.match(path) else _PROCESS.sub("proc/self", place)
            self._entries.setdefault(place, UNLISTED)
            if place != here and above is not None and name not in ("", ".", ".."):
                self._entries[here] = Link(f"/{place}")
        self._resolved[path] = place
        return place

    def _refuse(self, path: str, refusal: Unreadable, folder: bool = False) -> None:
        """Store the refusal to read a file or to list a folder."""
        refused = UnreadableFile(refusal.code, refusal.why)
        try:
            place = self._resolve(path)
            if refusal.code == errno.EISDIR and not folder:
                self.list(path)  # so that it is stored as a folder
            elif place is None or refused == NOT_RECORDED or self._listed.get(place):
                return
            elif folder:
                self._entries[place] = Folder(refused)
            elif self._entries[place] in (UNLISTED, Folder()):
                self._entries[place] = refused
        except Unreadable:
            return  # stored at the path component that refused


def _reduced(pci_ids: str, entries: Mapping[str, Entry]) -> str:
    """Reduce pci.ids, with 40,000 lines, to the vendors, devices and subsystems of the machine."""
    texts = [(path, entry) for path, entry in entries.items() if isinstance(entry, str)]
    ids = {text[2:] for path, text in texts if path.endswith(_ID_FILES)}
    uevents = (text for path, text in texts if path.endswith("/uevent"))
    ids |= {number.lower() for text in uevents for pair in _ID_LINE.findall(text) for number in pair}
    lines = ["# The part of pci.ids that is about this machine"]
    keeps = [False, False, False]  # whether to keep the current vendor, device and subsystem lines
    for line in pci_ids.split("\n"):
        level = len(line) - len(line.lstrip("\t"))
        words = line.split(maxsplit=2 if level == 2 else 1)
        if level > 2 or len(words) != max(2, level + 1) or line[0] == "#":
            continue
        keeps[level] = (level == 0 or keeps[level - 1]) and ids.issuperset(words[:-1])
        keeps[level + 1 :] = [False] * (2 - level)
        if keeps[level]:
            lines.append(line)
    return "\n".join(lines)
