"""The switch and its port behind each network device, from LLDP: lldpctl(8), else networkctl(1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ..measure.external_tools import ToolFailed, found, run

_SECONDS = 3.0
_MOST = 255  # characters of a name: IEEE 802.1AB, 8.5


def neighbours() -> Mapping[str, tuple[str, str | None]]:
    """Network device -> switch and port of the switch. Empty: no program listens for LLDP."""
    for program, arguments, read in (
        ("lldpctl", ("-f", "json"), read_lldpctl),
        ("networkctl", ("--json=short", "--no-pager", "lldp"), read_networkctl),
    ):
        path = found(program)
        if path is None:
            continue
        try:
            if known := read(run([path, *arguments], _SECONDS)):
                return known
        except (ToolFailed, ValueError):
            continue
    return {}


def read_lldpctl(text: str) -> dict[str, tuple[str, str | None]]:
    """The output of `lldpctl -f json`. Raises ValueError if it is not JSON."""
    known = {}
    for device, one in _entries(_at(msgspec.json.decode(text.encode()), "lldp", "interface")):
        chassis = _at(one, "chassis")
        # {"leaf1": {"id": …}}; a chassis without a name is {"id": …, "descr": …}.
        switch = _text(_at(chassis, "id", "value")) or (
            next(iter(chassis), None) if isinstance(chassis, dict) else None
        )
        port = _text(_at(one, "port", "id", "value")) or _text(_at(one, "port", "descr"))
        if switch:
            known[device] = switch[:_MOST], port
    return known


def read_networkctl(text: str) -> dict[str, tuple[str, str | None]]:
    """The output of `networkctl lldp` as JSON. Raises ValueError if it is not JSON."""
    known = {}
    for one in _list(_at(msgspec.json.decode(text.encode()), "Neighbors")):
        device = _text(_at(one, "InterfaceName"))
        for neighbour in _list(_at(one, "Neighbors")):
            switch = _text(_at(neighbour, "SystemName")) or _text(_at(neighbour, "ChassisID"))
            if device and switch:
                known[device] = switch, _text(_at(neighbour, "PortID"))
    return known


def _entries(interfaces: Any) -> Iterator[tuple[str, Any]]:
    """Lldpctl gives a list of objects with one device each, or an object if there is only one device."""
    for one in _list(interfaces):
        if isinstance(one, dict):
            yield from one.items()


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _text(value: Any) -> str | None:
    return value[:_MOST] if isinstance(value, str) and value else None
