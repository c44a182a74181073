"""Two rates in neighbouring sentences: of two environments, or of a link and what came over it.

"On bare metal I get 320 GB/s. In the VM it saturates at 180 GB/s." "PCIe 2.0 x4 should give 2 GB/s, that is a lot more
than the 0.37 GB/s I was getting."
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....models.facts.network_paths import EXPECTED, NodePair
from ....models.facts.pcie_rates import rated, speed_of
from ....models.facts.records import Evidence
from ...parsing.expressions import ignoring_case
from ...parsing.sentences import is_stated, sentences
from .rows import factor_of
from .words import NUMBER, UNIT

_RATE = rf"(?<![\w.]){NUMBER}[ ]?{UNIT}(?![\w%])"
_VALUE = rf"(?<![\w.])(?P<number>{NUMBER})[ ]?(?P<unit>{UNIT})(?![\w%])"
# The simpler environment, and the one that adds something to its path
_PLAIN = (
    r"(?<![\w-])(?:bare[ -]?metal|native(?:ly)?|(?:on|from) the host(?: itself| os)?"
    r"|physical (?:hosts?|servers?|machines?)"
    r"|(?:outside(?: of)?|without) (?:the |an? )?(?:containers?|docker|vms?|virtuali[sz]ation)"
    r"|back[ -]to[ -]back|direct(?:ly)? (?:cabl\w{2,3}|connect\w{2,3}|attached|link))(?![\w])"
)
_ADDED = (
    r"(?<![\w-])(?:vms?|virtual machines?|guests?(?: os)?|containers?|docker|pods?|kubernetes|k8s|virtuali[sz]ed"
    r"|(?:through|via|over|behind|across) (?:the |a |our )?(?:\w{2,12} )?switch(?:es)?)(?![\w])"
)
_CLAUSE = (
    r";\s|,? (?:but|while|whereas|vs\.?|versus|compared (?:to|with))\s"
    r"|,? and (?=(?:only |about |around |just )?[~≈]?[0-9]|(?:only )?(?:in|inside|on|from|with|through)\s)"
)
_KINDS = (
    r"(?<![\w])(?:all[-_ ]?reduce|all[-_ ]?gather|reduce[-_ ]?scatter|all[-_ ]?to[-_ ]?all|h2d|d2h|p2p|reads?|writes?"
    r"|tcp|rdma|disks?|nvme|busbw|algbw)(?![\w])"
)
_WIDE = rf"(?:(?!{_RATE})[^\n]){{0,160}}?"  # without another rate
_LINK = r"(?<![\w-])(?P<link>pcie?[ -]?(?:express )?(?:gen[ -]?)?[1-6](?:\.0)?[ -]?x(?:16|8|4|2|1))(?![\w])"
_MORE = r"(?<![\w-])(?:(?:more|faster|higher|better) than|but|yet|whereas|while|instead of|only|however)(?![\w])"
_GOT = (
    r"(?<![\w-])(?:get|gets|got|getting|sees?|seeing|saw|measured?|measuring|reach(?:es|ed|ing)?|achiev\w{1,3})(?![\w])"
)
_OWN = rf"(?<![\w.])(?P<own>{NUMBER})[ ]?(?P<own_unit>{UNIT})(?![\w%])"
_PROMISED = (
    rf"{_LINK}{_WIDE}{_VALUE}{_WIDE}{_MORE}{_WIDE}(?:{_OWN}{_WIDE}{_GOT}|{_GOT}{_WIDE}{_OWN.replace('own', 'seen')})"
)
CONTRAST = (
    rf"(?=[^\n]{{0,300}}(?:{_PLAIN}))(?=[^\n]{{0,300}}(?:{_ADDED}))(?=[^\n]{{0,300}}?{_RATE}[^\n]{{1,300}}?{_RATE})"
    rf"[^\n]{{0,200}}?{_RATE}|" + re.sub(r"\(\?P<\w+>", "(?:", _PROMISED)
)
# Behind the rate of a link: another thing limits the second rate, or it is wanted, expected, or over
_LIMITED = (
    r"(?<![\w])(?:networks?|nvmes?|ssds?|disks?|drives?|raid|nfs|lustre|ethernet|wi-?fi|usb|infiniband|nics?|files?"
    r"|storage|[0-9]{1,3} ?(?:kb|kib|bytes?)|small|before|earlier|previously|used to|until|enough|fine|ok(?:ay)?"
    r"|(?<!not )(?:as|is|was) expected|(?<!than it )(?<!than this )(?<!than we )(?<!than i )should|must)(?![\w])"
)
_THINGS = (
    r"(?<![\w])(?:(?:memory|ram|dram|hbm|cache) (?:bandwidth|rate|speed)|nfs|lustre|disk|nvme|ssd|storage)(?=s?\b)"
)
_WANTED = r"(?<![\w])(?:should(?:n't| not)? (?:have|be|get|reach)|would (?:have|be)|(?:was|is) supposed to)(?![\w])"
_LONGEST = 800  # characters of a line
_SLOW = 0.7  # of the plain environment
_LIKE = (0.7, 1.4)  # what a writer takes as the rate of a link: rounded, without its encoding or with it


def contrast(line: str, cite: Evidence) -> NodePair | None:
    """The lower of the two rates that a line compares."""
    return _of_link(line[:_LONGEST], cite) or _of_environments(line[:_LONGEST], cite)


def _of_environments(line: str, cite: Evidence) -> NodePair | None:
    plain, added, kinds, things = list[float](), list[float](), dict[bool, set[str]](), dict[bool, set[str]]()
    for said in _clauses(line):
        rest, of_plain = ignoring_case(_PLAIN).subn(" ", said)  # "outside of the container" names no added one
        of_added = bool(ignoring_case(_ADDED).search(rest))
        values = [one for one in ignoring_case(_VALUE).finditer(said) if is_stated(said, one.span(), one.span())]
        if bool(of_plain) == of_added or not values or ignoring_case(_WANTED).search(said):
            continue
        rates = [float(one["number"].replace(",", ".")) * (factor_of(one["unit"]) or 0.0) for one in values]
        (plain if of_plain else added).append(max(rates))
        kinds.setdefault(of_added, set()).update(ignoring_case(_KINDS).findall(said.lower()))
        things.setdefault(of_added, set()).update(ignoring_case(_THINGS).findall(said.lower()))
    if not plain or not added or not 0 < max(added) < _SLOW * max(plain):
        return None
    of_other = kinds[True] and kinds[False] and not kinds[True] & kinds[False]
    cites = {"rate": cite, "others": cite}
    first, second = things.values()  # the second can leave out what it is the rate of
    return (
        None if of_other or second - first else NodePair(key=EXPECTED, rate=max(added), others=max(plain), cites=cites)
    )


def _clauses(line: str) -> Iterator[str]:
    for _, said in sentences(line):
        yield from re.split(_CLAUSE, said, flags=re.IGNORECASE)


def is_limited(line: str) -> bool:
    """Whether the second rate is that of another thing than the link, or one that was expected."""
    line = line[:_LONGEST]
    found = ignoring_case(_PROMISED).search(line)
    if found is None:
        return False
    second = found.start("own" if found["own"] else "seen")
    end = next((first + len(text) for first, text in sentences(line) if first <= second < first + len(text)), len(line))
    return bool(ignoring_case(_LIMITED).search(line, found.end("unit"), max(end, found.end())))


def _of_link(line: str, cite: Evidence) -> NodePair | None:
    """What came over a link whose rate the writer knows."""
    found = ignoring_case(_PROMISED).search(line)
    if found is None:
        return None
    own, unit = (found["own"], found["own_unit"]) if found["own"] else (found["seen"], found["seen_unit"])
    rate, usual = (
        float(text.replace(",", ".")) * (factor_of(of) or 0.0)
        for text, of in ((own, unit), (found["number"], found["unit"]))
    )
    generation, width = (int(one) for one in re.findall(r"[0-9]+", found["link"].replace(".0", "")))
    able = rated(speed_of(generation), width)
    said = next((text for first, text in sentences(line) if first <= found.start("link") < first + len(text)), line)
    if not _LIKE[0] * able <= usual <= _LIKE[1] * able or not 0 < rate < usual or said.rstrip().endswith("?"):
        return None
    cites = {"rate": cite, "others": cite, "link": cite}
    return NodePair(key=EXPECTED, rate=rate, others=usual, link=found["link"], cites=cites)
