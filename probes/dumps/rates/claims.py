"""Rates in prose and in lists of one line: "node3: 180 Gb/s, others 370", "12 Gb/s instead of 92 Gb/s"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....models.facts.averages import median
from ....models.facts.ethernet import ETHERNET_SPEEDS
from ....models.facts.network_paths import EXPECTED, NodePair
from ....models.facts.records import Evidence
from ...kernel_log.messages import catalog, find_messages
from ...kernel_log.said import find_said
from ...parsing.expressions import ignoring_case
from ...parsing.sentences import is_prose
from ..core.part import Part
from .complaints import COMPLAINT, complaint
from .contrasts import CONTRAST, contrast, is_limited
from .rows import factor_of
from .stated_limits import limited
from .words import BETWEEN, CELLS, NIC, NODE, NUMBER, NUMBERED_NODE, RATED, UNIT, is_device

_KINDS = "nodes|hosts|machines|servers"
_DEVICES = "adapters|gpus|cards|nics|rails"
_OTHERS = (
    rf"(?:(?:all|the|every)[ ]){{0,2}}(?:other[ ](?:(?P<kind>{_KINDS})|{_DEVICES}|hcas|ports|ones)|others|rest"
    rf"|(?:all|most)[ ](?:{_KINDS}|{_DEVICES})|gpus?[ #]?[0-9]{{1,2}}[ ]?(?:-|–|to)[ ]?[0-9]{{1,2}}(?:[ ]all)?)(?![\w])"
)
_FILL = (
    r"(?:[ ]?(?:[:=(~≈*`]|(?:is|was|are|at|gets?|got|reach(?:es|ed)?|ha[sd]|have|only|just|about|around|runs?|shows?"
    r"|achieves?|gives?|show|i|we|you|see|measured?|with|all|which|that|delivers?|of|the|nodes)(?![\w]))){0,6}[ ]?"
)
_PRODUCTS = r"(?!gpu[0-9]|cuda|dev|numa|cpu|rtx|gtx|gen|pcie|connectx)"
_CARD = r"gpu[ #]?[0-9]{1,2}(?![\w.-])"
_NAME = rf"(?<![\w.-])(?P<name>{NUMBERED_NODE}|{NIC}|{_CARD}|{_PRODUCTS}{NODE})(?![\w])"
_GAP = r"[^\n0-9]{0,60}?"
_OWN = rf"(?P<own>{NUMBER})(?:[ ]?(?P<unit>{UNIT}))?(?![\w%])"
_USUAL = rf"(?P<usual>{NUMBER})(?:[ ]?(?P<other>{UNIT}))?(?![\w%])"
_FIRST = rf"{_NAME}{_FILL}{_OWN}{_GAP}(?<![\w-]){_OTHERS}{_FILL}{_USUAL}"
_LAST = rf"(?<![\w-]){_OTHERS}{_FILL}{_USUAL}{_GAP}{_NAME}{_FILL}{_OWN}"
# A rate and what the writer expects in its place, without a name.
_WANTED = (
    r"(?:instead of|rather than|expect(?:ed|ing|ation)?|should(?: be| get| reach| see| give)?|supposed to|normal(?:ly)?"
    r"|theoretical(?:ly)?|in theory|advertised|nominal(?:ly)?|line rate"
    r"|(?:below|under|less than|lower than)[ ](?:the )?(?:minimum|threshold|required|expected|limit)"
    r"|(?:healthy|sound|good|working|identical)[ ](?:nodes?|hosts?|machines?|servers?|pairs?|ones?))(?![\w])"
)
_RATE = rf"(?P<own>{NUMBER})[ ]?(?P<unit>{UNIT})(?![\w%])"
_IDEAL = rf"(?P<usual>{NUMBER})[ ]?(?P<other>{UNIT})(?![\w%])"
# Words between two rates. They may name products and counts: "on 8x H100", "between 2 nodes"
_COUNT = r"(?<![\w.])[0-9]{1,2}(?:x(?![\w])|x?(?= (?:GPU|node|rank|NIC|H|A|B)))"
_NEAR = rf"(?:[^\n0-9]|(?<=[A-Za-z])[0-9]{{1,4}}(?![0-9.])|(?<=gpu[ #])[0-9]{{1,2}}(?![\w.])|{_COUNT}){{0,60}}?"
_ONLY = r"(?<![\w-])(?:but|only|get|got|see|measured?)(?![\w])"
_BELOW = rf"(?<![\w.]){_RATE}{_NEAR}(?<![\w-]){_WANTED}{_NEAR}{_IDEAL}"
_MISSED = rf"(?<![\w-]){_WANTED}{_NEAR}{_IDEAL}{_NEAR}{_ONLY}{_NEAR}{_RATE}"
_ON = (  # "3.3 Gbits/sec on a 40Gb network card"
    rf"(?<![\w.]){_RATE}[^\n0-9]{{0,20}}(?<![\w-])(?:on|over|with)[^\n0-9]{{1,20}}"
    rf"(?P<usual>{NUMBER})[ -]?(?P<other>[gt](?:b(?:its?)?(?:ps|/s(?:ec)?)?)?)"
    r"(?:b?e|[ -]?(?:network|nics?|links?|ports?|cards?|adapters?|ethernet|infiniband|connection))(?![\w])"
)
_BUT = (  # "23000MB/s for host memory but around 11000MB/s for GPU memory"
    rf"(?<![\w.]){_IDEAL}[^\n0-9]{{0,60}}(?<![\w-])(?:but|whereas)(?![\w])(?:[ ](?:only|just|around|about|a))*"
    rf"[ ~≈]{{1,3}}{_RATE}[ ](?:for|with|from|on|over|between|to)(?![\w])"
)
_BELOW_LAST = rf"(?<![\w.]){_RATE}{_NEAR}(?<![\w.]){_IDEAL}{_NEAR}(?<![\w-]){_WANTED}"
_INSTEAD = (  # "40GB/s instead of 50+"
    rf"(?<![\w.]){_RATE}[^\n0-9]{{0,20}}[ ](?:instead of|rather than)[ ](?:about |the )?[~≈]?"
    rf"(?P<usual>{NUMBER})(?:[ ]?(?P<other>{UNIT}))?(?![\w%])"
)
_OTHER = r"(?<![\w-])(?:all |the |most ){0,2}other (?:pairs?|gpus?|nodes?|ports?|links?|cards?)(?![\w])"
_THEN = r"(?<![\w-])(?:versus|vs\.?|compared (?:to|with)|while|whereas|but|against)(?![\w])"
_AGAINST = (  # "6 GB/s on GPU 2 versus 25 GB/s on the others"
    rf"(?<![\w.]){_RATE}{_NEAR}{_THEN}[^\n0-9]{{0,16}}{_IDEAL}"
    rf"[ ](?:on|for|over|between|with) (?:{_OTHER}|(?:the )?(?:others|rest))"
)
_AMONG = (  # "1.2 GB/s between gpu0 and gpu4, all other pairs are at ~50 GB/s"
    rf"(?<![\w.]){_RATE}{_NEAR}{_OTHER}[^\n0-9]{{0,20}}[ ~≈]{{1,3}}{_IDEAL}"
)
_DROPPED = (  # "dropped from 180 GB/s to 90 GB/s"
    rf"(?<![\w-])(?:drop(?:s|ped)?|f[ae]ll(?:s|en)?|went down|decreased?|degraded?|reduced)[^\n0-9]{{0,20}}[ ]from[ ]"
    rf"[~≈]?(?P<usual>{NUMBER})(?:[ ]?(?P<other>{UNIT}))?[ ]?(?:to|->|→)[ ][~≈]?(?:only[ ]|about[ ]|around[ ])?{_RATE}"
)
_BUS = (  # without a unit, as nccl-tests prints it: "busbw is 50, theoretical busbw should be 200"
    rf"(?<![\w-])bus ?bw[^\n0-9]{{1,20}}[ ](?P<own>{NUMBER})(?![\w%]|[.]\d)[^\n0-9]{{1,30}}(?<![\w-]){_WANTED}"
    rf"[^\n0-9]{{0,30}}[ ](?P<usual>{NUMBER})(?![\w%]|[.]\d)"
)
_SEVERAL = rf"{NUMBER}(?:[ ]?{UNIT})?"
_EACH = (  # "to device 0, 1, 2 and 3 were 14.2, 57.06, 56.68 and 57.07 respectively"
    r"(?:(?P<gpu>gpu|device|card)s?|nodes?|nics?|ports?)[ ](?P<ends>[0-9]{1,2}(?:, ?[0-9]{1,2}){1,14},? and [0-9]{1,2})"
    rf"[^\n0-9]{{1,40}}(?P<each>{_SEVERAL}(?:, ?{_SEVERAL}){{1,14}},? and {_SEVERAL})[^\n0-9]{{0,12}}respectively"
)
# What names of machines contain; other words with a number can be those of products
_MACHINE = re.compile(r"(?i:node|host|server|machine|worker|compute|[dh]gx|gpu-|rack|srv|rail)|(?:[0-9]{1,3}\.){3}")

# What a port negotiated, directly before the rate. It is no rate that a test reached, and the catalog has a row for it.
_NEGOTIATED = (
    r"(?<![\w-])(?:(?:re|auto-?)?negotiat\w{1,4}|auto-?neg|connect(?:s|ed)|link(?:s|ed)?(?: speed)?"
    r"|eth[0-9]{1,2}|en[opsx][0-9]\w{0,12}|port|nic|adapter|interface|uplink|network|speed)"
    rf"(?:[ ](?:only|just|works|goes|went|falls?|fell|drop(?:s|ped)?|back|up|down|at|to|with|is|ends|itself|running"
    rf"|runs|stuck|{NUMBER}[ ]?{UNIT} or)){{0,5}}"
    rf"[ ]{NUMBER}[ ]?{UNIT}(?![\w])"
)
_ROWS = ("said-port-rate", "said-port-megabits")

_PLAIN_NAME = rf"(?:{NUMBERED_NODE}|{NIC}|{NODE})"
_ENTRY = rf"{_PLAIN_NAME}(?:{BETWEEN}{_PLAIN_NAME})?{CELLS}{RATED}"
_FEWEST = 3  # entries of a list


def _unnamed(text: str) -> str:
    return re.sub(r"\(\?P<\w+>", "(?:", text)


# The lines with which such a text begins
_NAMED = rf"{_unnamed(_FIRST)}|{_unnamed(_LAST)}"
_FREE = (_MISSED, _BELOW, _INSTEAD, _DROPPED, _AGAINST, _AMONG, _ON, _BUT, _BELOW_LAST)  # without the name of a device
_NAMELESS = "|".join((*map(_unnamed, _FREE), COMPLAINT, CONTRAST))
_ADAPTER = rf"(?<![\w.-]){NIC}(?![\w])"  # notes/device_notes.py reads "mlx5_5 200 Gb/s instead of 400 Gb/s"
SPOKEN = rf"(?:[^\n]{{0,200}}?(?:{_NAMED})|(?![^\n]{{0,300}}{_ADAPTER})[^\n]{{0,200}}?(?:{_NAMELESS}))"
UNITLESS = rf"[^\n]{{0,200}}?(?:{_unnamed(_BUS)}|(?:bandwidth|throughput|bw)[^\n]{{0,80}}?{_unnamed(_EACH)})"
LISTED = rf"[^\n]{{0,80}}?(?<![\w.]){_ENTRY}(?:[ ]?[,;|][ ]?{_ENTRY}){{2}}"


# "GPU0-6: 55 GB/s H2D", "GPUs 0 to 6: 55 GB/s"; "GPU0-6: 48 GB/s" can be a pair.
_RANGE = re.compile(
    r"[ \t|*-]{0,8}gpu(s?)[ #]?([0-9]{1,2})[ ]?(?:-|–|\.\.|to)[ ]?([0-9]{1,2})(?![0-9])(.{3,80})", re.IGNORECASE
)
_WITH_HOST = re.compile(r"(?i:h2d|d2h|htod|dtoh|host)")


def entries(line: str) -> list[str]:
    """The rows of a list in one line, or of a range of GPUs; any other line as it is."""
    some = _RANGE.fullmatch(line)
    if some and (some[1] or _WITH_HOST.search(some[4])) and int(some[2]) < int(some[3]):
        return [f"gpu{number}{some[4]}" for number in range(int(some[2]), int(some[3]) + 1)]
    found = list(ignoring_case(rf"(?<![\w.])(?:{_ENTRY})").finditer(line))
    if len(found) < _FEWEST:
        return [line]
    between = (line[a.end() : b.start()] for a, b in zip(found, found[1:], strict=False))
    return [one[0] for one in found] if all(text.strip() in (",", ";", "|") for text in between) else [line]


def claims(part: Part) -> Iterator[tuple[int, NodePair]]:
    """A node or adapter whose rate the text compares with that of all others, or with what its writer expects. Each
    with the number of its line, from 0.
    """
    yield from limited(part)
    for number, line in part.lines():
        if is_limited(line) or any(find_messages(line, catalog("node_checks", "dcgm"))):
            continue  # the catalog names the device that a node check measured
        other = None if ignoring_case(_ADAPTER).search(line) else contrast(line, part.cite(number, line))
        if other:
            yield number, other
            continue
        for pattern in _forms(line):
            found = ignoring_case(pattern).search(line[:600])
            if found and (pair := _pair(found, part.cite(number, line))):
                if not (pair.key == EXPECTED and _is_of_port(line, pair.rate, pair.others)):
                    yield number, pair
                break
        else:
            if slow := _slowest(line, part.cite(number, line)):
                yield number, slow
            elif (low := complaint(line)) and (factor := factor_of(low["unit"])):
                rate, cite = _number(low["own"]) * factor, part.cite(number, line)
                if not _is_of_port(line, rate):
                    yield number, NodePair(key=EXPECTED, rate=rate, cites={"rate": cite})


def _forms(line: str) -> tuple[str, ...]:
    """The forms in which a line can compare. A line with the name of an adapter compares it with the others only."""
    return (_FIRST, _LAST) if ignoring_case(_ADAPTER).search(line) else (_FIRST, _LAST, *_FREE, _BUS)


def _pair(found: re.Match[str], cite: Evidence) -> NodePair | None:
    groups = found.groupdict()
    name = groups.get("name") or EXPECTED
    name = re.sub(r"(?i:gpu)[ #]?(?=[0-9])", "gpu", name) if re.fullmatch(_CARD, name, re.IGNORECASE) else name
    unit = groups.get("unit") or groups.get("other") or ("" if "unit" in groups else "GB/s")
    other = groups.get("other") or unit
    other = f"{other}bps" if len(other) == 1 else other  # "a 100G link"
    factor, of_others = factor_of(unit), factor_of(other)
    known = name == EXPECTED or is_device(name) or groups.get("kind") or _MACHINE.search(name)
    if factor is None or of_others is None or not known:
        return None
    return NodePair(
        key=name,
        a=None if is_device(name) or name == EXPECTED else name,
        rate=_number(found["own"]) * factor,
        others=_number(found["usual"]) * of_others,
        cites={"rate": cite, "others": cite},
    )


def _is_of_port(line: str, *rates: float | None) -> bool:
    """Whether the line says what a port negotiated, and the catalog reads it: its rates are speeds of Ethernet."""
    negotiated = {*rates} <= ETHERNET_SPEEDS and is_prose(line) and ignoring_case(_NEGOTIATED).search(line)
    return bool(negotiated) and any(one.name in _ROWS for one in find_said(line))


def _slowest(line: str, cite: Evidence) -> NodePair | None:
    """The lowest of several rates and the median of all, if the line has one for each device. GB/s without a unit."""
    found = ignoring_case(_EACH).search(line[:600])
    rates = (
        [_number(one) for one in ignoring_case(rf"({NUMBER})(?:[ ]?{UNIT})?").findall(found["each"])] if found else []
    )
    ends = re.findall(r"[0-9]+", found["ends"]) if found else []
    if not found or len(ends) != len(rates):
        return None
    unit = ignoring_case(UNIT).search(found["each"])
    factor = factor_of(unit[0] if unit else "GB/s")
    if factor is None:
        return None
    cites = {"rate": cite, "others": cite}
    name = f"gpu{int(ends[rates.index(min(rates))])}" if found["gpu"] else EXPECTED
    return NodePair(key=name, rate=min(rates) * factor, others=median(rates) * factor, cites=cites)


def _number(text: str) -> float:
    return float(text.replace(",", "."))
