"""Reducing a recording to data about links: nothing remains that is not known to be harmless.

Numbered stand-ins of the same shape replace hardware addresses, GUIDs and GIDs, UUIDs, IP addresses, serial numbers,
the host name, file servers and their exports, and names of users and of the programs of jobs, in paths, texts, links
and calls. The stand-in "some-word-1" replaces every other word that is not known (harmless.py). Each original always
has the same stand-in. Stand-ins are not replaced again, so scrubbing twice has the same result as scrubbing once.
Values that only look similar remain: PCI addresses, versions, masks, universal addresses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ..host.entries import Entry, Folder, Link, UnreadableFile
from ..host.recorded import Recorded
from ..kernel_log.ring_buffer import KMSG
from ..parsing.harmless import Place, reduced
from ..parsing.identifiers import Identities, has_shape, servers
from ..parsing.known_words import known_words
from .mount_table import TABLES, reduced_table, words_of

_HOSTNAME = "proc/sys/kernel/hostname"
_SERIALS = (
    "serial",
    "serial_number",
    "product_serial",
    "board_serial",
    "chassis_serial",
    "board_asset_tag",
    "chassis_asset_tag",
)
_CLOUD_TAG = "7783-7084-3265-9085-8269-3286-77"  # identical on every Azure machine (systemd, src/basic/virt.c)
_STAND_IN = re.compile("SERIAL[0-9]{4,}")
_NETWORK = re.compile(r"nfs4?|cifs|smb3|lustre|ceph|fuse\..+")
# Files and fields with the manufacturer's text about a device.
_PRODUCT_TEXT = """
    model firmware firmware_rev fw_ver fw_version board_id hca_type bios_version bios_vendor board_name board_vendor
    product_name sys_vendor cpuinfo name board_part vbios part product board bios vendor version nvml driver library
    kernel osrelease
"""
_PRODUCTS = frozenset(_PRODUCT_TEXT.split())
_SENTENCES = ("detail", "how")  # fields of a NotChecked
_KMSG_HEAD = re.compile("[^;]*;")
_PUBLIC = "/pci.ids"  # a list that distributions publish, reduced to the devices of this machine
# In these files and fields four numbers are a version, not an address.
_VERSION = re.compile(r"fw|firmware|version|rev$|release|bios|kernel")


def scrub(recorded: Recorded) -> Recorded:
    """Return the recording without identifying data."""
    identities = Identities(_names(recorded.entries))
    identities.learning = True
    _changed(recorded, identities)
    identities.learning = False
    return _changed(recorded, identities)


def _names(entries: Mapping[str, Entry]) -> Mapping[str, str]:
    """Return the words that identify this machine in any text, with their kinds.

    If the host name is also a common path component or a known word ("nvidia", "p4d"), it is replaced only in its own
    file.
    """
    common = {word for path in entries for cut in ("/", "[^a-z0-9]+") for word in re.split(cut, path.lower())}
    texts = {path: entry for path, entry in entries.items() if isinstance(entry, str)}
    hostname = texts.get(_HOSTNAME, "")
    found = {hostname: "node", hostname.partition(".")[0]: "node"}
    for path, text in texts.items():
        if (serial := _serial(path, text)) and len(serial) >= 6:
            found.setdefault(serial, "serial")
        for device in _network_devices(path, text):
            found.update(dict.fromkeys(servers(device), "server"))
            found[device] = "device"
        if TABLES.fullmatch(path):
            for word in words_of(text):
                found.setdefault(word, "word")
    return {
        name: kind
        for name, kind in found.items()
        if len(name) >= 3
        and re.search("[A-Za-z/]", name)
        and name.lower() not in common
        and not (kind == "node" and name.lower() in known_words())
    }


def _serial(path: str, text: str) -> str | None:
    """Return the serial number in a file; None for placeholders ("Not Specified") and for values of another shape."""
    name = path.rpartition("/")[2]
    serial = text.rpartition(":")[2] if name == "subsysnqn" else text.strip() if name in _SERIALS else ""
    if stand_in := _STAND_IN.search(serial):
        serial = stand_in[0]  # only the stand-in is the serial number, not the text around it
    known = len(serial) >= 4 and "some-word-" not in serial and re.search("[0-9]", serial) and "\n" not in serial
    return serial if known and serial != _CLOUD_TAG and not has_shape(serial) else None


def _network_devices(path: str, text: str) -> Iterator[str]:
    """Yield the devices of network file systems in a table of mounts."""
    if path.endswith("/mounts"):
        for line in text.splitlines():
            device, _, fstype, *_ = *line.split(" "), "", "", ""
            if _NETWORK.fullmatch(fstype) and (":/" in device or device.startswith("//")):
                yield device


def _changed(recorded: Recorded, identities: Identities) -> Recorded:
    entries = {
        _harmless(f"/{path}", identities)[1:]: _entry(path, entry, identities)
        for path, entry in sorted(recorded.entries.items(), key=lambda item: item[0])
    }
    calls = {
        tuple(_harmless(word, identities) for word in call): tuple(_line(line, identities) for line in lines)
        for call, lines in sorted(recorded.calls.items())
    }
    return Recorded(recorded.taken, entries, calls)


def _harmless(text: str, identities: Identities, place: Place = "state", version: bool = False) -> str:
    return reduced(identities.scrubbed(text, version), place, lambda word: identities.of("word", word))


def _entry(path: str, entry: Entry, identities: Identities) -> Entry:
    if isinstance(entry, UnreadableFile):
        return _refused(entry, identities)
    if isinstance(entry, Folder):
        return Folder(entry.refused and _refused(entry.refused, identities))
    if isinstance(entry, Link):
        target = entry.target
        return Link(
            _refused(target, identities) if isinstance(target, UnreadableFile) else _harmless(target, identities)
        )
    if path == _HOSTNAME and entry:
        return identities.of("node", entry.partition(".")[0])
    if serial := _serial(path, entry):
        entry = entry.replace(serial, identities.of("serial", serial))
    if TABLES.fullmatch(path):
        return reduced_table(entry, identities.device, lambda word: identities.of("word", word))
    if path.endswith(_PUBLIC):
        return identities.scrubbed(entry)
    if path == KMSG:
        return "\n".join(_record(line, identities) for line in entry.split("\n"))
    name = path.rpartition("/")[2]
    place: Place = "product" if name in _PRODUCTS else "state"
    return _harmless(entry, identities, place, bool(_VERSION.search(name)))


def _refused(refused: UnreadableFile, identities: Identities) -> UnreadableFile:
    return UnreadableFile(refused.code, _harmless(refused.why, identities))


def _record(line: str, identities: Identities) -> str:
    """Reduce the text of a record of /dev/kmsg. Its head has the priority, number and time."""
    head = _KMSG_HEAD.match(line)
    start = head.end() if head else 0
    return line[:start] + _harmless(line[start:], identities, "log")


def _line(line: str, identities: Identities) -> str:
    """Scrub the strings in the JSON line of a record."""
    decoded = msgspec.json.decode(line)
    kind, fields = decoded
    if kind == "Serial" and fields.get("number"):
        fields = {**fields, "number": identities.of("serial", fields["number"])}
    scrubbed = [kind, _value(fields, "", identities, "log" if kind == "Event" else "state")]
    return line if scrubbed == decoded else msgspec.json.encode(scrubbed).decode()


def _value(value: Any, field: str, identities: Identities, place: Place) -> Any:
    if isinstance(value, str):
        if field in _SERIALS and value:
            return identities.of("serial", value)
        known: Place = "product" if field in _PRODUCTS and place == "state" else place
        if field in _SENTENCES:
            known = "log"
        return _harmless(value, identities, known, bool(_VERSION.search(field)))
    if isinstance(value, list):
        return [_value(one, field, identities, place) for one in value]
    if isinstance(value, dict):
        # The text that a field cites has the shape of the field.
        return {name: _value(one, field if name == "text" else name, identities, place) for name, one in value.items()}
    return value
