"""Recording a machine while sources ask it: what they asked is what the record holds."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Mapping

from ...models.facts.jsonl import encode
from ...models.facts.records import Record
from ...models.report import Origin
from ..host.entries import NOT_RECORDED, UNASKED, UNLISTED, Entry, Folder, Link, Refused
from ..host.host import Host, Unreadable
from ..host.recorded import Names, Recorded
from ..kernel_log.ring_buffer import KMSG, STAT, boot_line, relevant
from ..system.cloud_init import INSTANCE_DATA, instance_type_alone
from ..system.container import CGROUP, cgroup_marks
from ..system.settings import STATUS, status_lines

# Files lie in the folder of whichever process asked; its number would make every record of one machine another one.
_PROCESS = re.compile(r"proc/[0-9]+(?=/|$)")
_PARTS = {
    CGROUP: cgroup_marks,
    INSTANCE_DATA: instance_type_alone,
    KMSG: relevant,
    STAT: boot_line,
    STATUS: status_lines,
}  # of these only what is read: the rest is its owner's business
_ID_LINE = re.compile(r"^PCI_(?:SUBSYS_)?ID=([0-9A-F]{4}):([0-9A-F]{4})$", re.MULTILINE)
_ID_FILES = ("/vendor", "/device", "/subsystem_vendor", "/subsystem_device")


class Recording:
    """A Host that passes everything on to another one and remembers it; recorded() answers the same questions alike."""

    def __init__(self, host: Host) -> None:
        self.origin: Origin = host.origin
        self._host = host
        self._taken = int(host.now())
        self._entries: dict[str, Entry] = {}
        self._listed: dict[str, Names] = {}
        self._gone: set[str] = set()
        self._places: dict[str, str | None] = {}
        self._calls: dict[tuple[str, ...], tuple[str, ...]] = {}

    def read(self, path: str) -> str | None:
        try:
            text = self._host.read(path)
        except Unreadable as refusal:
            self._refuse(path, refusal)
            raise
        place = self._place(path)
        if place is not None and text is not None:
            self._entries[place] = text
        return text

    def list(self, path: str) -> Names:
        try:
            names = self._host.list(path)
        except Unreadable as refusal:
            self._refuse(path, refusal, folder=True)
            raise
        place = self._place(path)
        if place is not None and isinstance(self._entries[place], Folder):
            self._entries[place] = Folder()
            self._listed[place] = names
        return names

    def resolve(self, path: str) -> str | None:
        return self._place(path)

    def call(self, what: str, *args: str, deadline: float) -> Iterator[Record]:
        lines: list[str] = []
        try:
            for said in self._host.call(what, *args, deadline=deadline):
                lines.append(encode(said))
                yield said
        finally:
            self._calls[(what, *args)] = tuple(lines)

    def now(self) -> float:
        return self._host.now()

    def recorded(self) -> Recorded:
        """What was asked so far, and the names of what stood beside it in folders that were listed."""
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
                    entries[path] = Link("") if path in self._gone else UNASKED
        for path, entry in self._entries.items():
            if isinstance(entry, str) and path.endswith("/pci.ids"):
                entries[path] = _cut_down(entry, entries)
        for path, part in _PARTS.items():
            place = self._places.get(path) or path
            if isinstance(text := entries.get(place), str):
                entries[place] = part(text)
        return Recorded(self._taken, entries, dict(self._calls))

    def _place(self, path: str) -> str | None:
        """Where the path really is; None: not here. Remembers the links on the way, and that something is there."""
        if path in self._places:
            return self._places[path]
        folder, _, name = path.rpartition("/")
        above = self._place(folder) if path else ""
        here = f"{above}/{name}" if above else name
        try:
            place = self._host.resolve(path)
        except Unreadable as refusal:
            self._entries[here] = Link(Refused(refusal.code, refusal.why))
            raise
        if place is None:
            self._gone.add(here)
        else:
            place = place if _PROCESS.match(path) else _PROCESS.sub("proc/self", place)
            self._entries.setdefault(place, UNLISTED)
            if place != here and above is not None and name not in ("", ".", ".."):
                self._entries[here] = Link(f"/{place}")
        self._places[path] = place
        return place

    def _refuse(self, path: str, refusal: Unreadable, folder: bool = False) -> None:
        """Remember that a path would not say: as a file, or as a folder that was to be listed."""
        refused = Refused(refusal.code, refusal.why)
        try:
            place = self._place(path)
            if refusal.code == errno.EISDIR and not folder:
                self.list(path)  # so that it is known for a folder
            elif place is None or refused == NOT_RECORDED or self._listed.get(place):
                return
            elif folder:
                self._entries[place] = Folder(refused)
            elif self._entries[place] in (UNLISTED, Folder()):
                self._entries[place] = refused
        except Unreadable:
            return  # remembered where the way ended


def _cut_down(pci_ids: str, entries: Mapping[str, Entry]) -> str:
    """Of pci.ids, the vendors, devices and subsystems that the machine has: some lines of 40,000."""
    texts = [(path, entry) for path, entry in entries.items() if isinstance(entry, str)]
    ids = {text[2:] for path, text in texts if path.endswith(_ID_FILES)}
    uevents = (text for path, text in texts if path.endswith("/uevent"))
    ids |= {number.lower() for text in uevents for pair in _ID_LINE.findall(text) for number in pair}
    lines = ["# The part of pci.ids that is about this machine"]
    keeps = [False, False, False]  # a vendor's line, a device's below it, a subsystem's below that
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
