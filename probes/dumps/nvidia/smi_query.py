"""`nvidia-smi -q`, whole or of some sections (-d), as text and as XML (-x): headings over values, nested.

GPUs have no number there. They stand in the driver's order, so those of an output with as many as it says are attached
are gpu0, gpu1 ...; of one that was cut, or asked for some (-i), the address is all that is known: it is the key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape

from ....models.facts.gpu import Driver
from ....models.facts.records import Evidence, Record
from ...parsing.nvml_enums import pci_address
from ..core.part import Part
from .smi_fields import WANTED, Card, facts

_HEADINGS = (
    "FB Memory Usage|BAR1 Memory Usage|Clocks (?:Event|Throttle) Reasons|GPU Link Info|Remapped Rows|Retired Pages|"
    "E(?:cc|CC) (?:Mode|Errors)|(?:GPU )?Power Readings|Max Customer Boost Clocks|Applications Clocks"
)
BEGIN = (
    r"^[ \t]*(?:={5,}NVSMI LOG={5,}"
    r"|GPU [0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7][ \t]*$"
    rf"|(?:{_HEADINGS})[ \t]*$"
    r"|Fabric[ \t]*\n[ \t]*State[ ]+:"
    r"|(?:Driver|KMD) Version {5,}: [0-9]|Attached GPUs {5,}: [0-9]|Product Name {5,}: \S"
    r"|<nvidia_smi_log>)"
)
_GPU = re.compile(r"GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])")
_VERSION = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,4}){0,3}")
_TAG = re.compile(r"<(/?)([A-Za-z_]\w{0,60})(?: id=\"([^\"<>\n]{0,40})\")?(?: ?(/)>|>(?:([^<\n]{0,200})</\2>)?)")
_HEAD = {  # of the whole machine
    "Driver Version": "version",
    "KMD Version": "version",
    "driver_version": "version",
    "kmd_version": "version",
    "CUDA Version": "cuda",
    "CUDA UMD Version": "cuda",
    "cuda_version": "cuda",
    "cuda_umd_version": "cuda",
    "Attached GPUs": "gpus",
    "attached_gpus": "gpus",
}
_COUNT = re.compile(r"[0-9]{1,4}")
_DEEPEST = 12  # headings
_NEW = ("Timestamp", "timestamp")  # with which each look begins
_INSTANCE = ("MIG Device", "mig_device")
_USERS = ("Processes", "processes")
_TAILS = frozenset(called.rpartition("/")[2] for called in WANTED)
_MATTER = frozenset({*_TAILS, *_HEAD, *_NEW, *_INSTANCE, *_USERS, "Type"})
_CARD_XML = "gpu"
_PRODUCT = "Product Name"


@dataclass(slots=True)
class _Look:
    """What one run of the tool said: of the driver, and of each GPU."""

    head: dict[str, tuple[str, Evidence]] = field(default_factory=dict)
    cards: list[Card] = field(default_factory=list)
    users: int | None = None  # processes that compute, so far, of the GPU that is read; None: not within their list

    def card(self) -> Card:
        """The GPU that is read; one without a name where the text begins inside of it."""
        if not self.cards:
            self.cards.append(Card())
        return self.cards[-1]

    def closed(self) -> None:
        """All processes of the GPU were listed."""
        if self.users is not None:
            self.card().processes = self.users
        self.users = None


@dataclass(frozen=True, slots=True)
class _Entry:
    """A heading (without a value) or a value, below the names of the headings above it."""

    above: list[str]
    name: str
    value: str | None
    where: tuple[int, str]  # line


def read(part: Part) -> Iterator[Record]:
    """The `Driver`, a `Gpu` for each block, and its counters; of each run of the tool anew."""
    xml = "<nvidia_smi_log" in part.text[:200]
    looks = [_Look()]
    for entry in _tags(part) if xml else _lines(part):
        if entry.name in _NEW:
            looks[-1].closed()
            looks.append(_Look())
        else:
            _take(looks[-1], entry, part)
    if not xml and part.text.endswith("\n\n"):  # else the list may go on behind the end
        looks[-1].closed()
    for look in looks:
        yield from _driver(look)
        _number(look)
        for card in look.cards:
            yield from facts(card, part.at)
    if xml and part.text.rfind("</nvidia_smi_log>") < part.text.rfind("<nvidia_smi_log"):
        yield part.cut(part.text.rstrip().count("\n"), "before </nvidia_smi_log>")
    elif not xml and _breaks_off(looks[-1].cards):
        yield part.cut(part.text.rstrip().count("\n"), "within the last GPU")


def _breaks_off(cards: list[Card]) -> bool:
    """Whether the last GPU lacks what the one before it ends with, though they are of one product."""
    if len(cards) < 2:
        return False
    (*_, before), last = cards[-2].texts or [""], cards[-1].texts
    names = [card.texts.get(_PRODUCT, ("", None))[0] for card in cards[-2:]]
    return bool(last) and before not in last and (_PRODUCT not in last or names[0] == names[1])


def _take(look: _Look, entry: _Entry, part: Part) -> None:
    """One heading or value into the look."""
    name, value, above = entry.name, entry.value, entry.above
    if look.users is not None and not (len(above) > 1 and any(user in above for user in _USERS)):
        look.closed()
    if name in _USERS:
        look.users = 0
    elif look.users is not None:
        look.users += name in ("Type", "type") and "C" in (value or "")
    elif begun := _GPU.fullmatch(name):
        look.cards.append(Card(address=pci_address(begun[1])))
    elif name in _INSTANCE and value is None:
        look.card().instances += 1
    elif name in _HEAD and value is not None and len(above) < 2:
        look.head[_HEAD[name]] = (value, part.cite(*entry.where))
    elif name in _TAILS and value is not None and not any(user in _INSTANCE for user in above):
        path = [*above[-2:], name]
        for called in ("/".join(path[first:]) for first in range(len(path))):
            if called in WANTED:
                look.card().texts.setdefault(called, (value, part.cite(*entry.where)))


def _lines(part: Part) -> Iterator[_Entry]:
    """The entries of a text that matter. What is deeper than a line is below it, also below one with a value."""
    open_now: list[tuple[int, str]] = []
    listing: int | None = None  # the depth of the list of processes, whose end matters too
    for number, line in part.lines():
        text = line.strip()
        if not text or text.startswith("[..."):
            continue
        depth = len(line) - len(line.lstrip())
        while open_now and open_now[-1][0] >= depth:
            open_now.pop()
        name, divided, value = text.partition(" : ")
        name = name.rstrip(" :")
        ended = listing is not None and depth <= listing
        if ended or name in _MATTER or name.startswith("GPU "):
            said = value.strip() if divided else "" if text.endswith(" :") else None
            yield _Entry([above for _, above in open_now], name, said, (number, line))
            listing = depth if name in _USERS else None if ended else listing
        if len(open_now) < _DEEPEST:
            open_now.append((depth, name))


def _tags(part: Part) -> Iterator[_Entry]:
    """The entries of XML that stands in the tool's own lines, one tag or one value each; no other is read."""
    open_now: list[str] = []
    for number, line in part.lines():
        found = _TAG.fullmatch(line.strip())
        if not found:
            continue
        closing, name, gpu, empty, value = found.groups()
        if closing:
            if name in open_now:
                del open_now[open_now.index(name) :]
            yield _Entry(open_now[1:], f"/{name}", "", (number, line))
            continue
        if name == _CARD_XML:
            name = f"GPU {gpu}"
        yield _Entry(open_now[1:], name, "" if empty else value and unescape(value).strip(), (number, line))
        if value is None and not empty and len(open_now) < _DEEPEST:
            open_now.append(found[2])


def _driver(look: _Look) -> Iterator[Record]:
    """Its version is that of the library that was asked, which works with a module of the same version alone."""
    version, cuda = (_first(_VERSION, look.head.get(name)) for name in ("version", "cuda"))
    gpus = _first(_COUNT, look.head.get("gpus"))
    cites = {name: where for name, (_, where) in look.head.items()}
    if version:
        cites["library"] = cites["version"]
    known = {
        name: cites[name]
        for name, value in (("version", version), ("library", version), ("cuda", cuda), ("gpus", gpus))
        if value is not None
    }
    if known:
        yield Driver(
            key="nvidia",
            version=version,
            library=version,
            cuda=cuda,
            gpus=None if gpus is None else int(gpus),
            cites=known,
        )


def _first(form: re.Pattern[str], said: tuple[str, Evidence] | None) -> str | None:
    """What a value begins with: since 610 a sentence may follow."""
    found = form.match(said[0]) if said else None
    return found[0] if found else None


def _number(look: _Look) -> None:
    """The keys of the GPUs."""
    attached = _first(_COUNT, look.head.get("gpus"))
    whole = attached is not None and int(attached) == len(look.cards) and all(card.address for card in look.cards)
    for place, card in enumerate(look.cards):
        card.key = f"gpu{place}" if whole else card.address or "gpu"
