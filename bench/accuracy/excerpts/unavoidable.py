"""Differences between an excerpt and the whole output that no reader can avoid: missing or damaged names, parts of
sums and lists, values of damaged lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher

from bench.accuracy.excerpts.excerpt import Excerpt, Sample
from bench.accuracy.excerpts.reading import BESIDE, NAME, Atom, Reading

_TEXTS = {"name", "label", "model", "version", "firmware", "text", "error", "failure", "vbios", "product", "bios"}
_LISTS = {
    ("Service", "state"),
    ("Optics", "alarms"),
    ("Optics", "warnings"),
    ("Setting", "value"),
}  # each item is of a line of its own
_DEVICES = ("gpu", "a", "b")  # fields with the key of a device
_POSITIONS = {("Rdma", "place")}  # among the devices that are listed
_ITEMS = re.compile("'[^']+'|[0-9]+")
# The key of a device that the text does not name: its line, or its kind with a number ("nic 2", "hca/1", "gid3").
_PLACE = re.compile(
    rf"{NAME}[0-9]*:[0-9]+(?:\.[0-9]+)?|gid[0-9]{{1,3}}"
    r"|(?:nic|nvme|module|port|hca|gpu)(?:(?:/|/module )?[ ]?[0-9]{1,3})?"
)
_ITEM = re.compile(r"[^,;()'\" ][^,;()'\"]*")
_WORDS = (
    re.compile(r"[\w.:]{3,}"),
    re.compile(r"[\w.]{3,}"),
    re.compile(r"[\w.:]+(?:-[\w.:]+)+"),
)  # also of short parts: cn-03


def is_generic(key: str) -> bool:
    """Whether the key names a kind of device, the line of a device without a name, or a part or a copy of these."""
    words = key.split(" ")
    device = words[1] if len(words) > 2 else key.partition("/")[0]
    return not any(map(str.isdigit, device)) or bool(_PLACE.fullmatch(device))


def without_name(atom: Atom) -> Atom:
    """The atom without the name of its device and port. The number of a link and the kinds of ends of a copy stay."""
    words = atom.key.split(" ")
    if len(words) > 2:
        ends = re.sub("[0-9]+", "", words[1])
        key = " ".join((words[0], ends, *words[2:]))
    else:
        part = atom.key.partition("/")[2].rpartition("/")[2]
        key = part if any(map(str.isalpha, part)) and not part.startswith(("gid", "module")) else ""  # no port
    return atom._replace(key=key, value="" if atom.field in _DEVICES else atom.value)


def misnamed(name: str, sample: Sample, excerpt: Excerpt) -> bool:
    """Whether a damaged line has the name of a device. No reader can know that the name is wrong."""
    texts = f"{sample.text} {excerpt.other}", " ".join(map(str, excerpt.files))
    before, after = (set(_words(text)) for text in texts)
    words = {form for word in _words(name) for form in (word, word.removesuffix(".0"))}
    return any(word in after and word not in before for word in words)


def _words(text: str) -> Iterator[str]:
    yield from (word for pattern in _WORDS for word in pattern.findall(text.lower()))


def lacks(atom: Atom, known: Iterable[Atom]) -> bool:
    """Whether it is the rate of a flow, and the excerpt lacks its size, operation, medium or an end."""
    words = atom.key.split(" ")
    if atom.kind != "Observation" or len(words) < 3:
        return False
    same = [one.key.split(" ") for one in known if one[2:] == atom[2:]]
    if words[0] == "collective":  # larger sizes tell the operation and the number of ranks
        return any(one[2:] == words[2:] for one in same)
    if words[2] == "None":
        return any(one[1] == words[1] and one[3:] == words[3:] for one in same if len(one) > 2)
    ends = words[1].split("-")
    return any(
        any(map(str.__eq__, one[1].split("-"), ends)) and one[2] == words[2] and words[3:] in ([""], one[3:])
        for one in same
        if len(one) > 2
    )


def is_text(atom: Atom, known: Iterable[Atom], excerpt: Excerpt) -> bool:
    """Whether it is a damaged name or message. No reader can know it, and no rule compares it."""
    words = atom.value.strip("'\"").lower().split()[1:]  # the first one can be the maker, in other words
    if atom.field in _TEXTS and words and any(" ".join(words) in line.lower() for line in excerpt.changed):
        return True
    return atom.field in _TEXTS and any(
        one.field == atom.field and (one.value[1:-1] in atom.value or atom.value[1:-1] in one.value or _near(one, atom))
        for one in known
    )


def _near(one: Atom, other: Atom) -> bool:
    return SequenceMatcher(None, one.value, other.value).ratio() > 0.7


def is_part(atom: Atom, base: Reading) -> bool:
    """Whether it is a part of a sum of errors, or of a list, because lines are missing."""
    if (atom.kind, atom.field) in _LISTS:
        every = {item for one in base.lines if one.kind == atom.kind for item in _ITEM.findall(one.value)}
        return every.issuperset(_ITEM.findall(atom.value))
    if atom.value.startswith("(") and atom.value != "()" and atom.field != BESIDE:
        items = set(_ITEMS.findall(atom.value))
        same = (one for one in base.lines if (one.kind, one.field) == (atom.kind, atom.field))
        return any(items < set(_ITEMS.findall(one.value)) for one in same)
    if (atom.kind, atom.field) in _POSITIONS:
        return True
    if atom.field in ("rate", "bus_bandwidth", "latency"):
        return False
    if atom.kind != "Observation" and not atom.field.startswith("ecc_"):
        return False
    whole = without_name(atom)[:3] if is_generic(atom.key) else atom[:3]
    sums = (one for one in base.lines if whole in (one[:3], without_name(one)[:3]))
    return _is_number(atom.value) and any(float(one.value) >= float(atom.value) for one in sums)


def transcribed(atom: Atom, line: str) -> bool:
    """Whether a value or a name is copied from a damaged line, so that no reader can know that it is wrong."""
    value = atom.value.strip("'\"")
    numbers = {float(word) for word in re.findall(r"[0-9]+(?:\.[0-9]+)?", line)}
    return (
        (value.lower() in line.lower() if len(value) > 1 else value in line.split())
        or (len(atom.key) > 2 and atom.key.lower() in line.lower())
        or (value.isdecimal() and f"{int(value):04x}" in re.findall(r"(?<!\w)[0-9a-f]{4}(?!\w)", line.lower()))
        or (_is_number(value) and any(_scaled(float(value), number) for number in numbers))
    )


def _is_number(value: str) -> bool:
    return bool(re.fullmatch(r"[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?", value))


def _scaled(value: float, number: float) -> bool:
    """Whether the value is the number in another unit: bits, powers of 1000 and of 1024."""
    units = (a * b for a in (1, 8, 1 / 8) for b in (1, 1e3, 1e6, 1e9, 2**10, 2**20, 2**30, 2**40))
    return value == number or any(abs(value - number * unit) <= 1e-6 * abs(value) for unit in units)
