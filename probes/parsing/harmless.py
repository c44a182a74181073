"""Texts reduced to words that are known to be harmless: kinds, rates, states, addresses and numbers remain.

A word is everything between blanks and marks such as ":", "/" and "=". It remains if each of its parts is a known word
(known_words.py), a number, or a name that the kernel gives to a device.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, TypeAlias

from .known_words import known_words

# "log": a line of a person or a program. "state": a file of the kernel, or a record, where long numbers are counts.
# "product": the manufacturer's text about a device, with numbers of models.
Place: TypeAlias = Literal["log", "state", "product"]

_TOKEN = re.compile(r"""[^\s/:,;=|&'"`<>(){}\[\]\\!?*#$%^]+""")
_BETWEEN = re.compile(r"[._+@~-]+")
_NUMBERS = re.compile(r"(?:(?:[0-9]{1,20}|(?:0[xX])?[0-9a-fA-F]{1,16})(?![0-9a-zA-Z])|[\s,.:+-])*")
_ADDRESS = re.compile(r"@[\w-]+\.|(?i:\.(?:com|net|org|io|ai|edu|gov|mil|int|local|internal|lan|corp|cloud|example))$")
_KNOWN = frozenset({"OracleCloud.com", "7783-7084-3265-9085-8269-3286-77"})  # asset tags of clouds
# Numbers of cards and accounts, without the stand-ins of UUIDs.
_IDENTIFIER = re.compile("(?!0{8}-0{4}-4000-8000-)(?=(?:-?[0-9]){12})[0-9]{2,}(?:-[0-9]{2,}){2,}")
_PART = re.compile(
    "|".join(
        (
            r".|[A-Za-z]{2}",  # too short to identify anything
            r"[0-9]{1,10}|18446744073709551615|[0-9]{1,6}[A-Za-z]{1,3}|0[xX][0-9a-fA-F]{1,16}|[0-9a-fA-F]{1,4}|00[0-9a-f]{6,14}|[0f]{8,16}",
            r"pci[0-9a-f]{4,8}|i[3579]|[a-z]{1,2}[0-9][a-z]{0,4}|[0-9]{2}T[0-9]{2}|v[0-9]{1,4}|x[0-9]{1,3}|[vx]d[a-z]{1,2}[0-9]{0,3}|sd[a-z]{1,3}[0-9]{0,3}",
            r"nvme[0-9]{1,4}(?:c[0-9]{1,4})?(?:n[0-9]{1,4})?(?:p[0-9]{1,3})?|md[0-9]{1,3}(?:p[0-9]{1,3})?",
            # systemd.net-naming-scheme(7), and names of RDMA devices after it
            r"(?:en|ib|sl|wl|ww|rocep|rdmap|ibp)[a-z]?[0-9]{1,5}(?:[a-zP]{1,2}[0-9]{1,5}){0,5}",
            r"(?:en|ib|sl|wl|ww)x020000[0-9a-f]{6}|020000(?:fffe)?[0-9a-f]{6}|20010db8[0-9a-f]{8}",  # stand-ins
            r"SERIAL[0-9]{4,}",
            r"v[0-9A-F]{8}d[0-9A-F]{8}sv\w{1,60}",  # MODALIAS of a PCI function
        )
    )
)
# Numbers of models. Serial numbers have the same letters and digits, so longer words remain only in the forms of
# manufacturers: disks of Samsung, Intel and Solidigm, Micron, Kioxia, Hynix and Western Digital, cards of NVIDIA with
# their part numbers and the PSIDs of their firmware (`mlxfwmanager`), servers of Gigabyte and ASUS.
_MODEL = re.compile(
    "|".join(
        (
            r"(?=[^0-9]*(?:[0-9][^0-9]*){1,6}$)[A-Z0-9]{1,8}(?:[._+-][A-Z0-9]{1,8}){0,3}",  # R7525, SYS-821GE-TNHR
            r"(?:MZ|SSD|MTFD|K(?:CD|CM|PM|XG)|HF[SM]|WU[SH])[A-Z0-9]{4,12}(?:-[A-Z0-9]{1,6})?",  # MZQL23T8HCLS-00A07
            r"M(?:CX|BF|QM)[0-9]{1,6}[A-Z]{0,3}(?:-[A-Z0-9]{2,8})?",  # MCX75310AAS-NEAT
            r"[0-9]{3}-[0-9A-Z]{5}-[0-9A-Z]{4}-[0-9A-Z]{3}",  # 900-21010-0000-000
            r"(?:[A-Z]{2}_|[A-Z]{3})0{4,7}[0-9]{2,6}",  # MT_0000000838
            r"[GEMR][0-9]{3,4}[A-Z]?-[A-Z0-9]{2,4}(?:-[A-Z0-9]{2,5}){1,2}|ESC[0-9]{4}[A-Z]?(?:-[A-Z0-9]{2,4}){1,2}",
        )
    )
)
_NAMED = re.compile("([A-Za-z]{2,16})[0-9]{1,5}")


def reduced(text: str, place: Place, stand_in: Callable[[str], str]) -> str:
    """The text with `stand_in(word)` instead of each word that is not known to be harmless."""
    if place == "state" and _NUMBERS.fullmatch(text):
        return text
    return _TOKEN.sub(lambda found: found[0] if is_harmless(found[0], place) else stand_in(found[0]), text)


def is_harmless(word: str, place: Place) -> bool:
    """Whether a word without blanks is known to be harmless."""
    if word in _KNOWN:
        return True
    if place == "product" and _MODEL.fullmatch(word):
        return True
    if _ADDRESS.search(word) or _IDENTIFIER.fullmatch(word):
        return False
    return all(_is_known(part, place) for part in _BETWEEN.split(word))


def is_form(part: str) -> bool:
    """Whether it is a number, a name that the kernel gives to a device, or too short to identify anything."""
    return _PART.fullmatch(part) is not None


def _is_known(part: str, place: Place) -> bool:
    words = known_words()
    if not part or part.lower() in words or is_form(part):
        return True
    if place == "state" and len(part) <= 20 and part.isascii() and part.isdecimal():
        return True
    named = _NAMED.fullmatch(part)
    return bool(named and named[1].lower() in words)
