"""Linux software RAID from sysfs (kernel documentation, admin-guide/md)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...models.facts.machine import Array
from ...models.facts.records import Record
from ..host.host import Host, Unreadable
from ..parsing.parsers import count, shown, word
from ..sysfs.fact_reader import FactReader

_BLOCK = "sys/class/block"
_MEMBER = "dev-"


def read_arrays(host: Host) -> Iterator[Record]:
    """Yield an `Array` for each md device. Without a level it is being assembled, or it contains other arrays."""
    try:
        names = [name for name in host.list(_BLOCK) if name.startswith("md") and name.isprintable()]
    except Unreadable as refusal:
        yield refusal.missed("Array", "node", _BLOCK)
        return
    for name in names:
        folder = f"{_BLOCK}/{name}/md"
        try:
            files = host.list(folder)
        except Unreadable as refusal:
            yield refusal.missed("Array", name, folder)
            continue
        if files:  # partitions of an array have no md folder
            yield from _array(host, name, folder, files)


def _array(host: Host, name: str, folder: str, files: list[str]) -> Iterator[Record]:
    reading = FactReader(host, Array, name, folder)
    members = [file for file in files if file.startswith(_MEMBER) and file.isprintable()]
    reading.take("level", "level", word)
    reading.take("state", "array_state", word)
    reading.take("wanted", "raid_disks", _disks)
    reading.take("missing", "degraded", count)
    # The entry of a removed member remains, but without a link to its disk.
    links = {member: reading.target("members", f"{member}/block") for member in members}
    disks = {member: link or member[len(_MEMBER) :] for member, link in links.items()}
    reading.set(members=tuple(disks.values()))
    faulty = {disk: _is_faulty(host, reading, f"{folder}/{member}/state") for member, disk in disks.items()}
    if not reading.missed("members"):
        faulty.update({disks[member]: True for member, link in links.items() if link is None})
    if any(faulty.values()) or None not in faulty.values():
        reading.set(faulty=tuple(disk for disk, is_faulty in faulty.items() if is_faulty))
    yield from reading.records()


def _is_faulty(host: Host, reading: FactReader, path: str) -> bool | None:
    """Whether the kernel has marked a member as faulty; None if unknown."""
    try:
        state = host.read(path)
    except Unreadable as refusal:
        reading.refused("faulty", path, refusal)
        return None
    return "faulty" in (state or "").split(",")


def _disks(text: str) -> int:
    """Parse "4", or "5 (4)" while an array of 4 disks is reshaped to 5."""
    if not (match := re.fullmatch(r"([0-9]{1,6})(?: \([0-9]{1,6}\))?", text)):
        raise ValueError(f"{shown(text)} is not a number of disks")
    return int(match[1])
