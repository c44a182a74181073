"""Whether a line that names a fault says that it is there, and about which device.

Lines of programs and of people can deny a fault: "fallen off the bus: no", "without Xid 79". In sentences of people, a
condition ("if a GPU throttles"), a question, and a fault that is over state none. A question for the reason ("why is my
GPU at x8?") states one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from .expressions import ignoring_case

_NEAR = 60  # characters before and behind the name
_BEFORE = (
    r"(?:\b(?:no|never|without(?: an?y?)?|zero|none of|(?:has|have) not|hasn't|haven't)[ ]{1,3}"
    r"(?:(?:new|more|other|further|recent|single|such|an?|any|been)[ ])?|^[ \t]{0,8}0[ ]{1,3})$"
)
_STATE = r"(?:no|none|false|never|n/a|not (?:found|seen|detected|present|logged))"
_BEHIND = (  # "the GPU is lost, not detected by nvidia-smi" says the fault again
    rf"[ \t]{{0,8}}[:=?|,][:=?|, \t]{{0,8}}(?:{_STATE}|0)[ .|)]{{0,4}}$"
    r"|[ ]{1,2}(?:was|were|has been|have been)[ ](?:not|never)[ ](?:found|seen|detected|observed|logged)\b"
    r"|[ ]{1,2}(?:did not happen|never (?:happened|occurred))\b|[ ,(:=-]{1,3}(?:(?:was|were|is|are|has|have|had|been"
    r"|now|already|since)[ ]){0,3}(?:cleared|resolved|fixed|repaired)\b"
)
_WITHIN = rf"[:=?|][ \t]{{0,8}}({_STATE})[ .|)]{{0,4}}$"  # in what was matched
_ENDS = (
    r"[.?!](?=[\s\"'`*)]|$)|\?(?=[A-Z][a-z])|[\u3002\uff01\uff1f]|\n"
    r"|\|(?! grep| ?(?:no|none|false|never|0|not \w{2,12}) ?\|)"
)
_CLAUSE = (
    r";|[,:]\s|[\uff0c\uff1b\uff1a]|\s[-\u2013\u2014]+\s|\u2014|\b(?:but|and yet|while|whereas|although|though|because"
    r"|since|so that|therefore|and (?:the|it|we|all|its|every))\b"
)
_NOT = (
    r"(?<![\w-])(?:no|not|never|without|none of|neither|nor|zero|nothing|nobody|rarely|hardly|kein\w{0,2}|nicht"
    r"|\u043d\u0435|\u043d\u0435\u0442|\u0431\u0435\u0437)(?![\w-])|n['\u2019]t\b|\u6ca1\u6709|\u5e76\u672a"
)
_SUPPOSED = (  # before the fault
    r"(?<![\w-])(?:if|whether|unless|until|would|could|might|may|can(?!['\u2019]t| (?:see|confirm) that)"
    r"|in case|supposed?|suppose|imagine"
    r"|e\.g\.?|for example|such as|make sure|ensure|verify|avoid|prevent|how to|to (?:see|test|check)"
    r"|as soon as (?:an?|any)|means? that|is defined|(?:check|detect)(?:s|ing)? (?:if|that|when|whether|for)"
    r"|when(?:ever)? (?:an?|any|the|your|it|they|\w{0,12} ?$)|once (?:an?|the|it)|each time|every time"
    r"|had \w{2,12} \w{1,9} been|no (?:sign|trace|evidence|indication)s? of|simulat\w{1,5}|pretend\w{0,3}"
    r"|hypothe\w{3,8}|documentation|wiki|runbook|templates?|panels?|dashboards?|tutorial|data ?sheets?|release notes"
    r"|support for|handles?|explains?|alerts?|examples?|documents?|tests? for|requires?d?|qualif\w{2,4}|wenn|falls"
    r"|sobald)(?![\w-])|\btest_\w|\u5982\u679c|\u662f\u5426"
)
_GENERAL = (  # what is true of all machines, by design, or on purpose
    r"(?<![\w-])(?:an? (?:job|program|process|run) (?:killed|ended|stopped|hit) by"
    r"|can (?:also )?be (?:throttled|slowed|limited|degraded)"
    r"|(?:i|we)['\u2019 ](?:ha)?ve (?:often|sometimes|occasionally) seen"
    r"|(?:occurs?|happens?|fires?|appears?|shows? up|comes? up) (?:when|if)"
    r"|(?:may|might|(?:would|will|can)(?: usually| often| then))(?! not| be replaced) [a-z]{2,12}"
    r"|will (?:cap|limit|slow|halve|cause|make|lead)|usually|typically|generally|is (?:documented|listed|described) as"
    r"|(?<!which )(?<!that )(?<!this )(?<!it )means?(?! nothing)|is defined|by (?:design|default|purpose)"
    r"|as (?:designed|planned|intended|agreed|wanted|required)|as the (?:policy|site|plan|standard|vendor) \w{3,9}"
    r"|as it (?:should|always)|on purpose|intentional\w{0,2}|deliberately|is an? (?:\w{1,12} )?(?:mechanism|feature"
    r"|measure)|(?:is|are) (?:all |perfectly |quite |only )?(?:normal|expected|harmless|intended|to be expected)"
    r"|(?:is|are) what|is right (?:for|here)|is (?:printed|returned|raised|logged|set) (?:when|if)"
    r"|usually comes? from|stands for|indicates?|denotes?|refers to|defines?|should (?:only|never|always|not) be"
    r"|an? (?:dead|broken|missing|failed|slow|faulty|lost) [\w-]{2,16} (?:costs?|takes|means|needs|halves|breaks"
    r"|stops|slows|would)|an? (?:throttled|degraded|flapping|hot|failing|lost|missing|dead|slow|failed"
    r"|broken) [\w-]{2,16} (?:shows|makes|gives|causes|leads)|(?:is|are) (?:reported|counted|exposed"
    r"|displayed) (?:by|in|with|under)|(?:each|every) time (?:an?|the|it)|nothing to (?:do|worry)|for example|e\.g"
    r"|(?:at|when|while) idle|(?:when|while) (?:it|they) (?:is|are|sleeps?)|(?:saves?|saving) power|power saving"
    r"|is all (?:it|we|they)|(?:is|are) (?:an? )?spare|not cabled|no problem|deprecated|by a factor of"
    r"|not (?:the|a|our)(?: current| real| actual)? (?:problem|cause|issue|blocker|culprit|bottleneck))(?![\w-])"
)
_USUAL = (
    r"\b(?:where|but|and|against|when|as) (?:about |~)?\d[\d.]{0,6}\+?(?: ?[GMk]?b(?:/s|ps)?)? (?:is|are) (?:normal"
    r"|expected|usual)"
)
_OVER = (
    r"(?<![\w-])(?:(?<!it )(?<!they )(?<!what )used to|brought (?:it|them) back|got (?:it|them) back"
    r"|(?:after|since) (?:we|i) (?:raised|lowered|set|enlarged|increased)\b"
    r"(?:(?!\b(?:not|no|nothing|nobody|only|without)\b|n['\u2019]t\b)[^.;]){0,40}\b(?:works?|fine|ok)"
    r"|no longer (?:flap|fail|drop|happen|occur|see|reproduc|throttl|report)\w{0,3}|not any ?more|after correcting"
    r"|it works|(?:has|have) (?:worked|run) (?:for|since)|fixed(?! (?:only )?in \d)"
    r"|solved|resolved|repaired|replaced|cured|ended (?:that|this|it)"
    r"|re-?seat(?:ed|ing)(?= (?:it|the)\b)(?=[^.]{0,40}\b(?:and|now|back)\b)|previously|formerly|recovered"
    r"|swapped(?! (?:with|two|in|into|cables))|went away|cleared|stopped|(?:up|works?|fine|ok|okay|back|healthy"
    r"|normal|free|plugged in) (?:now|again)|(?:is|are|was|were|came|went) back(?! (?:as|with|without|an?|one|two"
    r"|short)\b)|now (?:it|they|we|all|the \w{2,10}) (?:is|are|has|have|runs?|works?)|(?:replacement"
    r"|new \w{2,12}) (?:is|are|has|runs?|works?)|(?:was|were|is|are) not seen|(?:reset|restored|raised|lowered"
    r"|changed)\b[^.;]{0,40}\bfrom|has(?:n['\u2019]t| not) (?:moved|happened|come back)|(?:in|from|of) (?:19|20)\d\d"
    r"|last (?:year|month)|ever since|has been (?:active|up|fine|healthy|clean|stable|ok)\b[^.;]{0,20} since"
    r"|before (?:we|it|that|they|i)\b|until (?:we|the|it|they)|since (?:the"
    r"|we) [\w-]{2,12} (?:was |were )?(?:replaced|swapped|changed|updated|upgraded|cleaned)|behoben|gel\u00f6st"
    r"|ersetzt)(?![\w-])|\u89e3\u51b3|\u4fee\u590d|\u5df2\u66f4\u6362"
)
_BEFORE_THIS = r"^[\s*>-]{0,8}(?:before|until|prior to)\b"
_AFTER = (  # a fault since a repair is a fault
    r"\b(?:after|since|when|because)(?: [^\s,;]{1,16}){1,5} (?:swapped|replaced|repaired|re-?seated|reset|cleared"
    r"|changed|moved)\b"
)
_DENIED = (  # the first words of a sentence: an instruction, the title of a commit or of a list of wishes
    r"[\s*>#-]{0,8}(?:(?:please|don['\u2019]t|use|set|add|check|ensure|try|see|remove|exclude|include|support|handle"
    r"|detect|skip|ignore|allow|make|choose|replace|reseat|disable|enable|drain|restart|verify|read|compare|consider"
    r"|expect|let|install|leave|kill|treat|mark|monitor|keep|switch (?!ports?|\d)|turn|proposal|feature request"
    r"|example|thresholds?|note|tip|hint"
    r"|faq|to [a-z]{3,12} [^.;]{2,60},)(?![\w-])|run (?!one\b|the)(?!\w{1,12} alone)|(?:feat|fix|docs?|chore|refactor"
    r"|tests?|ci|perf|style"
    r"|build)(?:\([\w-]{1,20}\))?:|[\w-]{1,20}: (?:add|remove|fix|handle|support|report|detect|skip|ignore|allow"
    r"|treat|mark|count|warn"
    r"|make|use|do not|don['\u2019]t)\b)"
    r"|[\s*>#-]{0,8}(?:an?|any|each|every) (?:[\w-]{1,16} ){1,4}(?:that|whose|which)\b"
    r"|[\s*>#-]{0,8}(?:[\w /()-]{2,40} [-:] )?(?:the )?(?:total )?(?:amount of time"
    r"|number of [^.;\d]{2,80} (?:that|which|due|since)|value is either"
    r"|when [\w ]{2,30} is (?:enabled|disabled|set|not supported))\b"
)
_ASKS = (  # the first word of a question about a fault. "Only 7 of 8 GPUs show up, any help?" states one
    r"[\s*>-]{0,8}(?:(?:specifically|also|and|so|or|then|next|finally|in particular|more precisely|second(?:ly)?"
    r"|first(?:ly)?|in other words),? ){0,2}(?:is|are|was|were|does|do|did|can|could|should|would|will|has|have|how"
    r"|what|which|who|where"
    r"|why (?:do|does|would|should|can|will)\b[^?]{0,80}\bwhen\b"
    r"|(?:for|on|in|from|with|at) (?:what|which)|when (?:is|are|do|does|did|will)|perhaps|maybe|possibly|ist|sind"
    r"|kann|gibt)(?![\w-])"
)
_IS_NOT = r"[\"'`*]{0,2} ?[:=] ?[\"'`]?(?:no|none|false|never|n/a|off|not \w{2,12}|0)(?![\w.])"  # behind the fault
_HAS_NO = r" (?:no(?! matter)|zero|0|nothing|nowhere)(?!\w|\.\d)"  # behind "shows", "has"
_NOT_AT_END = (
    rf"(?:(?:[:,|]| =) ?(?:{_STATE}|0)|\b(?:was|were|is|are) (?:not|never) (?:seen|found|detected|observed"
    rf"|logged))[ .|)]{{0,4}}$"
)
_WHY = (  # questions of people who have the fault
    r"(?:is|are) (?:it|this) (?:normal|expected|usual|ok(?:ay)?) that\b"
    r"|how (?:do|can|could) (?:i|we) (?:get|bring|fix|recover|restore|repair)\b[^?]{0,60}\b(?:which|that)\b|"
    r"(?<!\w)(?:why|any (?:idea|hint|clue|suggestion)s?|what(?:'s| is) wrong|warum|wieso|weshalb|eine idee"
    r"|ideen|почему)(?!\w)|为什么|为何|なぜ"
)
# Between the columns of tools and of CSV, and NCCL's prefix
_COLUMNS = r"\t|[ ]{3}|[ ]: |^\S{1,40}:[0-9]+:[0-9]+ \[|(?:[^,]{1,40},[ ]?){10}"
# The titles of issues
_TITLE = r"^[#\s>*]{0,6}(?:\[(?:bug|issue|problem|question|help)[^\]\n]{0,20}\]|(?:bug|issue|problem|question):)"
_WISH = r"^[#\s>*]{0,6}\[?(?:feature(?: request)?|enhancement|proposal|rfc|docs?)(?:\]|:)"
_DEFINES = (
    r"(?<!which )\bmeans (?:that )?(?:an?|the) |\b(?:returns|prints|logs|reports) \S{3,60} (?:if|when) (?:an?|the) "
)
_TABLE = r"\t|[ ]{3}|(?-i:[a-z_]{5,30}=[^\s=,]{1,40}[ ;]{1,3}[a-z_]{4,30}=)"
# What the kernel writes behind "AER: " (drivers/pci/pcie/aer.c)
_OF_AER = (
    r"(?:multiple |(?:un)?corrected|(?:un)?correctable (?:error|\()|(?:non-?)?fatal|can't|buffer|device|\[|0x|error of)"
)
_LOGGED = (
    r"\[(?:ERROR|WARN(?:ING)?|INFO|DEBUG|FATAL|CRITICAL)\]|"
    r"^NVIDIA-SMI has failed|^[>\s]{0,8}\$ |\bReturn: |"
    rf"\bAER: {_OF_AER}|"
    r"\w\([^()\s]{1,60}\) failed: |^(?:srun|mpirun|torchrun|\./)\S{0,20} "
    r"|\bNVML: Unable to |^[a-z][\w-]{1,20} [0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]: |"
    r"\bkernel: ?\[ {0,8}\d|^(?:<\d{1,3}>)?\[ {0,8}\d{1,7}\.\d{3,6}\]|^\S{3} [ \d]\d \S{8} \S{1,60} \S{1,40}: "
    r"|^\S{1,40}:\d{1,8}:\d{1,8} \["
)
_MEMBER = r"\"[ ]?:[ ]?[\"\[{0-9tfn]"
_WORDS = r"(?<![\w.])[A-Za-z\u00c0-\u024f\u0400-\u04ff][a-z'\u00c0-\u024f\u0400-\u04ff]{0,14}(?![\w])"
_WITHOUT_BLANKS = r"(?:[\u3040-\u30ff\u4e00-\u9fff]{2}.{0,40}?){2}"  # Chinese and Japanese
_LITTLE = (
    r"(?<!\w)(?:for|to|in|from|by|all|not|no|does|shows?|prints?|says?|every|so|the|an?|is|are|was|were|has|have|had"
    r"|on|of|with|but|and|our|we|I|my|this|that|only|since|after|it|at|der|die|das|ist|auf|und|le|la|est|des|el"
    r"|et|les|du|ces|dans|pour|sur|que|une|una|para|los|mit|nur|nach|ein|eine|einer|wird|не|на|в|и|с|по|из|только|после)(?!\w)"
)
_ADDRESS = r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]"
_DEVICES: Mapping[str, str] = {
    "gpu": r"(?<![\w-])gpu(?:[ _-]?#?|\[)([0-9]{1,2})\b(?![.:]\d)",
    "rdma": r"(?<![\w-])((?:mlx[45]|bnxt_re|irdma|rocep|efa|hfi1|ionic|rdmap)_?[0-9]\w{0,12})\b",
    "net": r"(?<![\w-])((?:eth|ens|eno|enp|ib|bond)[0-9]\w{0,12})\b",
    "disk": r"(?<![\w-])((?:sd[a-z]|nvme[0-9]{1,3}n[0-9]{1,3}))\b",
    "nvme": r"(?<![\w-])(nvme[0-9]{1,3})(?:n[0-9]{1,3})?\b",
    "pci": rf"(?<![\w:])({_ADDRESS})(?!\w)",
}


def is_negated(line: str, start: int, end: int, pattern: str = "") -> bool:
    """Whether a line says that the fault that it names from `start` to `end` did not happen, or is over.

    A word that the pattern itself asks for is a part of the fault: "met: FALSE".
    """
    before, behind = line[max(0, start - _NEAR) : start], line[end : end + _NEAR]
    if ignoring_case(_BEFORE).search(before) and (start <= _NEAR or not before.lstrip().startswith("0 ")):
        return True
    if behind.strip():
        return bool(ignoring_case(_BEHIND).match(behind))
    word = ignoring_case(_WITHIN).search(line[max(start, end - _NEAR) : end])
    return word is not None and ignoring_case(rf"(?<!\w){word[1]}(?!\w)").search(pattern) is None


def is_record(line: str) -> bool:
    """Whether a line has members of JSON."""
    return bool(ignoring_case(_MEMBER).search(line))


def is_logged(line: str) -> bool:
    """Whether a line has the prefix of a kernel log, of syslog or of NCCL."""
    return bool(ignoring_case(_LOGGED).search(line))


def is_definition(line: str) -> bool:
    """Whether a sentence says when a program writes a message: "Xid 79 means the ...", "returns ... if the ..."."""
    return bool(ignoring_case(_DEFINES).search(line)) and is_prose(line)


@lru_cache(maxsize=64)  # a line can have many matches
def is_prose(line: str) -> bool:
    """Whether a line is a sentence of a person, not a row of a tool."""
    words, little = (ignoring_case(text).findall(line) for text in (_WORDS, _LITTLE))
    titled = bool(little) and bool(ignoring_case(_TITLE).search(line))
    enough = (len(words) > 3 and (len(little) > 1 or titled)) or bool(ignoring_case(_WITHOUT_BLANKS).search(line))
    return enough and not any(ignoring_case(one).search(line.strip()) for one in (_COLUMNS, _WISH))


def is_sentence(text: str) -> bool:
    """Whether a text has the words of a sentence: "md0 is degraded", but no row of a tool and no name with a value."""
    words, little = (ignoring_case(one).findall(text) for one in (_WORDS, _LITTLE))
    enough = len(words) > 2 or (len(words) > 1 and bool(little)) or bool(ignoring_case(_WITHOUT_BLANKS).search(text))
    return enough and not ignoring_case(_TABLE).search(text.strip())


def sentences(line: str) -> Iterator[tuple[int, str]]:
    """The sentences of a line, with their places."""
    first = 0
    for end in [*(one.end() for one in ignoring_case(_ENDS).finditer(line)), len(line)]:
        if line[first:end].strip():
            yield first, line[first:end]
        first = end


def clause(said: str, start: int, end: int) -> str:
    """The clause of a sentence around a part of it."""
    before = [one.end() for one in ignoring_case(_CLAUSE).finditer(said, 0, start)]
    after = ignoring_case(_CLAUSE).search(said, end)
    return said[before[-1] if before else 0 : after.start() if after else len(said)]


def is_stated(said: str, first: tuple[int, int], last: tuple[int, int]) -> bool:
    """Whether a sentence states the fault that it names in two places: not as a condition, as denied, in general, or as
    over.
    """
    start, end = first[0], max(first[1], last[1])
    before = said[:start]
    own = max((one.end() for one in ignoring_case(_CLAUSE).finditer(before)), default=0)
    return not (
        _is_question(said)
        or ignoring_case(_DENIED).match(said)
        or ignoring_case(_DENIED).match(said, own)
        or ignoring_case(_NOT).search(before, max(own, start - _NEAR))
        or ignoring_case(_SUPPOSED).search(said, 0, start)
        or ignoring_case(_GENERAL).search(ignoring_case(_USUAL).sub("", said))
        or _is_over(said, first, last)
        or ignoring_case(_IS_NOT).match(said, end)
        or ignoring_case(_HAS_NO).match(said, end)
        or ignoring_case(_NOT_AT_END).search(said, end)
        or is_negated(said, start, end, said[start:end])
    )


def _is_over(said: str, first: tuple[int, int], last: tuple[int, int]) -> bool:
    """Whether the words beside those of the fault say that it is over. A fault since a repair is not."""
    after = (one.span() for one in ignoring_case(_AFTER).finditer(said, max(first[1], last[1])))
    own = (first, last, *after)
    over = [*ignoring_case(_OVER).finditer(said), *ignoring_case(_BEFORE_THIS).finditer(said)]
    return any(all(one.end() <= start or one.start() >= end for start, end in own) for one in over)


def is_over(said: str) -> bool:
    """Whether a remark says that the fault beside it is over."""
    return _is_over(said, (0, 0), (0, 0))


def _is_question(said: str) -> bool:
    """Whether the sentence asks whether there is a fault, or begins like a condition: "Should a GPU fall ..."."""
    asked = said.rstrip(" *\"'`)").endswith("?") and ignoring_case(_ASKS).match(said) and not asks_why(said)
    return bool(asked or ignoring_case(r"[\s*>-]{0,8}(?:should|had|were)\b").match(said))


def asks_why(said: str) -> bool:
    """Whether a question is for the reason of a fault, which its writer then has."""
    return bool(ignoring_case(_WHY).search(said))


def device(said: str, kind: str) -> str | None:
    """The only device of a kind that the sentence names, or the one before its colon: the number of a GPU, or a name.
    None: several, or none.
    """
    if kind not in _DEVICES:
        return None
    if label := ignoring_case(rf"[\s*>-]{{0,8}}{_DEVICES[kind]}[ ]{{0,2}}:").match(said):
        return str(label[1])
    found = set(ignoring_case(_DEVICES[kind]).findall(said))
    return found.pop() if len(found) == 1 else None
