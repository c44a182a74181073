"""Whether a line that names a fault says that it is there, and about which device.

Lines of programs and of people can deny a fault: "fallen off the bus: no", "without Xid 79". In sentences of people, a
condition ("if a GPU throttles"), a question, and a fault that is over state none. A question for the reason ("why is my
GPU at x8?") states one.
"""

from __future__ import annotations

from collections.abc import Mapping

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
    r"|[ ]{1,2}(?:did not happen|never (?:happened|occurred))\b"
    r"|[ ,(:=-]{1,3}(?:(?:was|were|is|are|has|have|had|been|now|already|since)[ ]){0,3}"
    r"(?:cleared|resolved|fixed|repaired)\b"
)
_WITHIN = rf"[:=?|][ \t]{{0,8}}({_STATE})[ .|)]{{0,4}}$"  # in what was matched
_ENDS = r"[.?!](?=[\s\"'`*)]|$)|\n|\|"
_SUPPOSED = (  # before the fault
    r"(?<![\w-])(?:if|whether|unless|until|would|could|might|may|can(?!['’]t)|in case|supposed?|imagine|e\.g\.?"
    r"|for example|such as|make sure|ensure|verify|avoid|prevent|how to|to (?:see|test|check)|as soon as|means? that"
    r"|is defined|(?:check|detect)(?:s|ing)? (?:if|that|when|whether|for)"
    r"|when(?:ever)? (?:an?|any|the|your|\w{0,12} ?$)"
    r"|no (?:sign|trace|evidence|indication)s? of|simulat\w{1,5}|(?:no|never|without|zero)(?: [\w-]{1,12}){0,2} ?$"
    r"|support for|handles?|explains?|alerts?|examples?|documents?|tests? for|requires?"
    r"|wenn|falls|sobald)(?![\w-])|\btest_\w|如果|是否"
)
_GENERAL = (  # behind the fault: what is true of all machines, or by design
    r"(?<![\w-])(?:occurs? (?:when|if)|happens? (?:when|if)|fires? (?:when|if)|means?|is defined|by design|as designed"
    r"|is an? (?:\w{1,12} )?(?:mechanism|feature|measure)|(?:is|are) (?:normal|expected|harmless|intended)"
    r"|for example|e\.g)(?![\w-])"
)
_OVER = (
    r"(?<![\w-])(?:used to|no longer|not any ?more|after correcting|it works|fixed|solved|resolved|repaired|replaced"
    r"|swapped|previously|formerly"
    r"|recovered|(?:up|works?|fine|ok|okay|back|healthy|normal) (?:now|again)|(?:is|are) back"
    r"|(?:was|were|is|are) not seen"
    r"|behoben|gelöst|ersetzt)(?![\w-])|解决|修复|已更换"
)
_DENIED = (  # the first words of a sentence: a denial, an instruction, the title of a commit
    r"[\s*>#-]{0,8}(?:(?:no|never|without|not|use|set|run|add|check|ensure|try|see)(?![\w-])"
    r"|(?:feat|fix|docs?|chore|refactor|tests?)(?:\([\w-]{1,20}\))?:)"
)
_ASKS = (  # the first word of a question about a fault. "Only 7 of 8 GPUs show up, any help?" states one
    r"[\s*>-]{0,8}(?:is|are|was|were|does|do|did|can|could|should|would|will|has|have|how|what|which|who|where"
    r"|when (?:is|are|do|does|did|will)|perhaps|maybe|possibly|ist|sind|kann|gibt)(?![\w-])"
)
_WHY = (  # questions of people who have the fault
    r"(?<!\w)(?:why|any (?:idea|hint|clue|suggestion)s?|what(?:'s| is) wrong|warum|wieso|weshalb|eine idee"
    r"|ideen|почему)(?!\w)|为什么|为何|なぜ"
)
_NUMBERS = dict(zip(("one", "two", "three", "four", "five", "six", "seven", "eight"), range(1, 9), strict=True))
_COLUMNS = r"\t|[ ]{3}|[ ]: |^\S{1,40}:[0-9]+:[0-9]+ \["  # between the columns of tools, and NCCL's prefix
_MEMBER = r"\"[ ]?:[ ]?[\"\[{0-9tfn]"
_WORDS = r"(?<![\w.])[A-Za-z][a-z']{0,14}(?![\w])"
_LITTLE = (
    r"(?<!\w)(?:for|to|in|from|by|all|not|no|does|shows?|prints?|says?|every|so|the|an?|is|are|was|were|has|have|had"
    r"|on|of|with|but|and|our|we|I|my|this|that|only|since|after|it|at"
    r"|der|die|das|ist|auf|und|le|la|est|des|el|los)(?!\w)"
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


def is_prose(line: str) -> bool:
    """Whether a line is a sentence of a person, not a row of a tool."""
    words, little = (ignoring_case(text).findall(line) for text in (_WORDS, _LITTLE))
    return not ignoring_case(_COLUMNS).search(line.strip()) and len(words) > 3 and len(little) > 1


def sentence(line: str, start: int, end: int) -> tuple[str, int]:
    """The sentence around a part of a line, and where the part begins in it."""
    before = [one.end() for one in ignoring_case(_ENDS).finditer(line, 0, start)]
    after = ignoring_case(_ENDS).search(line, end)
    first = before[-1] if before else 0
    return line[first : after.end() if after else len(line)], start - first


def is_stated(said: str, start: int, end: int) -> bool:
    """Whether a sentence states the fault that it names from `start` to `end`: not as a condition, and not as over."""
    asked = said.rstrip().endswith("?") and ignoring_case(_ASKS).match(said) and not asks_why(said)
    denied = ignoring_case(_DENIED).match(said)
    return not (
        asked
        or denied
        or ignoring_case(_SUPPOSED).search(said, 0, start)
        or ignoring_case(_GENERAL).search(said, start)
        or ignoring_case(_OVER).search(said[:start])
        or ignoring_case(_OVER).search(said[end:])
    )


def asks_why(said: str) -> bool:
    """Whether a question is for the reason of a fault, which its writer then has."""
    return bool(ignoring_case(_WHY).search(said))


def is_less(values: Mapping[str, str | None]) -> bool:
    """Whether there is less than wanted, if the sentence has both numbers: the groups `have` and `want`."""
    have, want = (number(values.get(name) or "") for name in ("have", "want"))
    return have is None or want is None or have < want


def number(text: str) -> float | None:
    """The number of "7", "2.5" or "seven"."""
    word = _NUMBERS.get(text.lower())
    try:
        return word if word is not None else float(text)
    except ValueError:
        return None


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
