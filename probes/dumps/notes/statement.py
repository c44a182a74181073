"""The values that the words of a line give a device: what it has now, at most, and should have."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct, field

from ....models.facts.pcie_rates import speed_of
from ....models.facts.units import from_gigabits, from_megabits
from .words import Word

_MARKS = ("now", "most", "wanted")
_NAMES = {"width": "lanes", "lanes": "lanes", "gen": "speed", "generation": "speed", "rate": "rate", "speed": "mbits"}
_ENDS = re.compile(r"[);|]")  # a mark does not apply behind these signs
_ALL_LANES, _GENERATIONS = 16, range(1, 8)
_BARE_RATES = {"rate": from_gigabits, "mbits": from_megabits}  # the units of ibstat and of ethtool and sysfs
_STATES = {"init": "INIT", "initializing": "INIT"}
_PHYSICAL = {"linkup": "LinkUp", "polling": "Polling", "disabled": "Disabled", "sleep": "Sleep", "linkdown": "Down"}
_LINKS = r"(?:nv)?links?"
_YES = r"(?P<yes>yes|true|active)|no|false|none|not active"
_COUNTED = {  # by field of a Gpu: the count
    "ecc_uncorrected": r"(?:uncorrect(?:able|ed)|dbe|double bit)(?: ecc)?(?: errors?)? (?P<after>\d+)"
    r"|(?P<before>\d+) (?:uncorrect(?:able|ed)|dbe|double bit)",
    "nvlinks": rf"(?P<before>\d+)(?: (?:of|/|out of) \d+)? {_LINKS}(?: are)? (?:up|active)"
    r"|nvlinks?(?: count| number| up| active)? (?P<after>\d+)",
}
_MEASURED = {  # by field of a Gpu: the number and its unit
    "clock": (r"(?<!max )(?<!memory )(\d+)[ ]?mhz", 1e6),
    "clock_max": (r"(?:max|maximum|of|/) (\d+)(?:[ ]?mhz|$|(?= temp))", 1e6),
    "temperature": (r"(\d+)[ ]?°?c(?![\w])", 1.0),
}
_PRESENT = re.compile(rf"\d+ (?:of|/|out of) (\d+) {_LINKS}|nvlinks?(?: up| active)? \d+ (?:of|/|out of) (\d+)")
_FLAGS = {  # by field of a Gpu
    "remap_pending": rf"remap\w*(?: rows?)? pending (?:{_YES})",
    "remap_failed": rf"remap\w*(?: rows?)? fail\w+ (?:{_YES})",
}
_REASON = re.compile(
    rf"(?P<kind>sw|software|hw|hardware) (?P<what>thermal slowdown|power brake|slowdown)(?: reason)? (?:{_YES})"
)
_REASONS = {
    ("s", "thermal slowdown"): "software thermal slowdown",
    ("h", "thermal slowdown"): "hardware thermal slowdown",
    ("h", "slowdown"): "hardware slowdown",
    ("h", "power brake"): "hardware power brake",
}


class Statement(Struct):
    """Values by name and mark: {"lanes": {"now": 8, "most": 16, "wanted": 16}}. Speeds and rates per second."""

    values: dict[str, dict[str, float]] = field(default_factory=dict)
    state: str | None = None  # as sysfs writes it: "ACTIVE"
    physical: str | None = None
    gpu: dict[str, float | bool | tuple[str, ...]] = field(default_factory=dict)  # fields of a Gpu

    def get(self, name: str, mark: str = "now") -> float | None:
        """The value with this mark, if the line has it."""
        return self.values.get(name, {}).get(mark)

    @property
    def is_empty(self) -> bool:
        """Whether the line says nothing about the device."""
        return not (self.values or self.state or self.physical or self.gpu)


def statement(words: Sequence[Word]) -> Statement | None:
    """The values of these words. None: one value is given twice, so it is not clear which counts."""
    found, mark, name = Statement(), "now", ""
    for word in words:
        if _ENDS.search(word.joint):
            mark, name = "now", ""
        if word.kind in _MARKS:
            mark = mark if word.text == "of" and mark == "wanted" else word.kind  # "instead of"
        elif word.kind == "plain":
            name = _NAMES.get(word.text, name)
        elif word.kind == "state":
            _set_state(found, word.text, mark)
        elif (value := _value(word, name)) and not _put(found, *value, mark):
            return None
    text = " ".join(word.text for word in words)
    found.gpu = _of_gpu(text)
    return found


def _value(word: Word, name: str) -> tuple[str, float] | None:
    """The name and the value of a word. A number alone has the name of the word before it."""
    digits = re.search(r"[0-9]{1,9}(?:\.[0-9]{1,3})?", word.text)
    if digits is None:
        return None
    number = float(digits[0])
    if word.kind == "lanes" or (word.kind == "number" and name == "lanes"):
        return ("lanes", number) if number <= _ALL_LANES else None
    if "gt/s" in word.text:
        return "speed", number * 1e9
    if word.kind == "speed" or (word.kind == "number" and name == "speed"):
        return ("speed", speed_of(int(number))) if number in _GENERATIONS else None
    if word.kind == "rate":
        return "rate", from_gigabits(number) if "gb" in word.text else from_megabits(number)
    if word.kind == "number" and name in _BARE_RATES:
        return "rate", _BARE_RATES[name](number)
    return None


def _put(found: Statement, name: str, value: float, mark: str) -> bool:
    """Add the value. False: the line has another value with the same name and mark."""
    return found.values.setdefault(name, {}).setdefault(mark, value) == value


def _set_state(found: Statement, text: str, mark: str) -> None:
    if mark == "wanted":
        return
    plain = text.replace("port_", "").replace("_", "").replace(" ", "").replace("-", "")
    if plain in _PHYSICAL:
        found.physical = found.physical or _PHYSICAL[plain]
    elif plain == "nocarrier":
        found.state = found.state or "DOWN"
    else:
        state = "ACTIVE" if plain == "up" else _STATES.get(plain, plain.upper())
        found.state = found.state or state


def _of_gpu(text: str) -> dict[str, float | bool | tuple[str, ...]]:
    fields: dict[str, float | bool | tuple[str, ...]] = {}
    for name, pattern in _COUNTED.items():
        if one := re.search(pattern, text):
            fields[name] = int(one["before"] or one["after"])
    if one := _PRESENT.search(text):
        fields["nvlinks_present"] = int(one[1] or one[2])
    if "aggregate" in text and "ecc_uncorrected" in fields:
        fields["ecc_uncorrected_lifetime"] = fields.pop("ecc_uncorrected")
    for name, (pattern, unit) in _MEASURED.items() if "mhz" in text else ():
        if one := re.search(pattern, text):
            fields[name] = int(one[1]) * unit
    for name, pattern in _FLAGS.items():
        if one := re.search(pattern, text):
            fields[name] = bool(one["yes"])
    reasons = [(_REASONS.get((one["kind"][0], one["what"])), one["yes"]) for one in _REASON.finditer(text)]
    if reasons:
        fields["clock_reasons"] = tuple(reason for reason, yes in reasons if reason and yes)
    return fields
