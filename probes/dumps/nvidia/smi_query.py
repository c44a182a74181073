"""`nvidia-smi -q`, complete or with sections (-d), as text and as XML (-x): nested headings with values.

The output has no GPU numbers. GPUs are in the driver's order. If the output has as many GPUs as are attached, their
keys are gpu0, gpu1 ... If it is truncated or limited to some GPUs (-i), the key is the PCI address.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from html import unescape

from msgspec import Struct, field

from ....models.facts.gpu import Driver
from ....models.facts.records import Evidence, Record
from ...parsing.nvml_enums import pci_address
from ..core.part import Part
from .smi_fields import LOST, WANTED, Card, facts
from .smi_orphans import ANY_LINE, TAG, path_of
from .smi_values import refused_lines

__all__ = ["ANY_LINE", "BEGIN", "read"]

_HEADINGS = (
    "FB Memory Usage|BAR1 Memory Usage|Clocks (?:Event|Throttle) Reasons|GPU Link Info|Remapped Rows|Retired Pages|"
    "E(?:cc|CC) (?:Mode|Errors)|(?:GPU )?Power Readings|Max Customer Boost Clocks|Applications Clocks"
)
BEGIN = (
    r"^[ \t]*(?:={5,}NVSMI LOG={5,}"
    r"|GPU [0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7][ \t]*$"
    rf"|(?:{_HEADINGS})[ \t]*$"
    r"|Fabric[ \t]*\n[ \t]*State[ ]+:"
    r"|Utilization[ \t]*\n[ \t]*G(?:PU|pu)[ ]+:|Clocks[ \t]*\n[ \t]*Graphics[ ]+:"
    r"|Temperature[ \t]*\n[ \t]*GPU Current Temp[ ]+:"
    r"|Health[ \t]*\n[ \t]*(?:Summary|Bandwidth|Route Recovery in progress)[ ]+:"
    r"|State[ ]+: (?:Completed|In Progress|Not Started)[ \t]*\n[ \t]*(?:Status|CliqueId)[ ]+:"
    r"|(?:Driver|KMD) Version {5,}: [0-9]|Attached GPUs {5,}: [0-9]|Product Name {5,}: \S"
    r"|<nvidia_smi_log>)"
)
_GPU = re.compile(r"GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])")
_VERSION = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,4}){0,3}")
_TAG = re.compile(r"<(/?)([A-Za-z_]\w{0,60})(?: id=\"([^\"<>\n]{0,40})\")?(?: ?(/)>|>(?:([^<\n]{0,200})</\2>)?)")
_HEAD = {  # fields of the machine
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
_COLON = re.compile(r"(?P<name>[A-Z][\w ]{2,40}?):[ \t]+(?P<value>\S.{0,80})$")
_COUNT = re.compile(r"[0-9]{1,4}")
_DEEPEST = 12  # nested headings
_NEW = ("Timestamp", "timestamp")  # the first entry of each run
_INSTANCE = ("MIG Device", "mig_device")
_INSTANCES = (*_INSTANCE, "MIG Devices", "mig_devices")
_INDEX = ("Index", "index")  # of a MIG instance
_USERS = ("Processes", "processes")
_USER = ("Process ID", "process_info")
_PATHS = Counter(called.rpartition("/")[2] for called in WANTED)
_ONLY = {
    called.rpartition("/")[2]: called for called in WANTED if _PATHS[called.rpartition("/")[2]] == 1 and "_" in called
}
_TAILS = frozenset(called.rpartition("/")[2] for called in WANTED)
_MATTER = frozenset({*_TAILS, *_HEAD, *_NEW, *_INSTANCE, *_INDEX, *_USERS, *_USER, "Type"})
_CARD_XML = "gpu"
_POWER = ("Power Readings", "power_readings")
_PRODUCT = "Product Name"


class _Run(Struct):
    """One run of the tool: the driver's fields, and the GPUs."""

    head: dict[str, tuple[str, Evidence]] = field(default_factory=dict)
    cards: list[Card] = field(default_factory=list)
    users: list[str] | None = None  # the types of the processes of the current GPU; None outside the process list
    listed: int = 0  # processes in this list

    def card(self) -> Card:
        """The current GPU. A new one without a name if the text begins within a GPU."""
        if not self.cards:
            self.cards.append(Card())
        return self.cards[-1]

    def further_card(self) -> Card:
        """A new GPU without a name: the text repeats a value, as the output of `grep` for one section does."""
        self.cards.append(Card())
        return self.cards[-1]

    def closed(self) -> None:
        """Store the number of processes at the end of the list."""
        if self.users is not None and self.listed == len(self.users):
            self.card().processes = sum("C" in kind for kind in self.users)
        self.users, self.listed = None, 0


class _Entry(Struct, frozen=True):
    """A heading (without a value) or a value, with the names of the headings above it."""

    above: list[str]
    name: str
    value: str | None
    where: tuple[int, str]  # line number and line


def read(part: Part) -> Iterator[Record]:
    """The `Driver`, a `Gpu` per block, and its counters, for each run of the tool."""
    xml = "<nvidia_smi_log" in part.text[:200] or bool(TAG.match(part.text))
    runs = [_Run()]
    for entry in _tags(part) if xml else _lines(part):
        if entry.name in _NEW:
            runs[-1].closed()
            runs.append(_Run())
        else:
            _take(runs[-1], entry, part)
    if not xml and part.text.endswith("\n\n"):  # otherwise the list can continue after the end
        runs[-1].closed()
    for run in runs:
        yield from _driver(run)
        _number(run)
        for card in run.cards:
            yield from facts(card, part.at)
    yield from refused_lines(part)
    if (
        xml
        and "<nvidia_smi_log" in part.text
        and part.text.rfind("</nvidia_smi_log>") < part.text.rfind("<nvidia_smi_log")
    ):
        yield part.cut(part.text.rstrip().count("\n"), "before </nvidia_smi_log>")
    elif not xml and _breaks_off(runs[-1].cards):
        yield part.cut(part.text.rstrip().count("\n"), "within the last GPU")


def _breaks_off(cards: list[Card]) -> bool:
    """Whether the last GPU lacks the last field of the one before it, although both are the same product."""
    if len(cards) < 2:
        return False
    (*_, before), last = cards[-2].texts or [""], cards[-1].texts
    names = [card.texts.get(_PRODUCT, ("", None))[0] for card in cards[-2:]]
    return bool(last) and before not in last and (_PRODUCT not in last or names[0] == names[1])


def _take(run: _Run, entry: _Entry, part: Part) -> None:
    """Add one heading or value to the run."""
    name, value, above = entry.name, entry.value, entry.above
    if run.users is not None and not any(user in above for user in _USERS):
        run.closed()
    if name in _USERS:
        run.users = []
    elif run.users is not None:
        run.listed += name in _USER
        run.users += [value or ""] if name in ("Type", "type") else []
    elif begun := _GPU.fullmatch(name):
        run.cards.append(Card(address=pci_address(begun[1])))
    elif name in _INSTANCE and value is None:
        run.card().instances += 1
    elif name in _INDEX and value is not None and any(one in _INSTANCE for one in above):
        run.card().indexes.add(value)
    elif name in _HEAD and value is not None and len(above) < 2:
        run.head[_HEAD[name]] = (value, part.cite(*entry.where))
    elif value is not None and LOST.fullmatch(value):  # whatever the field is
        run.card().texts.setdefault(name, (value, part.cite(*entry.where)))
    elif name in _TAILS and value is not None and not any(one in _INSTANCES for one in above):
        path = [*above[-2:], name]
        known = any("/".join(path[first:]) in WANTED for first in range(len(path)))
        other = above and above[-1].endswith(_POWER)  # of the module or of the memory
        if not known and not other and (orphan := path_of(name, value) or _ONLY.get(name)):
            path = orphan.split("/")
        wanted = [called for called in ("/".join(path[first:]) for first in range(len(path))) if called in WANTED]
        card = run.card()
        if known and not card.address and len(above) < 3 and card.texts.keys() & set(wanted):
            card = run.further_card()
        for called in wanted:
            card.texts.setdefault(called, (value, part.cite(*entry.where)))


def _lines(part: Part) -> Iterator[_Entry]:
    """The relevant entries of a text.

    Lines with a deeper indentation are below a line, even if that line has a value.
    """
    open_now: list[tuple[int, str]] = []
    listing: int | None = None  # indentation of the process list, because its end counts too
    flat, heading = not re.search(r"^[ \t]+\S", part.text, re.MULTILINE), False
    for number, line in part.lines():
        text = line.strip()
        if not text or text.startswith("[..."):
            continue
        depth = len(line) - len(line.lstrip())
        if flat:  # the indentation was lost: headings have no value, and a heading after a value is of the next section
            is_gpu = _GPU.fullmatch(text) is not None
            short = _COLON.match(text)
            if ":" in text and " :" not in text and not is_gpu and not (short and short["name"] in _MATTER):
                continue  # a line of another program
            was, heading = heading, ":" not in text
            depth = (len(open_now) + 1 if was else 1) if heading else 0 if is_gpu else _DEEPEST
        while open_now and open_now[-1][0] >= depth:
            open_now.pop()
        name, divided, value = text.partition(" : ")
        if not divided and (short := _COLON.match(text)):  # blanks before the colon were lost
            name, divided, value = short["name"], ":", short["value"]
        name = name.rstrip(" :")
        ended = listing is not None and depth <= listing
        if ended or name in _MATTER or name.startswith("GPU ") or LOST.fullmatch(value.strip()):
            content = value.strip() if divided else "" if text.endswith(" :") else None
            yield _Entry([above for _, above in open_now], name, content, (number, line))
            listing = depth if name in _USERS else None if ended else listing
        if len(open_now) < _DEEPEST:
            open_now.append((depth, name))


def _tags(part: Part) -> Iterator[_Entry]:
    """The entries of XML in the tool's own layout, with one tag or value per line. Other layouts give none."""
    open_now: list[str] = []
    root = int("<nvidia_smi_log" in part.text)
    for number, line in part.lines():
        found = _TAG.fullmatch(line.strip())
        if not found:
            continue
        closing, name, gpu, empty, value = found.groups()
        if closing:
            if name in open_now:
                del open_now[open_now.index(name) :]
            yield _Entry(open_now[root:], f"/{name}", "", (number, line))
            continue
        if name == _CARD_XML:
            name = f"GPU {gpu}"
        yield _Entry(open_now[root:], name, "" if empty else value and unescape(value).strip(), (number, line))
        if value is None and not empty and len(open_now) < _DEEPEST:
            open_now.append(found[2])


def _driver(run: _Run) -> Iterator[Record]:
    """The `Driver`. Its version is that of the library, which works only with a kernel module of the same version."""
    version, cuda = (_first(_VERSION, run.head.get(name)) for name in ("version", "cuda"))
    gpus = _first(_COUNT, run.head.get("gpus"))
    cites = {name: where for name, (_, where) in run.head.items()}
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


def _first(form: re.Pattern[str], entry: tuple[str, Evidence] | None) -> str | None:
    """The beginning of a value. Since driver 610 a sentence can follow."""
    found = form.match(entry[0]) if entry else None
    return found[0] if found else None


def _number(run: _Run) -> None:
    """Set the keys of the GPUs."""
    attached = _first(_COUNT, run.head.get("gpus"))
    whole = attached is not None and int(attached) == len(run.cards) and all(card.address for card in run.cards)
    for place, card in enumerate(run.cards):
        card.key = f"gpu{place}" if whole else card.address or (f"gpu, block {place + 1}" if place else "gpu")
    run.cards = _without_repeats(run.cards)


def _without_repeats(cards: list[Card]) -> list[Card]:
    """The GPUs without those nameless ones that say nothing else than an earlier one: most are copies of one output."""
    kept: list[Card] = []
    for card in cards:
        values = {called: text for called, (text, _) in card.texts.items()}
        if card.address or all(values != {k: t for k, (t, _) in one.texts.items()} for one in kept if not one.address):
            kept.append(card)
    return kept
