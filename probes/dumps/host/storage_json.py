"""lsblk --json and nvme list --output-format=json."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ....models.facts.machine import Disk, Mount, Nvme
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, NotChecked, Record
from ...storage.mounts import is_job_storage
from ..core.json_pieces import beginning_is_missing, pieces
from ..core.json_values import documents, list_of, object_of
from ..core.part import Part

ANY_LINE = (
    r"^[ \t]*(?:\{[ \t]*)?(?:\"name\"[ ]?:[ ]?\"(?:/dev/)?(?:nvme|sd[a-z]|vd[a-z]|md|dm-|loop|mmcblk)"
    r"|\"DevicePath\"[ ]?:[ ]?\"/dev/nvme)"
)
BEGIN = r"^[ \t]*\{\s{0,20}\"(?:blockdevices|Devices)\"[ ]{0,2}:\s{0,20}\["
_DOCUMENT = re.compile(BEGIN, re.MULTILINE)
_OBJECT = re.compile(r"\{")
_NAME = re.compile(r"(?:/dev/)?([a-z][\w.!-]{1,40})")
_FUNCTION = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_DEEPEST = 8  # levels of disk, partition, array, volume ...


def read(part: Part) -> Iterator[Record]:
    """A `Disk` per device and partition, and mounted file systems. A truncated text gives none."""
    end = 0
    if not _DOCUMENT.search(part.text):
        yield beginning_is_missing(part)
        yield from _of_pieces(part, 0)
        return
    for document in documents(part, _OBJECT):
        if isinstance(document, NotChecked):
            yield document
            yield from _of_pieces(part, end)
            return
        end = document.end
        yield from _document(object_of(document.value), Evidence(part.where(document.line), ""))
    if part.text[end:].strip():
        line = part.where(part.text.count("\n", 0, end)).rpartition(":")[2]
        yield NotChecked(
            what="dump",
            subject=part.file,
            reason=Reason.UNREADABLE,
            detail=f"line {line}: the text after the JSON document was not read",
        )


def _of_pieces(part: Part, start: int) -> Iterator[Record]:
    for one, line in pieces(part, start):
        yield from _document(one, Evidence(part.where(line), ""))


def _document(one: dict[str, Any], cite: Evidence) -> Iterator[Record]:
    """A whole document, or an object of an incomplete one."""
    devices = [object_of(other) for other in list_of(one.get("blockdevices"))]
    for other in devices or [one]:
        yield from _block(other, None, cite, 0)
    for other in map(object_of, list_of(one.get("Devices"))) if "Devices" in one else (one,):
        yield from _nvme(other, cite)
        yield from _controllers(other, cite)


def _block(one: dict[str, Any], above: str | None, cite: Evidence, depth: int) -> Iterator[Record]:
    """A device of lsblk and its child devices."""
    name, kind = _NAME.fullmatch(_text(one.get("name")) or ""), _text(one.get("type"))
    if not name or depth > _DEEPEST:
        return
    cited = Evidence(cite.source, f"{name[1]} {kind or ''}".rstrip())
    if kind in ("disk", "part"):
        fields: dict[str, Any] = {
            "size": _size(one.get("size")),
            "model": _text(one.get("model")),
            "rotational": _flag(one.get("rota")),
            "partition_of": above if kind == "part" else None,
        }
        known = {field: value for field, value in fields.items() if value is not None}
        yield Disk(key=name[1], cites=dict.fromkeys(known, cited), **known)
    points = one.get("mountpoints")
    for point in (one.get("mountpoint"), *list_of(points)):
        place = _text(point) or ""
        if place.startswith("/") and kind != "loop" and not name[1].startswith("loop"):
            mount = Mount(key=place, device=f"/dev/{name[1]}", fstype=_text(one.get("fstype")))
            if is_job_storage(mount):
                cites = {"device": cited, **({"fstype": cited} if mount.fstype else {})}
                yield Mount(key=place, device=mount.device, fstype=mount.fstype, cites=cites)
    for child in map(object_of, list_of(one.get("children"))):
        yield from _block(child, name[1], cite, depth + 1)


def _nvme(one: dict[str, Any], cite: Evidence) -> Iterator[Record]:
    """A namespace of nvme list."""
    name, model = _NAME.fullmatch(_text(one.get("DevicePath")) or ""), _text(one.get("ModelNumber"))
    if name:
        fields: dict[str, Any] = {"model": model, "size": _size(one.get("PhysicalSize"))}
        known = {field: value for field, value in fields.items() if value is not None}
        yield Disk(key=name[1], cites=dict.fromkeys(known, Evidence(cite.source, f"{name[1]} {model}")), **known)


def _controllers(host: dict[str, Any], cite: Evidence) -> Iterator[Record]:
    """Subsystems of nvme list (nvme-cli 2) or nvme list -v: controllers with their namespaces.

    The tool lists a shared namespace beside the controllers, not below them.
    """
    for subsystem in map(object_of, list_of(host.get("Subsystems"))):
        controllers = [object_of(one) for one in list_of(subsystem.get("Controllers"))]
        only = _text(controllers[0].get("Controller")) if len(controllers) == 1 else None
        yield from _namespaces(subsystem, only, controllers[0] if only else {}, cite)
        for one in controllers:
            name = _text(one.get("Controller"))
            if not name or not re.fullmatch("nvme[0-9]{1,5}", name):
                continue
            fields: dict[str, Any] = {
                "address": _address(one.get("Address")),
                "model": _text(one.get("ModelNumber")),
                "firmware": _text(one.get("Firmware")),
                "transport": _text(one.get("Transport")),
            }
            known = {field: value for field, value in fields.items() if value is not None}
            cited = Evidence(cite.source, f"{name} {known.get('model')}")
            yield Nvme(key=name, cites=dict.fromkeys(known, cited), **known)
            yield from _namespaces(one, name, one, cite)


def _namespaces(above: dict[str, Any], controller: str | None, one: dict[str, Any], cite: Evidence) -> Iterator[Record]:
    for namespace in map(object_of, list_of(above.get("Namespaces"))):
        name = _NAME.fullmatch(_text(namespace.get("NameSpace")) or "")
        if name:
            fields: dict[str, Any] = {
                "model": _text(one.get("ModelNumber")),
                "size": _size(namespace.get("PhysicalSize")),
                "controller": controller,
            }
            known = {field: value for field, value in fields.items() if value is not None}
            yield Disk(key=name[1], cites=dict.fromkeys(known, Evidence(cite.source, name[1])), **known)


def _address(value: object) -> str | None:
    """The PCI address of a local controller."""
    return value if isinstance(value, str) and _FUNCTION.fullmatch(value) else None


def _text(value: object) -> str | None:
    return value.strip() or None if isinstance(value, str) and value.isprintable() and len(value) < 500 else None


def _size(value: object) -> int | None:
    """Bytes, if the value is a number. Without --bytes, lsblk prints rounded texts."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63 else None


def _flag(value: object) -> bool | None:
    """A flag. Older versions of lsblk put numbers in quotes."""
    if isinstance(value, str):
        return {"0": False, "1": True}.get(value)
    return value if isinstance(value, bool) else None
