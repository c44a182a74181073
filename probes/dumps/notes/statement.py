"""The values that the words of a line give a device: what it has now, at most, and should have."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct, field

from ....models.facts.pcie_rates import speed_of
from ....models.facts.units import from_gigabits, from_megabits
from .words import Word

Fields: TypeAlias = "dict[str, float | bool | str | tuple[str, ...]]"
_MARKS = ("now", "most", "wanted")
_LINKING = ("of", "at", "running", "run")
_NAMES = {"width": "lanes", "lanes": "lanes", "gen": "speed", "generation": "speed", "rate": "rate", "speed": "mbits"}
_ENDS = re.compile(r"[);|]")  # a mark does not apply behind these signs
_ALL_LANES, _GENERATIONS = 16, range(1, 8)
# A number alone has the unit of ibstat ("rate") or of ethtool and sysfs ("speed").
_BARE_RATES: Mapping[str, Callable[[float], float]] = {"rate": from_gigabits, "mbits": from_megabits}
_STATES = {"init": "INIT", "initializing": "INIT", "up": "ACTIVE", "nocarrier": "DOWN", "inactive": "DOWN"}
_PHYSICAL = {"linkup": "LinkUp", "polling": "Polling", "disabled": "Disabled", "sleep": "Sleep", "linkdown": "Down"}
_LINKS = r"(?:nv)?links?"
_NOT_THE_GPU = ("not", "no", "link", "links", "nvlink", "nvlinks")  # "GPU 3 is not missing", "link 7 of GPU 2 is lost"
_BAD = r"(?:uncorrect(?:able|ed)|dbe|double bit)"
_YES = r"(?:(?P<no>no|false|none|not active)|yes|true|active)"
# Fields of a Gpu: the count, as the group before or after the name
_COUNTED = {
    "ecc_uncorrected": rf"{_BAD}(?: ecc)?(?: errors?)? (?P<after>\d+)|(?P<before>\d+) {_BAD}",
    "nvlinks": rf"(?P<before>\d+)(?: (?:of|/|out of) \d+)? (?:active )?{_LINKS}(?: are)?(?: (?:up|active)|$)"
    r"|(?:nvlinks|nvlink(?: count| number| links| up| active)|nvlink(?= \d+ (?:of|/|out of) \d))"
    r"(?: count| number| links?| up| active)* (?P<after>\d+)",
    "nvlinks_present": rf"\d+ (?:of|/|out of) (?P<before>\d+) (?:active )?{_LINKS}"
    r"|nvlinks?(?: up| active)? \d+ (?:of|/|out of) (?P<after>\d+)",
}
_NUMBER = r"(?<![\w.])(\d+)(?:\.\d+)?"  # the digits behind a point do not matter, and are no number of their own
# Fields of a Gpu: the number, and what one unit is
_MEASURED = {
    "clock": (rf"(?<!max )(?<!of )(?<!/ ){_NUMBER}[ ]?mhz", 1e6),
    "clock_max": (rf"(?:max|maximum|of|/) {_NUMBER}[ ]?mhz|mhz (?:max|of|/) {_NUMBER}", 1e6),
    "temperature": (rf"{_NUMBER}[ ]?°?c(?!\w)", 1.0),
    "power_limit": (rf"power (?:limit|cap) {_NUMBER}[ ]?w", 1.0),
    "power_limit_default": (rf"default (?:power )?(?:limit )?{_NUMBER}[ ]?w", 1.0),
}
_FLAGS = {
    "remap_pending": rf"remap\w*(?: rows?)? pending {_YES}",
    "remap_failed": rf"remap\w*(?: rows?)? fail\w+ {_YES}",
}
_REASON = re.compile(
    rf"(?P<kind>sw|software|hw|hardware) (?P<what>thermal slowdown|power brake|slowdown)(?: reason)?(?: {_YES}|$)"
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
    gpu: Fields = field(default_factory=dict)  # fields of a Gpu

    def get(self, name: str, mark: str = "now") -> float | None:
        """The value with this mark, if the line has it."""
        return self.values.get(name, {}).get(mark)


def statement(words: Sequence[Word], others: Sequence[Word] = ()) -> Statement | None:
    """The values of these words. `others` has what equal devices have. None: a value is given twice."""
    found = Statement()
    if not (_read(found, words, "now") and _read(found, others, "wanted")):
        return None
    found.gpu = _of_gpu(" ".join(word.text for word in words))
    gone = next((word.text for word in words if word.kind == "gone"), None)
    if gone and any(word.text in _NOT_THE_GPU for word in words):
        return None
    if gone:
        found.gpu["failure"] = f"GPU is lost: {gone}"
    return found


def _read(found: Statement, words: Sequence[Word], first: str) -> bool:
    """Add the values. Values without a mark have the mark `first`. False: a value is given twice."""
    mark, name, before, last = first, "", "", ""
    for word in words:
        if _ENDS.search(word.joint):
            mark, name = first, ""
        if word.text == "/":
            before, name = mark, last if last == "lanes" else name  # for the next value alone
        if word.kind in _MARKS:
            # "instead of" and "not at" are one mark; what equal devices have now is what this one should have
            mark = mark if mark == "wanted" and (word.text in _LINKING or first == "wanted") else word.kind
        elif word.kind == "plain":
            name = _NAMES.get(word.text, name)
        elif word.kind == "state" and mark != "wanted":
            _set_state(found, word.text)
        elif value := _value(word, name):
            if found.values.setdefault(value[0], {}).setdefault(mark, value[1]) != value[1]:
                return False
            mark, before, last = before or mark, "", value[0]
    return True


def _value(word: Word, name: str) -> tuple[str, float] | None:
    """The name and the value of a word. A number alone has the name of the word before it."""
    digits = re.search(r"[0-9]{1,9}(?:\.[0-9]{1,3})?", word.text)
    if digits is None:
        return None
    number = float(digits[0])
    if word.kind == "lanes" or (word.kind == "number" and name == "lanes"):
        return ("lanes", number) if 1 <= number <= _ALL_LANES else None
    if "gt/s" in word.text:
        return "speed", number * 1e9
    if word.kind == "speed" or (word.kind == "number" and name == "speed"):
        return ("speed", speed_of(int(number))) if number in _GENERATIONS else None
    if word.kind == "rate":
        return "rate", from_gigabits(number) if "gb" in word.text else from_megabits(number)
    if word.kind == "number" and name in _BARE_RATES:
        return "rate", _BARE_RATES[name](number)
    return None


def _set_state(found: Statement, text: str) -> None:
    plain = re.sub("[ _-]", "", text.removeprefix("port_"))
    if plain in _PHYSICAL:
        found.physical = found.physical or _PHYSICAL[plain]
    else:
        found.state = found.state or _STATES.get(plain, plain.upper())


def _of_gpu(text: str) -> Fields:
    """The fields of a GPU in a line whose words are separated by single blanks."""
    fields: Fields = {}
    for name, pattern in _COUNTED.items():
        if one := re.search(pattern, text):
            fields[name] = int(one["before"] or one["after"])
    if "aggregate" in text and "ecc_uncorrected" in fields:
        fields["ecc_uncorrected_lifetime"] = fields.pop("ecc_uncorrected")
    for name, (pattern, unit) in _MEASURED.items():
        if one := re.search(pattern, text):
            fields[name] = int(next(filter(None, one.groups()))) * unit
    for name, pattern in _FLAGS.items():
        if one := re.search(pattern, text):
            fields[name] = not one["no"]
    reasons = [(_REASONS.get((one["kind"][0], one["what"])), one["no"]) for one in _REASON.finditer(text)]
    if reasons:
        fields["clock_reasons"] = tuple(reason for reason, no in reasons if reason and not no)
    return fields
