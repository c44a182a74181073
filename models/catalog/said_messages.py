"""Faults in sentences of people: a sentence states one if it has the topic of a row and, beside it, a word for the
fault, or two numbers of which one is less than the other.

The rows are in messages/said_*.toml (Said in log_messages.py). Topic and fault are in one clause, in any order.
probes/parsing/sentences.py decides whether the sentence speaks of now.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice

from msgspec import Struct

from .log_messages import MACROS, Said, message
from .said_numbers import Numbers, numbers

_MACRO = re.compile(r"\{([a-z]+)\}")
_NOT = (
    r"(?<![\w-])(?:no|not|never|without|none|neither|nor|zero|nothing)(?![\w-])|\b(?:has|have|is|are|at|shows?|with"
    r"|reads?|[:=]) 0(?![\w.])|n['\u2019]t\b"
)
# Between a topic and a fault of something else, and between a topic and what it does not have
_APART = rf"^ ?0(?![\w.])|[;?!]|\.(?=\s)|,? (?:but|while|whereas|although|though|unlike|and yet)\b|{_NOT}"
_JOINTS = ("-", "_", "/", ",")  # "gpu-missing" is a name
_MOST, _FAR = 8, 90  # topics and faults of a sentence, and the characters between both
# The vocabulary of the rows. A macro may contain others.
WORDS: Mapping[str, str] = {
    "num": (
        r"(?:[1-9][0-9]{0,2}|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|sixteen"
        r"|seventeen|several|some)"
    ),
    "card": (
        r"(?<![\w/.-])(?:gpus?\d{0,2}|(?:a[0-9]|b[0-9]|h[0-9]|l[0-9]|v[0-9])[0-9]{1,2}s?|[gr]tx ?\w{0,8}|geforce"
        r"|tesla|quadro|mi[0-9]{3}\w?|gcds?|(?:graphics )?cards?|accelerators?|boards?|[2-5]0[5-9]0(?: ?ti"
        r"| super)?s?)(?!\w|-\w{1,8}-\d)"
    ),
    "graphics": (  # what a sentence about a GPU contains
        r"(?:gpu|\b[abhlv][0-9]{2,3}s?\b|[gr]tx|geforce|tesla|quadro|\bcards?\b|accelerator|hbm|cuda|nvidia-smi"
        r"|(?<![\w.])[2-5]0[5-9]0(?![\w.]))"
    ),
    "nic": (
        r"(?:\bnics?\b|\bhcas?\b|adapters?|mlx[45]_(?:bond_)?\d{1,2}|connectx\S{0,3}|\bcx-?\d\b|bluefield\S{0,3}"
        r"|\befa\b|rdmap\d{1,3}\w{0,6})"
    ),
    "port": (
        r"(?:{nic}|\bports?\b|\binterfaces?\b|\brails?\b|\buplinks?\b|\blegs?\b"
        r"|\b(?:ib|infiniband|roce|ethernet|fabric|network) links?\b|\b(?:eth|ib|ens|eno|enp|bond|hsn|swp)\d\w{0,12})"
    ),
    "onport": (  # what a sentence about a port contains
        r"(?:{port}|infiniband|\bib\b|\broce\b|\bleaf\b|\bspine\b|\bcables?\b|\bfib(?:re|er)s?\b|\bswitch)"
    ),
    "abroad": (  # in other languages: a denial, a condition, a plan, an explanation, or a repair
        r"(?:检测(?!不)|识别(?!不)|自动|预测|自愈|表示|返回|上报|隔离|提示|脚本|换(?:了|过|线|上)|更换"
        r"|恢复(?!不)|消失|好了|预期|若|一旦|当.{0,20}时|时[，,]|不再|未(?!加载|激活|连接)"
        r"|没(?!有?加载|有?连上|有?激活|起来| ?up)|无(?!法)|怎么|如果|如何|可能|以防|例如|比如|场景"
        r"|避免|防止|是否|已(?:经)?(?:修复|解决)|不会|正常|模拟|演练|情况下|处理|分类|常见|数量|次数|计数"
        r"|事件|支持|告警|监控|排查|接口|所以|因为|状态良好|备用|风扇|[Qq][：:]|summary|print"
        r"|\breturn|# |\bXid \d{1,3} ?(?:表示|：|:)"
        r"|nicht mehr(?! erkannt| gefunden| angezeigt)|wieder"
        r"|getauscht|Austausch|ersetzt|\bwar(?:en)?\b|gewesen|\bweil\b"
        r"|nur noch ein|\bwenn\b|\bfalls\b|решен|больше не|режиме"
        r"|после замены)"
    ),
    "pcidev": r"(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]",
    "disk": r"(?:\bnvme\w{0,6}|\bu\.2\b|\bssds?\b|\bdrives?\b|\bdisks?\b|\bhdds?\b|\bsd[a-z]\b)",
    "be": (
        r"(?:is|are|was|were|has been|have been|being|went|goes|stays?|remains?|became|got|gets|reads?|shows?"
        r"|reports?|[:=])"
    ),
    "broken": (
        r"(?:(?<!up and )(?<!slowed )(?<!slows )(?<!shut )(?<!slow )(?<!clocking )(?<!broke )\bdown\b(?! to"
        r"| for maint)|\binactive\b|\bbroken\b|\bdead\b|\bmissing\b|\bgone\b|\blost\b|\boffline\b|\bfailed\b"
        r"|\bfailing\b|\bfaulty\b|\bdefective\b|\bdisconnected\b|\bdropped out\b|\bnot (?:up|active|working"
        r"|connected|linked|trained|available)\b|\bdisabled\b|\bno link\b|\bout of (?:order|service)\b|\bis out\b"
        r"|\b(?:(?:does|do|did|will|would|is|are)(?: not|n['\u2019]t)|never|refuses? to|fails? to"
        r"|failed to) (?:comes?|came|coming|train\w{0,3}|link|work|establish|go|get) ?(?:up|active)?\b)"
    ),
    "missing": (
        r"(?:\bmissing\b|\bgone\b|\blost\b(?! (?:half|its|the|time|a ))|\bvanish\w{0,3}|\bdisappear\w{0,3}"
        r"|\babsent\b|\binvisible\b|\bnowhere\b|\bunreachable\b|\b(?:not|(?:is|are"
        r"|was)n['\u2019]t) (?:even )?(?:there|listed|visible|detected|found|seen|present|enumerated|enumerating"
        r"|recogni[sz]ed|showing|shown)\b|\b(?:does|do|did|will|would)(?: not|n['\u2019]t) (?:even )?(?:show|appear"
        r"|enumerate|exist|turn up|come back|respond)|\bno longer (?:shows?|detects|sees|finds|lists|recogni[sz]es"
        r"|reports|showing|listed|visible|detected|appears?|enumerat\w{1,3}|found|present|there|seen|responds?"
        r"|exists?)\b|\b(?:stopped|not) responding\b|\bdropped out\b|\bwent away\b|\bwent dark\b)"
    ),
    "off": (
        r"(?:\boff\b(?! the bus)|\bdisabled\b|\bunsupported\b|\bunavailable\b|\bimpossible\b|\bden(?:ied|ies)\b"
        r"|\bblocked\b|\brefused\b|\bnot (?:enabled|supported|possible|available|working|allowed|active|used|in use"
        r"|permitted)\b|(?:is|are|was|were)n['\u2019]t (?:enabled|supported|possible|available|working|allowed"
        r"|active|used|in use|permitted)\b|\b(?:does|do|did|will)(?: not|n['\u2019]t) (?:work|function)\b"
        r"|\bc(?:annot|an(?:['\u2019]t)?|ould(?: not|n['\u2019]t)) be (?:used|enabled|established|loaded)\b"
        r"|\bfails?\b|\bfailed\b)"
    ),
    "on": (
        r"(?:(?<=\w )on(?=[,.;)]|$| (?:and|but|so|again|while|since|for)\b)|\b(?:is|are|was|were|been|still|again"
        r"|switched|turned) on\b|\b(?:re-?)?enabled\b|\bactiv(?:e|ated)\b|\basserted\b|\bengaged\b|\btriggered\b)"
    ),
    "rises": (
        r"(?:\b(?:not|never|n['\u2019]t) stop\w{0,4} (?:ris|grow|climb|count|increas|mov)\w{2,4}\b"
        r"|\bskyrocket\w{0,3}|\bspik(?:es|ed|ing)\b|\bris(?:es|ing|en)\b|\brose\b|\bgrow\w{0,3}\b|\bgrew\b"
        r"|\bclimb\w{0,4}|\bincreas(?:es|ed|ing|e)\b(?! the)|\bincrement\w{0,4}|\b(?:go(?:es)?|going|went|tick(?:s"
        r"|ing)?) up\b|\bup and up\b|\bjump\w{0,3}|\bexplod\w{1,3}|\badvanc(?:es|ing|ed)\b|\bpil(?:es|ing) up\b"
        r"|\bpour\w{0,3}\b|\baccumulat\w{1,4}|\bmount(?:s|ing)\b|\bsurg\w{1,3}|\b(?:still|keeps?|kept|all"
        r"|both) (?:count|mov|go|com)ing\b|\bboth moving\b|\band counting\b|\bsoar\w{0,3}\b)"
    ),
    "many": (
        r"(?:\bswamp\w{0,4}|\boverwhelm\w{0,3}|\bcountless\b|\bseveral (?:hundred|thousand|million)\b|\bflood\w{0,4}"
        r"|\bspam\w{0,4}|\bfull of\b|\bstorms?\b|\bbursts?\b|\bstream of\b|\blots? of\b|\btons? of\b|\bhundreds\b"
        r"|\bthousands\b|\bmillions?\b|\bdozens\b|\bmany\b|\bconstant(?:ly)?\b|\bcontinuous(?:ly)?\b|\bendless\b"
        r"|\brepeat(?:s|ed|edly|ing)\b|\brecurring\b|\bchronic\b|\bpersistent\b|\bfrequent(?:ly)?\b|\bkeeps?\b"
        r"|\b(?:once|\d{1,9}|hundred|thousand)? ?(?:every|per|each|an?) (?:few )?(?:\d{1,3} )?(?:seconds?|minutes?"
        r"|hours?|day)\b|\bagain and again\b|\bover and over\b|\bthrough the roof\b|\bhuge\b|\bmassive\b|\bheavy\b"
        r"|\bsevere\b|(?<![\w.:-])(?!(?:19|20)\d\d\b)[1-9][\d,]{2,12}\b(?! ?(?:m?hz|w|g|m|k|t)\b)"
        r"|(?<![\w.:-])[1-9]\d{0,3}k\b)"
    ),
    "reports": (
        r"\b(?:shows?|showed|has|had|have|logs?|logged|logging|reports?|reported|reporting|throws?|threw|throwing"
        r"|hits?|counts?|counted|sees?|saw|gets?|got|getting|raises?|raised|prints?|suffers?|encounter(?:s|ed)"
        r"|detected|emits?|produces?|producing|generates?|yields?|ended with|dies (?:with|of|from)|died (?:with|of"
        r"|from)|killed)\b"
    ),
    "hangs": (
        r"(?:\bhangs?\b|\bhung\b|\bhanging\b|\bfreezes?\b|\bfroze\b|\bstuck\b|\bblocks\b|\bnever (?:returns?"
        r"|comes back|finish\w{0,3})\b|\b(?:does|do|did)(?: not|n['\u2019]t) (?:return|respond|answer|finish"
        r"|come back|terminate)|\btimes out\b|\btimed out\b|\bin (?:the )?D state\b|\bunkillable\b"
        r"|\bno longer (?:returns?|responds?|answers?)\b)"
    ),
    "low": r"(?:\bonly\b|\bjust\b|\bmerely\b|\bbarely\b|\bno more than\b|\bat most\b)",
    "differs": (  # from others, or from what is wanted
        r"(?:\bothers?\b|\brest\b|\bsiblings?\b|\bunlike\b|\bexcept\b|\bonly on\b|\bsisters?\b|\bneighbou?rs?\b"
        r"|\bpolicy\b|\bstandard\b|\bexpect\w{0,3}|\bshould\b|\bwants?\b|\bleft\b|\bstill\b|\binstead\b|\bcontrary\b"
        r"|\bforgot\w{0,3}|\bsome(?:body|one)\b|\bconfig\b|\bnowhere else\b|\brather than\b|\bagainst\b"
        r"|\bby mistake\b|\beverywhere else\b)"
    ),
    "slow": (
        r"(?:slow|latency|\bmhz\b|bandwidth|\blow\b|drop|cost|doubl|\bbad\b|speed|perform|because of|\bus\b|\u00b5s"
        r"|throughput)"
    ),
}


class Stated(Struct, frozen=True):
    """Where a sentence has topic and fault of a row, in their order, and its two numbers. Of numbers, the place of the
    first one is that of the fault.
    """

    first: tuple[int, int]
    last: tuple[int, int]
    numbers: Numbers | None = None

    @property
    def start(self) -> int:
        """Where the first of both begins."""
        return self.first[0]

    @property
    def end(self) -> int:
        """Where both have ended."""
        return max(self.first[1], self.last[1])


def row(name: str) -> Said:
    """The row with this name."""
    found = message(name)
    assert isinstance(found, Said)
    return found


def candidates(said: Said, text: str) -> Iterator[Stated]:
    """The places of a sentence that name the fault of a row."""
    topics = list(islice(_compiled(said.topic).finditer(text), _MOST))
    if not topics or (said.beside and not _matched(said.beside, text)):
        return
    if said.without and _matched(said.without, text):
        return
    if said.numbers and (found := numbers(text, said.numbers, expanded(said.counted or ""))):
        nearest = min(topics, key=lambda one: abs(one.start() - found.start))
        yield _stated(nearest.span(), (found.start, found.end), found)
    if not said.faults and not said.numbers:
        yield from (Stated(one.span(), one.span()) for one in topics)
    for fault in said.faults:
        for word in islice(_compiled(fault).finditer(text), _MOST):
            yield from (_stated(one.span(), word.span()) for one in topics if _is_near(text, one, word))


def _stated(topic: tuple[int, int], fault: tuple[int, int], numbers: Numbers | None = None) -> Stated:
    first, last = sorted((topic, fault))
    return Stated(first, last, numbers)


def meaning(name: str, sentence: str) -> str:
    """What a sentence says, with its two numbers."""
    said = row(name)
    found = next((one.numbers for one in candidates(said, sentence) if one.numbers), None)
    return said.says.format(have=found.have, want=found.want) if found and said.says else said.meaning


def _is_near(text: str, topic: re.Match[str], fault: re.Match[str]) -> bool:
    """Whether topic and fault are two words of one clause, without a negation between them."""
    first, last = sorted((topic, fault), key=re.Match.start)
    between = text[first.end() : last.start()]
    return len(between) <= _FAR and between.strip() not in _JOINTS and not _compiled(_APART).search(between)


def _matched(pattern: str, text: str) -> bool:
    return _compiled(pattern).search(text) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(expanded(pattern), re.IGNORECASE)


def expanded(pattern: str) -> str:
    """A pattern with the expressions that its macros stand for."""
    for _ in range(3):
        pattern = _MACRO.sub(lambda found: WORDS.get(found[1]) or MACROS[found[1]], pattern)
    return pattern
