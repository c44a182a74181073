"""Removes the words that a program searches for, or that a text explains: `grep "GPU has fallen off the bus"` says
nothing of a machine.

Scripts, rules of node-problem-detector and tests quote the messages of drivers. The number of lines does not change.
"""

from __future__ import annotations

import re

_SHELL = r"\b(?:[efz]?grep|rg|ack|g?awk|sed)\b(?:[ \t]{1,4}-{1,2}[\w=-]{1,30}){0,6}[ \t]{1,4}"
_CALL = (
    r"\b(?:re\.\w{3,12}|regexp?\.\w{3,20}|RegExp|contains|includes|indexOf|startswith|endswith|find|search|match|test)"
    r"\(r?"
)
_KEY = r"[\"']?\b(?:pattern|regexp?|needle|match|match_phrase|searchString)[\"']?[ \t]{0,4}[:=][ \t]{0,4}r?"
_EQUAL = r"(?<=[ \t])(?:==|=~)[ \t]{1,4}"
_WORDS = r"(?P<mark>[\"'`/])(?P<words>(?:\\.|(?!(?P=mark))[^\\\n]){10,400})"
_SEARCHED = re.compile(rf"(?P<head>{_SHELL}|{_CALL}|{_KEY}|{_EQUAL}){_WORDS}")
_CONTAINED = re.compile(  # not prose: "and `X` in the output"
    rf"(?P<head>\b(?:if|elif|and|or|not)[ \t]{{1,4}}){_WORDS}"
    r"(?=(?P=mark)[ \t]{1,4}(?:not )?in[ \t]{1,4}(?!(?:the|our|this|an?|its|all|every) ))"
)
# "What does "..." mean?", "`...` means that ..."
_EXPLAINED = re.compile(rf"(?P<head>){_WORDS}(?=(?P=mark)[ \t]{{1,4}}(?:means?|stands? for|indicates?)\b)")
_SIGNS = (
    *("mean", "stand", "indicate", "grep", "rg ", "ack ", "awk", "sed ", "(", "attern", "reg", "needle", "match"),
    *("search", "==", "=~", " in "),
)


def without_searched_words(text: str) -> str:
    """The text in which each string that a program searches for is empty. One word alone stays: it can be a name."""
    if not any(mark in text for mark in "\"'`/") or not any(sign in text for sign in _SIGNS):
        return text
    for searched in (_SEARCHED, _CONTAINED, _EXPLAINED):
        text = searched.sub(lambda found: found["head"] + found["mark"] if " " in found["words"] else found[0], text)
    return text
