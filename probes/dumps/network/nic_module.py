"""Optical modules: `ethtool -m` (SFP: SFF-8472, QSFP: SFF-8636, QSFP-DD and OSFP: CMIS).

ethtool: sfpdiag.c, sff-common.c, qsfp.c, cmis.c; JSON with -j has the same names. The output does not name the port.
The command, a file name of a sosreport, or the output of ethtool before it does. A module states whether a value is
outside its own thresholds ("Laser rx power low alarm : On"), which lanes lost their signal, and whether it is faulty
(CMIS). If the text has no such line, the value is compared with its threshold.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator

from msgspec import Struct, field

from ....models.facts.network_paths import Optics
from ....models.facts.records import Evidence, Record
from ..core.key_values import begins, entry
from ..core.part import Part

_FLAGS = r"(?:Laser|Module|Rcvr|Receiver|Rx|Tx)[^\n:]{0,40}(?:high|low) (?:alarm|warning)"
_VALUES = (
    "Laser (?:tx )?bias current",
    "Laser output power",
    "Receiver signal (?:average optical power|OMA)",
    "Rcvr signal avg optical power",
    "Transmit avg optical power",
    "Module (?:temperature|voltage)",
    "Alarm/warning flags implemented",
    "Optical diagnostics support",
)
_COMMAND = r"[^\n]{0,120}\bethtool (?:-m|--module-info|--dump-module-eeprom) [a-z][\w.-]{1,30}[ \t]*$"
_NAMED = (f"{_FLAGS}(?: threshold)?[^\n:]{{0,16}}", *(f"{one}[^\n:]{{0,16}}" for one in _VALUES))
_SIGNAL = r"(?:[RT]x loss of (?:signal|lock)|Tx fault|Tx adaptive eq fault)"
_STATE = r"Module [Ss]tate[ \t]{1,40}: 0x0[1-7] \(Module"  # CMIS
_BY_LANE = r"None|\[ (?:Yes|No),"
_JSON = r"\"(?:module|laser|rx|tx)_[a-z_]{3,40}_(?:high|low)_(?:alarm|warning)\": (?:true|false|\[ ?(?:true|false),)"
_LANES = rf"[ \t]*{_JSON}|{begins((_SIGNAL,), _BY_LANE)}|[ \t]{{0,20}}{_STATE}"
BEGIN = rf"^(?:[ \t]*Identifier[ \t]{{1,40}}: 0x[0-9a-f]{{2}} \(|{_COMMAND}|{begins(_NAMED, '[-0-9OYN]')}|{_LANES})"
_DEVICE = re.compile(r"\bethtool (?:-m|--module-info|--dump-module-eeprom) ([a-z][\w.-]{1,30})\s*$")
_FILE = re.compile(r"(?:^|/)ethtool_-m_([A-Za-z][\w-]{0,30})$")  # file names of sosreports
_FLAG = re.compile(r"(?P<what>.+?) (?P<side>high|low) (?P<grade>alarm|warning)(?: (?:chan|channel|lane) \d+)?")
_LIMIT = re.compile(r"(?P<what>.+?) (?P<side>high|low) (?P<grade>alarm|warning) threshold")
_OF_LANES = re.compile(r"[rt]x loss of (?:signal|lock)|tx fault|tx adaptive eq fault")
_YES_NO = re.compile(r"\[ ?((?:Yes|No)(?:, (?:Yes|No)){0,31}) ?\]")
_FAULT = ("module state", "module fault cause")
_LANE = re.compile(r" (?:(?:chan|channel|lane|ch) ?)?(\d+)$")
_FLAGS_OF_LANES = re.compile(r"\[ ?((?:true|false)(?:, ?(?:true|false)){0,31}) ?\]")
_NUMBER = re.compile(r"(-?[0-9]{1,6}(?:\.[0-9]{1,6})?) ?(mW|mA|V|degrees C|C\b)")
_SAME = {  # names of values, and the names of their thresholds and flags
    "laser tx bias current": "laser bias current",
    "transmit avg optical power": "laser output power",
    "laser tx power": "laser output power",
    "rcvr signal avg optical power": "laser rx power",
    "receiver signal average optical power": "laser rx power",
    "receiver signal oma": "laser rx power",
}
_MEASURED = frozenset(
    {"laser bias current", "laser output power", "laser rx power", "module temperature", "module voltage"}
)
UNNAMED = "module"


class _Module(Struct):
    """The lines of one module."""

    key: str
    first: Evidence
    flags: dict[str, tuple[str, bool, Evidence]] = field(default_factory=dict)  # by name: grade, on
    values: dict[str, tuple[str, float, Evidence]] = field(default_factory=dict)  # by name with lane: plain name
    printed: dict[str, str] = field(default_factory=dict)  # the values as the tool prints them, by name with lane
    limits: dict[tuple[str, str, str], float] = field(default_factory=dict)  # by name, side, grade
    details: dict[str, str] = field(default_factory=dict)  # by the name of a flag: its lanes, or the cause of a fault


def read(part: Part) -> Iterator[Record]:
    """An `Optics` per module."""
    named = _FILE.search(part.file)
    name = f"{named[1]}/module" if named else UNNAMED
    modules: list[_Module] = []
    names: set[str] = set()
    fresh = True
    for number, line in part.lines():
        if device := _DEVICE.search(line):
            name, fresh = f"{device[1]}/module", True
            continue
        what, value = entry(line) or ("", "")
        if not what:
            continue
        if fresh or what == "identifier" or what in modules[-1].flags:
            key = f"{name} {len(modules) + 1}" if name in names else name
            names.add(key)
            modules.append(_Module(key, part.cite(number, line)))
            fresh = False
        _take(modules[-1], what, value, part.cite(number, line))
    distinct: dict[Hashable, _Module] = {}  # the same output can be taken again
    for module in modules:
        distinct.setdefault(_contents(module), module)
    for module in distinct.values():
        yield from _fact(module)


def _contents(module: _Module) -> Hashable:
    """What all lines of a module say."""
    flags = frozenset((name, *flag[:2]) for name, flag in module.flags.items())
    values = frozenset((name, *value[:2]) for name, value in module.values.items())
    return flags, values, frozenset(module.limits.items())


def _take(module: _Module, name: str, value: str, where: Evidence) -> None:
    if limit := _LIMIT.fullmatch(name):
        if number := _NUMBER.match(value):
            module.limits[_plain(limit["what"]), limit["side"], limit["grade"]] = float(number[1])
    elif _OF_LANES.fullmatch(name):
        lanes = _YES_NO.fullmatch(value)
        bad = [str(lane) for lane, state in enumerate(lanes[1].split(", ") if lanes else (), 1) if state == "Yes"]
        if lanes or value == "None":
            module.flags[name] = "alarm", bool(bad), where
            module.details[name] = f"on lane{'s' * (len(bad) > 1)} {', '.join(bad)}"
    elif name in _FAULT and (code := re.fullmatch(r"0x0[0-9a-f] \((.{3,60})\)", value)):
        if name == _FAULT[0]:
            module.flags[name] = "alarm", code[1] == "ModuleFault", where
        module.details[_FAULT[0]] = f"{module.details.get(_FAULT[0], '')} {code[1]}".strip()
    elif (flag := _FLAG.fullmatch(name)) and (lanes := _FLAGS_OF_LANES.match(value)):  # JSON of CMIS modules
        bad = [str(lane) for lane, state in enumerate(lanes[1].split(","), 1) if state.strip() == "true"]
        module.flags[name] = flag["grade"], bool(bad), where
        module.details[name] = f"on lane{'s' * (len(bad) > 1)} {', '.join(bad)}"
    elif flag := _FLAG.fullmatch(name):
        if value in ("On", "Off", "Yes", "No", "true", "false"):
            module.flags[name] = flag["grade"], value in ("On", "Yes", "true"), where
    elif (measured := _plain(_LANE.sub("", name))) in _MEASURED and (number := _NUMBER.match(value)):
        module.values.setdefault(name, (measured, float(number[1]), where))
        module.printed.setdefault(name, value)


def _plain(name: str) -> str:
    return _SAME.get(name, name)


def _fact(module: _Module) -> Iterator[Record]:
    """The module, if it states at least one flag, or one value with a threshold."""
    compared = any(limit[0] == measured for limit in module.limits for measured, _, _ in module.values.values())
    if not module.flags and not compared:
        return
    fields: dict[str, tuple[str, ...]] = {}
    cites: dict[str, Evidence] = {}
    for grade in ("alarm", "warning"):
        on = [
            (f"{name} {module.details.get(name, '')}".strip(), where)
            for name, (kind, state, where) in module.flags.items()
            if kind == grade and state
        ]
        rows = on if module.flags else _outside(module, grade)
        fields[f"{grade}s"] = tuple(name for name, _ in rows)
        cites[f"{grade}s"] = rows[0][1] if rows else module.first
    flags = [name for name, (_, state, _) in module.flags.items() if state]
    found = dict.fromkeys(name for flag in flags for name in _measured(module, flag))
    if found:
        fields["measured"] = tuple(f"{name}: {module.printed[name]}" for name in found)
        cites["measured"] = module.values[next(iter(found))][2]
    device = module.key.partition("/")[0] if "/" in module.key else None
    yield Optics(key=module.key, net=device, stated=bool(module.flags), cites=cites, **fields)


def _measured(module: _Module, flag: str) -> Iterator[str]:
    """The name of the value that a flag compares: that of its lane, or the only one."""
    what, lane = _FLAG.fullmatch(flag), _lane(flag)
    found = [
        name
        for name, (measured, _, _) in module.values.items()
        if what and measured == _plain(what["what"]) and (lane is None or lane == _lane(name))
    ]
    yield from found if len(found) == 1 else ()


def _lane(name: str) -> str | None:
    found = _LANE.search(name)
    return found[1] if found else None


def _outside(module: _Module, grade: str) -> list[tuple[str, Evidence]]:
    """The values beyond their thresholds, as texts."""
    found = []
    for measured, value, where in module.values.values():
        for side, sign in (("high", 1), ("low", -1)):
            limit = module.limits.get((measured, side, grade))
            if limit and sign * (value - limit) > 0:
                found.append((f"{measured} {value:g}, {side} {grade} threshold {limit:g}", where))
    return found
