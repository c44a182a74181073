"""Two numbers of one kind in a sentence, what there is and what there should be: "x8 instead of x16", "7 of 8 GPUs",
"19 GB/s, the others 55".

The words between and around the numbers say which one is wanted. Without such a word they are just two numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

from msgspec import Struct

from .infiniband import LANE_GIGABITS

# fmt: off
_WORDS = (
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
)
# fmt: on
_SPELLED: Mapping[str, float] = {
    **{word: float(place) for place, word in enumerate(_WORDS, 1)},
    **{f"twenty-{word}": 20.0 + place for place, word in enumerate(_WORDS[:9], 1)},
    **{f"thirty-{word}": 30.0 + place for place, word in enumerate(_WORDS[:9], 1)},
}
_NUMBER = rf"(?:[0-9]{{1,6}}(?:[.,][0-9]{{1,3}})?|{'|'.join(sorted(_SPELLED, key=len, reverse=True))})"
_LANES = rf"(?:16|12|8|4|2|1|{'|'.join(_WORDS[:16])})"
# Of ports with four lanes, and what people call two of them with two lanes
_GRADES: Mapping[str, float] = {
    **{name.lower(): 4 * rate for name, rate in LANE_GIGABITS.items()}, "hdr100": 100, "ndr200": 200
}  # fmt: skip
_TRANSFERS: Mapping[str, float] = {"2.5": 1.0, "5": 2.0, "8": 3.0, "16": 4.0, "32": 5.0, "64": 6.0}  # of a generation
_SIZES: Mapping[str, float] = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
# Each quantity is in the group `n`, its unit in `u`.
_QUANTITIES: Mapping[str, str] = {
    "lanes": (
        rf"(?<![\w.])(?:[x\u00d7] ?(?P<n>16|12|8|4|2|1)(?![\w.]\w|\w)|(?P<n1>16|12|8|4|2|1) ?[x\u00d7](?![\w-])"
        rf"|(?P<n2>{_LANES})(?:[ -](?:pcie|pci-e|link))?[ -]lanes?\b"
        rf"|width:?(?: is| of| now| current:?| at| only| max:?){{0,2}}[ :=]{{1,3}}(?P<n3>16|12|8|4|2|1)(?![\w.]))"
    ),
    "generation": (
        r"(?<![\w.])(?:gen(?:eration)?(?:[ .-]|:?[ .](?:max|current|now)(?:imum)?:? ?|: ?| ?= ?|is |stays "
        r"|at ){0,4}(?P<n>[1-7])(?![\w.]\w|\w)|pcie?[ -](?P<n1>[1-7])\.0|(?P<n2>2\.5|5\.0|5|8\.0|8|16\.0|16|32\.0|32"
        r"|64\.0|64) ?(?P<u>GT/s))"
    ),
    "gigabits": (
        r"(?<![\w.-])(?:(?P<n>[0-9]{1,6}(?:\.[0-9]{1,3})?) ?(?P<u>[gm])(?:bit|(?-i:b)|(?-i:b)?ps|(?-i:b)?e)?(?:s"
        r"|it/s|/s|/sec|ps)?(?![\w/])|(?P<n1>SDR|DDR|QDR|FDR|EDR|HDR100|HDR|NDR200|NDR|XDR)\b"
        r"|(?P<n2>[124])x(?= (?:instead|rather|and|but|on))|(?:rate|speed|ibstat|ibstatus|ethtool):? (?:is |of |= ?"
        r"|says |shows |prints |gives |reports )?(?P<n3>[0-9]{2,3})(?![\w.]\w|\w))"
    ),
    "gigabytes": rf"(?<![\w.-])(?P<n>{_NUMBER}) ?(?P<u>[kmgt])i?(?-i:B)(?:ytes)?(?:/s(?:ec)?|ps)(?!\w)",
    "mtu": r"(?<![\w.-])(?P<n>256|512|1024|2044|2048|4092|4096|1500|9000|9216|9[0-9]{3})(?![\w.]\w|\w|%)",
    "memory": rf"(?<![\w.-])(?P<n>{_NUMBER}) ?(?P<u>[mgt])i?b\b(?!/)",
    "memories": rf"(?<![\w.-])(?P<n>{_NUMBER}) ?(?P<u>[mgt])i?b\b(?!/)",
    "watts": r"(?<![\w.-])(?P<n>[0-9]{2,4}(?:\.[0-9]{1,2})?) ?w(?:atts?)?\b",
    "megahertz": r"(?<![\w.-])(?P<n>[0-9](?:\.[0-9]{1,2})?|[0-9]{2,4}) ?(?P<u>[mg])hz\b",
    "version": r"(?<![\w.-])(?P<n>[0-9]{3}\.[0-9]{1,3}(?:\.[0-9]{1,3})?)(?!\w|\.\d)",
    "seconds": r"(?<![\w.-])(?P<n>[0-9]{1,4}(?:\.[0-9]{1,2})?) ?(?:s|sec|seconds|ms)\b",
    "celsius": r"(?<![\w.-])(?P<n>[0-9]{2,3}) ?\u00b0? ?c\b",
    "socket": r"\b(?:numa node|numa|socket|node) ?(?P<n>[0-9])\b",
    "nvlinks": r"\bNV(?P<n>[0-9]{1,2})\b",
}
_BARE = (
    "lanes",
    "generation",
    "gigabits",
    "gigabytes",
    "count",
    "watts",
    "nvlinks",
)  # the second number may have no unit
# What a number without a unit can be
_POSSIBLE = {"lanes": (1, 2, 4, 8, 12, 16, 32), "generation": (1, 2, 2.5, 3, 4, 5, 6, 7, 8, 16, 32, 64)}
_ANY_OTHER = ("mtu", "version", "socket", "memories")  # two different numbers are the fault
_RDMA_MTUS = ("256", "512", "1024", "2048", "4096")  # ibv_devinfo: active_mtu
_MORE = ("seconds", "celsius")  # more than wanted is the fault
_WANTED = (  # the number behind it is what there should be
    r"(?<![\w-])(?:instead of|rather than|in place of|(?:down |(?<=\()|^ (?=from $))from"
    r"|should\w{0,3}(?: be| have| show| do| run| see| give| reach"
    r"| hold)?|ought(?: to(?: be| have)?)?|(?:is |are )?supposed|meant to|expect\w{0,3}|and not|not|where|against"
    r"|vs\.?|versus|compared (?:to|with)|others?|siblings?|rest|neighbou?rs?|twins?|sisters?|peers?|every(?:body|one"
    r"|thing) else|every other|identical|max(?:imum)?|capab\w{2,5}|capacity|supports?|can do|could|rated|LnkCap"
    r"|both (?:ends|sides)|(?:its|the) (?:slot|card|drive|port|switch) is|yesterday|before it was|last week|although"
    r"|even though|though|whereas|while|but|default|ships?|wants?|holds?|usually|normally|used to|did|max_\w{4,12}"
    r"|for either|alone|remote|promises|thresholds?|limits?|alarms?|the (?:board|chassis|machine|model|box|instance"
    r"|type|system|server|node) (?:has|holds|is|comes with)|on an?|of(?=\s(?:the |its |all |our )?(?:$|\d))|it is"
    r"|it has|there (?:are|is|were)|on(?=\s$)|(?:drive|card|bay|board|backplane|adapter|switch"
    r"|cable)s?(?: and \w{2,10})? (?:is|are|can|has|have))(?![\w-])"
)
_LEFT = (  # what there is
    r"(?<![\w-])(?:only|just|but|yet|merely|left|gets?|finds?|sees?|shows?|lists?|offers?|reports?|has|still|at most"
    r"|is at|came up)(?![\w-])"
)
_EQUAL = (
    r"^[ ,]{0,2}or\b|\b(?:as (?:much|many|good|fast|well)|same as|equals?|and so (?:is|are)|like (?:its|the)|in line"
    r"|matches)\b|\bper (?:direction|lane|link|pair)\b|\bup to\b|\bbetween \d|\bplus\b"
)
_FROM = r"\bfrom[^.;]{0,12}$"
_TO = r"^[^.;\d]{0,16}?(?:\bto\b|->|\u2192)"
_FILL = r"[^.;:?!\d\n]{0,36}?"
_UNITS = (
    r"(?![\w:]|[.,]\d|[ ]?(?:%|[kmgt]i?b|[kmg]hz|w\b|s\b|ms\b|seconds?|minutes?|hours?|days?|weeks?|times|nodes?"
    r"|hosts?|\u00b0|c\b|v\b))"
)
_PLURAL = (
    r" (?!others|is\b|was\b|has\b|as\b|this|lanes|does\b)[a-z]{2,14}s\b"  # "of the eight drives" counts something else
)
_DOWN = r"^[^.;,]{0,40}?(?<!not )\b(?:down|inactive|missing|gone|dead|failed|offline|lost|broken|disconnected)\b"


class Numbers(Struct, frozen=True):
    """What there is and what there should be, as the sentence has them, and the place of the first of both."""

    have: str
    want: str
    start: int
    end: int


class _Quantity(Struct, frozen=True):
    value: float | str
    text: str
    start: int
    end: int


def numbers(text: str, kind: str, counted: str = "") -> Numbers | None:
    """The two numbers of a kind in a sentence. `counted` is the expression for what "count" counts. None: it has no two
    numbers, or does not say that one is wanted, or there is as much as wanted.
    """
    if kind == "count" and (found := _of_all(text, counted)):
        return found
    sure = sorted(_quantities(text, kind, counted), key=lambda one: one.start)
    every = sorted([*sure, *_bare(text, kind, sure)], key=lambda one: one.start) if sure else []
    pairs = ((one, other) for place, one in enumerate(every) for other in every[place + 1 :])
    return next((found for one, other in pairs if (found := _compare(text, kind, one, other))), None)


def number(text: str) -> float:
    """The number of "7", "2,5", or "seven"."""
    return _SPELLED.get(text.lower()) or float(text.replace(",", "."))


def _of_all(text: str, counted: str) -> Numbers | None:
    """ "7 of 8 GPUs are visible", "GPUs: 7/8"."""
    of = (
        rf"(?<![\w.:/-])(?P<have>{_NUMBER})(?: (?:out )?of |/)(?:(?:the|its|our|all|their|my"
        rf"|expected) ){{0,2}}(?P<want>{_NUMBER})"
    )
    for form in (
        rf"{of}(?: [\w/-]{{1,14}}){{0,3}}? (?:{counted})(?!\w)",
        rf"(?:{counted})[^.;\d]{{0,40}}?{of}{_UNITS}",
    ):
        for found in _compiled(form).finditer(text):
            if number(found["have"]) < number(found["want"]) and not _compiled(_DOWN).search(text[found.end() :]):
                return Numbers(found["have"], found["want"], found.start(), found.end())
    return None


def _quantities(text: str, kind: str, counted: str) -> Iterator[_Quantity]:
    if kind == "count":
        form = (
            rf"(?<![\w.:/-])(?P<n>{_NUMBER})(?: (?!of\b|and\b|on\b|in\b|to\b"
            rf"|or\b)[\w/-]{{1,14}}){{0,3}}?[ -](?:{counted})(?![\w-])"
            rf"|(?:{counted})(?: count)?(?: is| are|:|=|(?<=count) of) (?:only |just )?(?P<n1>{_NUMBER}){_UNITS}"
        )
    else:
        form = _QUANTITIES[kind]
    for found in _compiled(form).finditer(text):
        digits = next(value for name, value in found.groupdict().items() if name[0] == "n" and value)
        unit = (found.groupdict().get("u") or "").lower()
        text = digits if found.groupdict().get("n1") and kind == "count" else found[0].strip()  # "count of 7"
        yield _Quantity(_VALUES.get(kind, _plain)(digits, unit), text, found.start(), found.end())


def _bare(text: str, kind: str, sure: Sequence[_Quantity]) -> Iterator[_Quantity]:
    """The numbers without a unit behind a word that says what there should be, or what there is."""
    if kind not in _BARE or len({one.value for one in sure}) > 1:
        return
    digits = _NUMBER if kind != "gigabits" else r"[0-9]{1,6}(?:\.[0-9]{1,3})?"
    for words in (_WANTED, _LEFT):
        for found in _compiled(rf"{words}{_FILL}(?<![\w.:/-])(?P<n>{digits}){_UNITS}").finditer(text):
            start, end = found.span("n")
            own = any(one.start < end and start < one.end for one in sure)
            others = kind != "count" and _compiled(_PLURAL).match(text, end)
            possible = _POSSIBLE.get(kind)
            if not own and not others and number(found["n"]) > 0 and (not possible or number(found["n"]) in possible):
                yield _Quantity(_scaled_like(kind, number(found["n"]), sure[0]), found["n"], start, end)


def _scaled_like(kind: str, value: float, one: _Quantity) -> float:
    """A number without a unit, in the unit of the other one."""
    unit = _compiled(r"([kmgt])(?:i?b|bit)(?:/s|ps)").search(one.text)
    scale = _SIZES[unit[1].lower()] if unit else _SIZES["g"]
    return value * scale if kind in ("gigabits", "gigabytes") else value


def _compare(text: str, kind: str, one: _Quantity, other: _Quantity) -> Numbers | None:
    between, before, behind = (
        text[one.end : other.start],
        text[max(0, one.start - 40) : one.start],
        text[other.end :][:40],
    )
    if kind == "mtu" and (one.text in _RDMA_MTUS) != (other.text in _RDMA_MTUS):
        return None  # an adapter with 9000 for IP packets has 4096 for those of RDMA
    if one.value == other.value or len(between) > 120 or _compiled(_EQUAL).search(between):
        return None
    have, want = one, other
    if _compiled(_FROM).search(before) and _compiled(_TO).search(between):  # "rose from 1 to 2", "fell from 2 to 1"
        have, want = other, one
        if kind in _ANY_OTHER:
            return None
    elif kind in _ANY_OTHER:
        return _result(one, other)
    elif _compiled(_LEFT).search(between) and not _is_less(kind, one, other):
        have, want = other, one
    elif not _compiled(_WANTED).search(between):
        if _compiled(_WANTED).search(before) and not _is_less(kind, one, other):
            have, want = other, one
        elif not (said := _compiled(_WANTED).search(behind)) or said[0].lower().startswith("on a"):
            return None
    return _result(have, want) if _is_less(kind, have, want) else None


def _is_less(kind: str, have: _Quantity, want: _Quantity) -> bool:
    """Whether there is less than wanted. Of times: more."""
    one, other = (want, have) if kind in _MORE else (have, want)
    return isinstance(one.value, float) and isinstance(other.value, float) and one.value < other.value


def _result(have: _Quantity, want: _Quantity) -> Numbers | None:
    if isinstance(have.value, str) and isinstance(want.value, str) and _is_prefix(have.value, want.value):
        return None
    first = min((have, want), key=lambda one: one.start)
    return Numbers(have.text, want.text, first.start, first.end)


def _is_prefix(one: str, other: str) -> bool:
    """Whether two versions can be the same: "550.54" and "550.54.15"."""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def _plain(digits: str, _: str) -> float | str:
    return number(digits)


def _generation(digits: str, unit: str) -> float | str:
    return _TRANSFERS[digits.removesuffix(".0")] if unit else float(digits)


def _bits(digits: str, unit: str) -> float | str:
    return _GRADES[digits.lower()] * 1e9 if digits.lower() in _GRADES else float(digits) * _SIZES[unit or "g"]


def _bytes(digits: str, unit: str) -> float | str:
    return number(digits) * _SIZES[unit]


def _version(digits: str, _: str) -> float | str:
    return digits


_VALUES: Mapping[str, Callable[[str, str], float | str]] = {
    "generation": _generation,
    "gigabits": _bits,
    "gigabytes": _bytes,
    "memory": _bytes,
    "memories": _bytes,
    "megahertz": _bytes,
    "version": _version,
}


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
