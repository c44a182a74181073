"""Tools for RDMA devices and their ports: ibstat, ibstatus, ibv_devinfo, ibdev2netdev, rdma link, show_gids.

Manuals: ibstat(8), ibstatus(8), ibv_devinfo(1), rdma-link(8). GUIDs and GID addresses identify machines: not stored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from ....models.facts.machine import Gid, Net, Port, Rdma
from ....models.facts.records import Evidence, Fact, Record
from ....models.facts.units import from_gigabits
from ...parsing.parsers import count, hexadecimal, shown, word
from ..core.fields import FactCollector
from ..core.part import Part

Row: TypeAlias = "tuple[type[Fact], str, Callable[[str], Any]]"

_NAME = r"[\w.-]{1,64}"
_ADDRESS = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_DRIVERS = r"(?:mlx[45]_|i[bnr]|r[dox]|bnxt|efa|hns|siw)"  # the beginnings of device names
# Second line: ibv_devinfo without its beginning. Last lines: ibdev2netdev, with and without -v.
BEGIN = (
    rf"^[ \t]*(?:CA '{_NAME}'|Infiniband device '{_NAME}' port [0-9]|hca_id:[ \t]*\S|[0-9]{{1,3}} HCAs? found:|"
    r"phys_port_cnt:|active_width:|phys_state:[ \t]+[A-Z_]+ \(|GID\[ {0,2}[0-9]{1,5}\]:|"
    r"DEV[ \t]+PORT[ \t]+INDEX[ \t]+GID\b|"
    rf"[0-9]{{1,3}}: {_NAME}: node_type [a-z]|"
    rf"(?:[0-9]{{1,3}}/[0-9]{{1,3}}: |link ){_NAME}/[0-9]{{1,3}}:?[ ]{{1,12}}"
    rf"(?:subnet_prefix [^\n]{{1,120}})?state [A-Z]+ physical_state "
    rf"|(?:{_ADDRESS} )?{_DRIVERS}\w{{1,60}}[ ]{{1,12}}(?:\([^\n]{{1,160}} )?port[ ]{{1,12}}[0-9]"
    r"[0-9]{0,2}[ ]{1,12}(?:\([A-Z]{1,9} {0,6}\) {1,12})?==> )"
)
# Lines of ibstat, ibstatus, ibv_devinfo and show_gids without the device and the port above them.
_STATE = r"(?:[0-9]: )?(?:PORT_)?(?i:active|down|init|initializing|armed)(?: \([0-9]\))?"
ANY_LINE = (
    rf"^[ \t]*(?:[Ss]tate:[ \t]+{_STATE}|(?:Physical state|phys state|phys_state):[ \t]+\S|[Ll]ink[ _]layer:[ \t]+[IE]"
    r"|Rate:[ \t]+[0-9]{1,4}|rate:[ \t]+[0-9]{1,4}(?:\.[0-9])? Gb/sec|active_(?:mtu|speed):[ \t]+[0-9]"
    r"|(?:port_|[Bb]ase )lid:[ \t]+[0-9]|CA type: MT|(?:fw_ver|Firmware version):[ \t]+[0-9]|board_id:[ \t]+[A-Z]"
    rf"|vendor_id:[ \t]+0x|{_DRIVERS}\w{{1,60}}[ \t]+[0-9]{{1,3}}[ \t]+[0-9]{{1,5}}[ \t]+[0-9a-f]{{4}}:)"
)
_UNNAMED_DEVICE, _UNNAMED = "hca", "port"
_HEADING = re.compile(
    rf"CA '(?P<ca>{_NAME})'|Infiniband device '(?P<device>{_NAME})' port (?P<number>[0-9]{{1,3}}) status:|"
    rf"hca_id:\s*(?P<hca>{_NAME})|(?:Port (?P<port>[0-9]{{1,3}}):|port:\s*(?P<small>[0-9]{{1,3}}))\s*$"
)
_FIELD = re.compile(r"(?P<name>[A-Za-z_]+(?: [a-z]+)?):\s*(?P<value>\S.*)")
_GUID = re.compile(
    r"(?:(?P<card>System image GUID|sys_image_guid)|Node GUID|node_guid):\s*(?P<digits>[0-9a-fA-Fx:]{16,22})$"
)
_GID = re.compile(
    r"GID\[ {0,2}(?P<index>[0-9]{1,5})\]:\s*(?P<gid>[0-9a-fA-F:.]{2,45})(?:, (?P<version>(?:IB/)?RoCE v[12]|IB))?"
)
_SHOWN_GID = re.compile(
    rf"(?P<device>{_NAME})\s+(?P<port>[0-9]{{1,3}})\s+(?P<index>[0-9]{{1,5}})\s+(?P<gid>[0-9a-fA-F:]{{15,39}})\s+"
    rf"(?:[0-9.]{{7,15}}\s+)?v(?P<version>[12])(?:\s+(?P<netdev>{_NAME}))?$"
)
_NETDEV = re.compile(
    rf"(?:(?P<address>{_ADDRESS}) )?(?P<device>{_NAME}) +(?:\((?P<type>[A-Z]{{1,4}}[0-9]{{1,6}})\b[^)]{{0,80}}\) "
    r".{0,120}?\bfw (?P<firmware>[0-9.]{3,20}) +)?port +(?P<port>[0-9]{1,3}) +"
    rf"(?:\((?P<state>[A-Z]{{1,9}}) {{0,6}}\) +)?==> +(?P<netdev>{_NAME}) +\((?P<carrier>Up|Down|\w+)\)"
)
_DEVICE = re.compile(
    rf"[0-9]{{1,3}}: (?P<device>{_NAME}): node_type (?:ca|rnic|usnic) fw (?P<firmware>[0-9.]{{1,20}})\b"
)
_LINK = re.compile(
    rf"(?:[0-9/]{{1,7}}: |link )?(?P<device>{_NAME})/(?P<port>[0-9]{{1,3}}):?[ ]{{1,12}}"
    r"(?:subnet_prefix \S+ lid (?P<lid>[0-9]{1,5}) .{0,60})?"
    rf"state (?P<state>[A-Z_]+) physical_state (?P<physical>[A-Z_]+)(?: netdev (?P<netdev>{_NAME}))?"
)
_RATE = re.compile(r"([0-9]{1,5}(?:\.[0-9])?)(?: Gb/sec)?(?: \(([0-9]{1,2}X(?: [A-Z0-9]{1,6})?|FDR10)\))?")
_SPEED = re.compile(r"([0-9]{1,3}\.[0-9]) Gbps \([0-9]{1,4}\)")
_WIDTH = re.compile(r"([0-9]{1,2})X \([0-9]{1,3}\)")
# State names of ibstat and ibv_devinfo (rdma-core, libibverbs/examples/devinfo.c), mapped to those of sysfs.
_STATES = {"INITIALIZING": "INIT", "INITIALIZE": "INIT"}
_PHYSICAL = {
    "LINK_UP": "LinkUp",
    "POLLING": "Polling",
    "DISABLED": "Disabled",
    "SLEEP": "Sleep",
    "PORT_CONFIGURATION_TRAINNING": "PortConfigurationTraining",
    "LINK_ERROR_RECOVERY": "LinkErrorRecovery",
}
_LOGICAL = ("DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER")  # drivers/infiniband/core/sysfs.c: state_show
_OF_LINK = (*_PHYSICAL.values(), "No state change", "Phy Test", "PhyTest")  # phys_state_to_str
_AMAZON = 0x1D0F


def read(part: Part) -> Iterator[Record]:
    """Devices, ports, and the address type of each GID index."""
    fields = FactCollector()
    device, port, speeds = None, None, dict[str, dict[str, str]]()
    guids: dict[str, dict[bool, tuple[str, Evidence]]] = {}
    seen: dict[str, str] = {}  # the values of the present device and port
    for number, line in part.lines():
        text = line.strip()
        if not text:
            continue
        where = part.cite(number, line)
        if heading := _HEADING.match(text):
            device = heading["ca"] or heading["device"] or heading["hca"] or device
            port_number = heading["number"] or heading["port"] or heading["small"]
            port = f"{device}/{int(port_number)}" if device and port_number else None
            seen = {name: value for name, value in seen.items() if port and _is_of(Rdma, name)}
            if device:
                _heading(fields, device, port, where)
        elif gid := _GID.match(text):
            _gid(fields, None if port == _UNNAMED else port, int(gid["index"]), gid["gid"], gid["version"], where)
        elif device and (guid := _GUID.match(text)):
            digits = guid["digits"].lower().removeprefix("0x").replace(":", "")
            guids.setdefault(device, {})[bool(guid["card"])] = digits, where
        elif found := _FIELD.match(text):
            name, value = found["name"], found["value"].strip()
            another = name in _FIELDS and seen.setdefault(name, value) != value  # its heading is missing
            if name in _FIELDS and (device is None or another):
                device, port, seen = _UNNAMED_DEVICE, _UNNAMED, {name: value}
                _heading(fields, device, port, where)
            elif port is None and _is_of(Port, name):  # grep leaves out "Port 1:"
                port = _UNNAMED if device == _UNNAMED_DEVICE else f"{device}/1"
                fields.add(Port, port, where, device=None if port == _UNNAMED else device)
            _field(fields, {Rdma: device, Port: port}, name, value, where)
            if port and name in ("active_width", "active_speed"):
                speeds.setdefault(port, {})[name] = value
                _speed(fields, port, speeds[port], where)
        else:
            _row(fields, text, where)
    _places(fields, guids)
    yield from fields.records()


def _is_of(kind: type[Fact], name: str) -> bool:
    """Whether a line with this name is about a device, or a port."""
    return any(one is kind for one, _, _ in _FIELDS.get(name, ()))


def _places(fields: FactCollector, guids: Mapping[str, Mapping[bool, tuple[str, Evidence]]]) -> None:
    """Set the place of each device on its card. Devices of a card share its GUID, and their own GUIDs are in order."""
    cards: dict[str, list[tuple[str, str, Evidence]]] = {}
    for device, known in guids.items():
        if True in known and False in known:
            (card, _), (own, where) = known[True], known[False]
            cards.setdefault(card, []).append((own, device, where))
    for devices in cards.values():
        for place, (_, device, where) in enumerate(sorted(devices, key=lambda one: one[:2])):
            fields.add(Rdma, device, where, place=place)


def _heading(fields: FactCollector, device: str, port: str | None, where: Evidence) -> None:
    fields.add(Rdma, device, where)
    if port:
        fields.add(Port, port, where, device=None if device == _UNNAMED_DEVICE else device)


def _field(
    fields: FactCollector, keys: Mapping[type[Fact], str | None], name: str, value: str, where: Evidence
) -> None:
    """Add a line "name: value" of ibstat, ibstatus or ibv_devinfo. `keys`: the current device and port."""
    for kind, field, parse in _FIELDS.get(name, ()):
        if key := keys[kind]:
            fields.take(kind, key, where, field, value, parse)


def _speed(fields: FactCollector, port: str, texts: Mapping[str, str], where: Evidence) -> None:
    """Add the rate from ibv_devinfo: the lanes "4X (2)" times the rate per lane "50.0 Gbps (64)"."""
    width = _WIDTH.fullmatch(texts.get("active_width", ""))
    speed = _SPEED.fullmatch(texts.get("active_speed", ""))
    if width and speed:
        single = "1X" if int(width[1]) == 1 else None  # a port of InfiniBand has four lanes
        fields.add(Port, port, where, rate=from_gigabits(int(width[1]) * float(speed[1])) or None, lanes=single)


def _row(fields: FactCollector, text: str, where: Evidence) -> None:
    """Add a line of a tool that prints one line per port or per device (rdma dev)."""
    if found := _DEVICE.match(text):
        fields.add(Rdma, found["device"], where, firmware=found["firmware"])
        return
    if found := _NETDEV.match(text):
        device = found["device"]
        fields.add(Rdma, device, where, address=found["address"], hca_type=found["type"], firmware=found["firmware"])
        kind = "infiniband" if found["netdev"].startswith("ib") else None
        carrier = {"Up": True, "Down": False}.get(found["carrier"])
        fields.add(Net, found["netdev"], where, carrier=carrier, link_type=kind)
    elif found := _LINK.match(text):
        key, lid = f"{found['device']}/{int(found['port'])}", int(found["lid"] or 0)
        layer = "InfiniBand" if found["lid"] else None  # Ethernet has no subnet
        fields.add(Port, key, where, lid=lid or None, link_layer=layer)
        fields.take(Port, key, where, "physical_state", found["physical"], physical_state)
    elif found := _SHOWN_GID.match(text):
        key = f"{found['device']}/{int(found['port'])}"
        _gid(fields, key, int(found["index"]), found["gid"], f"RoCE v{found['version']}", where)
    else:
        return
    known, port = found.groupdict(), f"{found['device']}/{int(found['port'])}"
    fields.add(Rdma, found["device"], where)
    fields.add(Port, port, where, device=found["device"], netdev=known["netdev"])
    if known.get("state"):
        fields.take(Port, port, where, "state", found["state"], port_state)


def _gid(fields: FactCollector, port: str | None, index: int, gid: str, version: str | None, where: Evidence) -> None:
    """Add an entry of the GID table. Unused entries are zero."""
    if not set(gid) <= set("0:."):
        version = version.removeprefix("IB/") if version else None
        key = f"{port}/gid{index}" if port else f"gid{index}"
        fields.add(Gid, key, where, port=port, index=index, version=version, scope=_scope(gid.lower()))


def _scope(gid: str) -> str:
    """The scope of a GID. fe80::/10 is link-local (RFC 4291, 2.5.6); ::ffff:0:0/96 contains IPv4 addresses
    (2.5.5.2).
    """
    if re.match(r"fe[89ab][0-9a-f]:", gid):
        return "link-local"
    return "IPv4" if re.match(r"(?:::|(?:0{1,4}:){5})ffff:", gid) else "global"


def port_state(text: str) -> str | None:
    """The state "ACTIVE", as in sysfs, of "Active", "4: ACTIVE" or "PORT_ACTIVE (4)"."""
    found = re.fullmatch(r"(?:[0-9]: )?(?:PORT_)?([A-Za-z_]{2,14})(?: \([0-9]\))?", text)
    state = found[1].upper() if found else ""
    state = _STATES.get(state, state)
    if state not in (*_LOGICAL, "UNKNOWN", "NOP"):
        raise ValueError(f"{shown(text)} is not the state of a port")
    return None if state in ("UNKNOWN", "NOP") else state


def physical_state(text: str) -> str:
    """The physical state "LinkUp", as in sysfs, of "LinkUp", "5: LinkUp", "LINK_UP" or "LINK_UP (5)"."""
    found = re.fullmatch(r"(?:[0-9]: )?([A-Za-z_ ]{2,40}?)(?: \([0-9]\))?", text)
    state = _PHYSICAL.get(found[1], found[1]) if found else ""
    if state not in _OF_LINK:
        raise ValueError(f"{shown(text)} is not the state of a link")
    return state


def _rate(text: str) -> float | None:
    """The rate over all lanes of "200", "40 (FDR10)" or "200 Gb/sec (4X HDR)", in Gb/s there; None for 0."""
    if not (found := _RATE.fullmatch(text)):
        raise ValueError(f"{shown(text)} is not a rate")
    return from_gigabits(float(found[1])) or None


def _lid(text: str) -> int | None:
    """The LID. None for 0: the port has no LID."""
    return (hexadecimal(text) if text.startswith("0x") else count(text)) or None


def _mtu(text: str) -> int | None:
    """The MTU of "4096 (5)". None if it is not one of the five possible values."""
    found = re.fullmatch(r"(256|512|1024|2048|4096) \([1-5]\)", text)
    return int(found[1]) if found else None


def _driver(text: str) -> str | None:
    return "efa" if hexadecimal(text) == _AMAZON else None


def _chip(text: str) -> str | None:
    """The type of an adapter of NVIDIA as ibstat prints it, "MT4129"; None for parts of other makers."""
    return f"MT{text}" if re.fullmatch(r"4[01][0-9]{2}|416[0-9]{2}", text) else None


def _lanes(text: str) -> str | None:
    """The text "4X HDR" of "200 Gb/sec (4X HDR)"."""
    found = re.search(r"\(([0-9]{1,2}X[^()]*)\)", text)
    return found[1] if found else None


def _layer(text: str) -> str:
    if text not in ("InfiniBand", "Ethernet", "Unspecified", "IB", "Unknown"):
        raise ValueError(f"{shown(text)} is not a link layer")
    return text


_FIELDS: Mapping[str, tuple[Row, ...]] = {
    "CA type": ((Rdma, "hca_type", word),),
    "Firmware version": ((Rdma, "firmware", word),),
    "fw_ver": ((Rdma, "firmware", word),),
    "board_id": ((Rdma, "board_id", word),),
    "vendor_id": ((Rdma, "driver", _driver),),
    "vendor_part_id": ((Rdma, "hca_type", _chip),),
    "State": ((Port, "state", port_state),),
    "state": ((Port, "state", port_state),),
    "Physical state": ((Port, "physical_state", physical_state),),
    "phys state": ((Port, "physical_state", physical_state),),
    "phys_state": ((Port, "physical_state", physical_state),),
    "Rate": ((Port, "rate", _rate),),
    "rate": ((Port, "rate", _rate), (Port, "lanes", _lanes)),
    "Base lid": ((Port, "lid", _lid),),
    "base lid": ((Port, "lid", _lid),),
    "port_lid": ((Port, "lid", _lid),),
    "active_mtu": ((Port, "mtu", _mtu),),
    "Link layer": ((Port, "link_layer", _layer),),
    "link_layer": ((Port, "link_layer", _layer),),
}
