"""The words with which people describe a device: "GPU 3: PCIe Gen4 x8 (max x16)", "mlx5_2 Down Polling".

A line counts only if each of its words is in this vocabulary. Other prose can say anything about a device.
"""

from __future__ import annotations

import re
from functools import cache

from msgspec import Struct

_BUS = r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_GPU = (  # "gpu-2-12" is the name of a machine
    r"(?!gpu-[0-9]{1,3}-)(?:gpus?|cuda device)[ _#:-]{0,2}[0-9]{1,3}(?:(?:[-–]|[ ]to[ ]|\.\.)(?:gpu)?[ ]?[0-9]{1,3})?"
    r"(?![0-9.x]|[ ]?(?:->|/))"
)
_NIC = (
    r"(?:mlx[45]_(?:bond_)?|bnxt_re|irdma|ionic_|erdma_|hfi1_|ibp)[0-9]{1,3}(?:s[0-9]{1,3})?(?:f[0-9])?"
    r"(?:(?:[/:]|,? port )[1-4])?(?![\w])"
)
_NET = r"(?:eth|hsn|bond)[0-9]{1,3}(?![\w])|en(?:o|p|s)[0-9][a-z0-9]{0,15}"
_NVME = r"nvme[0-9]{1,3}(?:n[0-9]{1,3})?(?![\w])"
DEVICES = {"gpu": _GPU, "nic": _NIC, "net": _NET, "nvme": _NVME, "pci": _BUS}
_WHOLE = r"(?!\w|[.]\w)"  # a full stop can follow
_LANES = rf"(?:x[ ]?(?:16|12|8|4|2|1)|(?:16|12|8|4|2|1)(?:x|[ -]lanes?)){_WHOLE}"
_GONE = (
    r"(?:missing|not (?:detected|found|visible|listed|responding|seen)|gone|lost|(?:has )?fallen off(?: the bus)?"
    r"|(?:fell|falls) off(?: the bus)?|hung|unresponsive)(?![\w])"
)
_GRADE = r"(?:(?<=x[0-9] )|(?<=x[0-9]{2} ))g[1-6]"  # "x16 G3"
_SPEED = (
    rf"(?:[0-9]{{1,2}}(?:\.[0-9])?[ ]?gt/s|{_GRADE}|(?:pcie?[ ]?)?gen(?:eration)?[ .-]?[1-7]|pcie?[ ]?[1-7]\.0){_WHOLE}"
)
_RATE = r"[0-9]{1,6}(?:\.[0-9]{1,3})?[ ]?[gm]b(?:it)?(?:/s(?:ec)?|ps|s/s(?:ec)?)(?![\w/])"
_STATE = (
    r"(?:(?:port_)?(?:active|inactive|down|init(?:ializing)?|armed)|link[_ ]?(?:up|down)|polling|disabled|sleep"
    r"|no[- ]carrier|up)(?![\w])"
)
_MOST = "max maximum capable cap able rated supported supports support of out possible maximal lnkcap full in allows"
_WANTED = "instead should expected expect usually normally supposed must nominal vs versus not"
_NOW = "current currently cur curr now negotiated trained at running runs run lnksta sta only just actual actually"
_PLAIN = (
    "is are was the a an with has have and but be on its it this as shows show showing reports reported says slot "
    "link links pcie pci-e pci bus port device state status physical phys physstate phys_state gpu nic hca width "
    "widths lane lanes speed speeds rate rates gen generation capability value infiniband ib roce ethernet hdr ndr "
    "edr fdr xdr qdr downgraded degraded reduced lower slow slower narrow narrower ok per each read to nvlink "
    "nvlinks count number total detected found visible working enabled volatile aggregate ecc error errors "
    "uncorrectable uncorrected correctable corrected dbe sbe row rows remap remapped remapping pending failure "
    "failed double single bit yes no true false none thermal slowdown sw hw software hardware power brake reason "
    "reasons clock clocks event negotiation mhz w c temp temperature draw for "
    "stuck under load default limit cap from nvidia-smi lspci sysfs idle"
)


def _any(words: str) -> str:
    some = "|".join(re.escape(word) for word in sorted(set(words.split()), key=len, reverse=True))
    return rf"(?:{some})(?![\w])"


_KINDS = {  # in the order in which they are tried
    **DEVICES,
    "ids": r"[0-9a-f]{4}:[0-9a-f]{4}(?![\w:.])",
    "rate": _RATE,
    "speed": _SPEED,
    "lanes": _LANES,
    "gone": _GONE,
    "state": _STATE,
    "size": r"[0-9]{1,5}(?:\.[0-9]{1,2})?[ ]?(?:mhz|ghz|w|watts?|°?c|gi?b|mi?b|%)(?![\w/])",
    "number": rf"[0-9]{{1,9}}{_WHOLE}",
    "most": rf"{_any(_MOST)}|/",
    "wanted": _any(_WANTED),
    "now": _any(_NOW),
    "plain": _any(_PLAIN),
}
_SPACE = re.compile(r"[ \t|;,:=()\[\]*`'\"~≈!+<>–-]{0,24}(?:\.(?=\s|$))?[ \t]{0,4}")
_EDGES = " \t|,;:=()[]*`'\"~≈!+<>.–-"
_LONGEST, _MOST_WORDS = 300, 60
# Names of values as programs write them: "max_link_width", "currentLinkSpeed", "pcie.width.max"
_PART = (
    r"(?:lnkcap|lnksta|current|curr?|maximum|max|negotiated|actual|capable|supported|link|width|speed|lanes?|generation|gen|pcie?"
    r"|express)"
)
_NAME = re.compile(
    rf"(?<![\w./-])(?:{_PART}[_.-]?){{1,5}}{_PART}(?![\w.-])|(?<![a-z_.-])(?<![a-z] )(?:width|speed|lanes|gen)(?==)",
    re.IGNORECASE,
)
_PARTS = re.compile(_PART, re.IGNORECASE)
_TWO_SPEEDS = re.compile(
    r"(?<![\w.])([0-9]{1,2}(?:\.[0-9])?)[ ]?/[ ]?(?=[0-9]{1,2}(?:\.[0-9])?[ ]?GT/s)", re.IGNORECASE
)
_IN_BRACKETS = re.compile(r"(?<![\w.])(x[0-9]{1,2}|gen[ ]?[1-7])[ ]?\((?=(?:x|gen)[ ]?[0-9]{1,2}\))", re.IGNORECASE)
_RESULT = re.compile(  # of a check, before its line: "[FAIL] gpu1 ..."
    r"^[ \t]{0,8}(?:[✓✔✗✘✅❌⚠🔴🟢🟡]\ufe0f?"
    r"|\[? ?(?:OK|PASS(?:ED)?|GOOD|FAIL(?:ED)?|ERROR|WARN(?:ING)?|BAD|CRIT(?:ICAL)?) ?[\]:])[ \t]{0,8}",
    re.IGNORECASE,
)
MARK = r"[✗✘❌⚠🔴]|>!<|!!|<<|\bFAIL(?:ED)?\b"  # of a fault
_FOLDER = re.compile(rf"/sys/(?:bus/pci/devices|devices/[\w:./]{{1,200}})/(?={_BUS}(?:[: \t=]))", re.IGNORECASE)
_OTHERS = re.compile(  # "..., the other seven GPUs are at x16"
    r"[,;.(]?[ ]{0,3}(?:(?:while|and|but|whereas)[ ])?(?:the[ ]|all[ ]){0,2}(?:others?|rest|remaining)(?![\w])"
    r"(?:[ ](?:one|two|three|four|five|six|seven|eight|nine|gpus|ports|nics|links|devices|cards|of|them)){0,4}",
    re.IGNORECASE,
)
_HOST = re.compile(  # "Node gpu-12: GPU3 ...", "node12: mlx5_4 ..."
    r"^(?:on[ ])?(?:(?:node|host|server|machine)[ ]{1,3}[\w.-]{1,60}[:,]?"
    r"|(?!gpu(?!-[0-9]{1,3}-)|mlx)[a-z][\w.-]{0,60}:)[ ]{1,4}"
    r"(?=[a-z]{2,8}[ _]?[0-9]|link|pcie|the[ ])",
    re.IGNORECASE,
)


class Word(Struct, frozen=True):
    """A word: its kind (a key of the vocabulary), the text in lower case, and the signs before it."""

    kind: str
    text: str
    joint: str


def words(line: str) -> tuple[Word, ...]:
    """The words of a line. Empty: it contains others, or none."""
    found: list[Word] = []
    place = 0
    while len(line) <= _LONGEST and line[place:].strip(_EDGES):
        space = _SPACE.match(line, place)
        start = space.end() if space else place
        one = _pattern().match(line, start)
        if one is None or len(found) == _MOST_WORDS:
            return ()
        found.append(Word(one.lastgroup or "", one[0].lower(), line[place:start]))
        place = one.end()
    return tuple(found)


def spelled(line: str) -> str:
    """A line with names of programs in words: "max_link_width=16" as ";max link width=16"."""
    if len(line) > _LONGEST:
        return line
    text = _FOLDER.sub("", _RESULT.sub("", line), count=1)
    text = _IN_BRACKETS.sub(r"\1 / ", _TWO_SPEEDS.sub(r"\1 GT/s / ", text))
    return _NAME.sub(lambda name: f";{' '.join(_PARTS.findall(name[0]))}", text)


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile("|".join(f"(?P<{kind}>{text})" for kind, text in _KINDS.items()), re.IGNORECASE)


def clauses(line: str) -> tuple[str, str]:
    """What a line says of its device, and what it says of the other devices. Without the name of the machine."""
    text = _HOST.sub("", line.strip(), count=1)
    others = _OTHERS.search(text)
    return (text[: others.start()], text[others.end() :]) if others else (text, "")
