"""Removing data from a recording that identifies a machine or its owner. All data about links remains.

Numbered stand-ins of the same shape replace hardware addresses, GUIDs and GIDs, UUIDs, IP addresses, serial numbers,
the host name, file servers and their exports, and names of users and of the programs of jobs, in paths, texts, links
and calls. Each original always has the same stand-in. Stand-ins are not replaced again, so scrubbing twice has the same
result as scrubbing once. Values that only look similar remain: PCI addresses, versions, masks, universal addresses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ..host.entries import Entry, Folder, Link, Refused
from ..host.recorded import Recorded
from .identifiers import Identities, has_shape, servers

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

    If the host name is also a common path component ("nvidia", "net"), it is replaced only in its own file.
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
    return {
        name: kind
        for name, kind in found.items()
        if len(name) >= 3 and re.search("[A-Za-z/]", name) and name.lower() not in common
    }


def _serial(path: str, text: str) -> str | None:
    """Return the serial number in a file; None for placeholders ("Not Specified") and for values of another shape."""
    name = path.rpartition("/")[2]
    serial = text.rpartition(":")[2] if name == "subsysnqn" else text.strip() if name in _SERIALS else ""
    if stand_in := _STAND_IN.search(serial):
        serial = stand_in[0]  # only the stand-in is the serial number, not the text around it
    known = len(serial) >= 4 and re.search("[0-9]", serial) and "\n" not in serial
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
        identities.scrubbed(f"/{path}")[1:]: _entry(path, entry, identities)
        for path, entry in sorted(recorded.entries.items(), key=lambda item: item[0])
    }
    calls = {
        tuple(map(identities.scrubbed, call)): tuple(_line(line, identities) for line in lines)
        for call, lines in sorted(recorded.calls.items())
    }
    return Recorded(recorded.taken, entries, calls)


def _entry(path: str, entry: Entry, identities: Identities) -> Entry:
    if isinstance(entry, Refused):
        return Refused(entry.code, identities.scrubbed(entry.why))
    if isinstance(entry, Folder):
        return Folder(entry.refused and Refused(entry.refused.code, identities.scrubbed(entry.refused.why)))
    if isinstance(entry, Link):
        target = entry.target
        if isinstance(target, Refused):
            return Link(Refused(target.code, identities.scrubbed(target.why)))
        return Link(identities.scrubbed(target))
    if path == _HOSTNAME and entry:
        return identities.of("node", entry.partition(".")[0])
    if serial := _serial(path, entry):
        return entry.replace(serial, identities.of("serial", serial))
    return identities.scrubbed(entry, bool(_VERSION.search(path.rpartition("/")[2])))


def _line(line: str, identities: Identities) -> str:
    """Scrub the strings in the JSON line of a record."""
    decoded = msgspec.json.decode(line)
    scrubbed = _value(decoded, "", identities)
    return line if scrubbed == decoded else msgspec.json.encode(scrubbed).decode()


def _value(value: Any, field: str, identities: Identities) -> Any:
    if isinstance(value, str):
        return identities.scrubbed(value, bool(_VERSION.search(field)))
    if isinstance(value, list):
        return [_value(one, field, identities) for one in value]
    if isinstance(value, dict):
        return {name: _value(one, name, identities) for name, one in value.items()}
    return value
