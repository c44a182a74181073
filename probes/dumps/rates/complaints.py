"""Rates that a sentence calls low without a number to compare: "only 9.84 GB/s", "all-reduce is very slow (3 GB/s)"."""

from __future__ import annotations

import re

from ...parsing.expressions import ignoring_case
from .words import NUMBER, UNIT

_RATE = rf"(?<![\w.])(?:{NUMBER}[ ]?(?:[-–]|to(?= ))[ ]?)?(?P<own>{NUMBER})[ ]?(?P<unit>{UNIT})(?![\w%])"
_TO = (
    r"(?:only|just(?! (?:under|over|above|below|about|short))|merely|barely|as low as|stuck at|capped at"
    r"|no more than|not more than|drop(?:s|ped)? to|f[ae]ll(?:s)? to)"
)
_HOW = r"(?:very|too|so|really|quite|much|way|far|extremely|abnormally|unexpectedly|surprisingly|a bit|rather)"
_BAD = r"(?:slow(?:er)?|low(?:er)?|poor|bad|degraded|terrible|awful)"
_WHAT = (
    r"(?:bandwidth|throughput|performance|speeds?|busbw|bus bw|rates?|reads?|writes?|cop(?:y|ies)|transfers?"
    r"|all[-_ ]?reduce|all[-_ ]?gather|all[-_ ]?to[-_ ]?all|nccl|training|network|links?|p2p|rdma|h2d|d2h)(?![\w])"
)
_NEAR = rf"(?:[^\n.;0-9]|[0-9]{{1,4}}(?![0-9.,]|[ ]?{UNIT})){{0,60}}?"  # without another rate
_FORMS = (
    rf"(?<![\w-]){_TO}[ ](?:[^\n0-9.;]{{0,20}}[ ])?{_RATE}",
    rf"{_RATE}{_NEAR}(?<![\w-]){_HOW}[ ](?:{_BAD}|below|away|from)(?![\w])",
    rf"{_RATE}{_NEAR}(?<![\w-])(?:less|lower|slower|worse) than (?:(?:it|they|this|that|we|i|what|one|you)[ ]){{0,2}}"
    r"(?:should|expect(?:ed)?|advertised|rated|specified|ought|(?:is|are|was|were) (?:supposed|rated))(?![\w])",
    rf"(?<![\w-]){_WHAT}{_NEAR}(?<![\w-]){_BAD}(?![\w-])[^\n0-9.;]{{0,25}}{_RATE}",
    rf"(?<![\w-]){_BAD}[ ]{_WHAT}{_NEAR}{_RATE}",
)
_ABROAD = (  # German, French, Spanish, Russian, Chinese, Japanese
    rf"(?<!\w)(?:nur|lediglich|gerade mal|seulement|solo|solamente|только|всего)[ ](?:[^\n0-9.;]{{0,12}}[ ])?{_RATE}",
    rf"(?:只有|仅有|仅|只能跑|只能达到|只能到)[^\n0-9.;。]{{0,6}}{_RATE}",
    rf"{_RATE}[ ]?(?:くらい|程度|まで)?しか",
)
_NOT = re.compile(r"(?i:\b(?:not|never|no|isn't|wasn't|without)\b(?! more than))")
COMPLAINT = "|".join(re.sub(r"\(\?P<\w+>", "(?:", form) for form in (*_FORMS, *_ABROAD))


def complaint(line: str) -> re.Match[str] | None:
    """The rate that a line calls low, as the groups own and unit."""
    found = next((one for form in (*_FORMS, *_ABROAD) if (one := ignoring_case(form).search(line[:600]))), None)
    if found is None:
        return None
    begin = max(line.rfind(mark, 0, found.start()) for mark in (". ", "; ", "? ")) + 1  # of the sentence
    return None if _NOT.search(line[begin : found.end()]) else found
