"""`nvidia-smi nvlink` (-s, -e, -R, -p) and `nvidia-smi -L`: one line per GPU, followed by the lines of its NVLinks.

A GPU lists all links, including inactive ones. The reader counts active links only if the list is complete: it has the
line of its GPU, all numbers from 0, and as many as the lists of the other GPUs and as their products have links. In an
incomplete list of a known product, the links that the tool itself marks as inactive give the largest number that can be
active. Lines after a gap can be of another GPU, so their subject is "a GPU". A rate that NVLink has not is damage.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from msgspec import Struct, field

from ....models.catalog.gpus import Product, product_of
from ....models.facts.gpu import Gpu, GpuLink
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, NotChecked, Observation, Record
from ....models.facts.units import from_gigabytes
from ...parsing.nvml_enums import is_nvlink_speed, nvlink_generation, nvlink_rate, pci_address
from ..core.part import Part

_MODELS = "GPU models and configuration:"  # collect_env of PyTorch and vLLM, before a list of names
BEGIN = (
    r"^[ \t]*(?:GPU [0-9]{1,3}: (?:[^\n]{1,80}\(UUID: [^()\n]{1,60}\)|\S[^\n]{0,80}\n\s{0,9}Link [0-9]{1,2}[:,] )"
    rf"|{_MODELS})"
)
# A line of a list without the line of its GPU.
ANY_LINE = (
    r"^[ \t]*(?:Link [0-9]{1,2}[:,] (?:<inactive>|[0-9]{1,3}(?:\.[0-9]{1,3})? GB/s|Replay Errors"
    r"|Recovery Errors|CRC Errors|Remote Device [0-9A-Fa-f]{4,8}:|Symbol Errors|Effective |Total link|Link recovery)"
    r"|(?:NVML: )?(?i:Unable to retrieve Nvlink information as all links are inactive))"
)
_UNNAMED = "gpu"
_GPU = re.compile(r"GPU ([0-9]{1,3}): (\S.{0,79}?)(?: ?\(UUID: (?:(GPU-[0-9A-Fa-f-]{1,40})|[^()\n]{1,60})\))?")
_LINK = re.compile(r"Link ([0-9]{1,2})[:,] (\S.*)")
_SPEED = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,3})?) GB/s")
_REMOTE = re.compile(r"(?:Remote Device )?([0-9A-Fa-f]{4,8}(?::[0-9A-Fa-f]{2}){2}\.[0-7])(?:: Link [0-9]{1,2})?")
_COUNT = re.compile(
    r"([A-Za-z][A-Za-z ]{2,40}|FEC Errors - [0-9]{1,2}): ([0-9]{1,18}|[0-9]{1,3}(?:\.[0-9]{1,6})?e-[0-9]{2,3})"
)
_NONE_UP = re.compile(r"(?:NVML: )?Unable to retrieve Nvlink information as all links are inactive", re.IGNORECASE)
_INSTANCE = re.compile(r"MIG \S+\s+Device\s+([0-9]{1,2}): \(UUID: MIG-")
_INACTIVE = "<inactive>"
_MARK = re.compile(r"\[|\(?\.\.|…|<snip", re.IGNORECASE)  # lines are omitted here
_FEW = 3  # a smaller step of the link number is a damaged line of the same GPU
_MOST_LINES = 1000  # of one GPU: 36 links with at most 20 counters each
_WHOLE = (2, 3, 4, 6, 12, 18, 36)  # numbers of links of products; RTX 20 cards have one link
_COUNTERS = {  # of a link, by generation. Since NVLink 5 they have other names (nvml_links.py)
    "Replay Errors": "nvlink_replay",
    "Recovery Errors": "nvlink_recovery",
    "CRC Errors": "nvlink_crc",
    "Total link recovery events": "nvlink_recovery",
    "Link recovery failed events": "nvlink_recovery_failed",
    "Symbol Errors": "nvlink_symbol_errors",
    "Effective Errors": "nvlink_effective_errors",
}
_BER = "Effective BER"
_CORRECTED = re.compile(r"FEC Errors - ([0-9]{1,2})")


class _Listed(Struct):
    """A GPU and the links in its list, by link number."""

    key: str
    name: str
    uuid: str | None
    where: Evidence
    states: dict[int, tuple[float | None, Evidence]] = field(default_factory=dict)  # bytes per second; None: inactive
    remotes: dict[int, tuple[str, Evidence]] = field(default_factory=dict)
    counts: dict[str, dict[int, tuple[float, Evidence]]] = field(default_factory=dict)
    corrected: dict[int, tuple[int, Evidence]] = field(default_factory=dict)
    instances: set[int] = field(default_factory=set)  # numbers of MIG instances
    none_up: Evidence | None = None
    followed: bool = False  # another GPU follows
    elided: bool = False  # the list has an omission mark, or a line that is no state of a link
    damaged: list[Evidence] = field(default_factory=list)  # lines with a state that this link cannot have

    @property
    def version(self) -> int | None:
        """The NVLink generation: that of the product, else from the speed."""
        product = _product(self.name)
        speeds = {speed for speed, _ in self.states.values() if speed}
        return (product.link_version if product else None) or nvlink_generation(0, max(speeds, default=None))

    @property
    def least(self) -> int:
        """The number of links of the product; 0 if unknown."""
        product = _product(self.name)
        return product.links if product and product.link_kind == "nvlink" else 0

    def whole(self, most: int) -> bool:
        """Whether the list has all links. `most`: the length of the longest list in the text."""
        numbers = sorted(self.states)
        counted = numbers == list(range(len(numbers))) and len(numbers) >= max(most, self.least, 1)
        sizes = (self.least, *_WHOLE, *((1,) if "RTX 20" in self.name else ()))
        sized = len(numbers) in sizes and "GPU-" not in self.name  # a damaged heading
        return counted and sized and not self.elided and not self.damaged and self.key != _UNNAMED

    def most_active(self, most: int) -> int | None:
        """The number of active links. In an incomplete list, the number of links that are not listed as inactive."""
        inactive = sum(speed is None for speed, _ in self.states.values())
        if self.whole(most):
            return len(self.states) - inactive
        if self.none_up and not self.states:
            return 0
        bridged = (product := _product(self.name)) is None or product.bridged
        return self.least - inactive if self.least > inactive > 0 and not bridged else None


@lru_cache(64)
def _product(name: str) -> Product | None:
    return None if not name else product_of(Gpu(key="", name=name), {})


def read(part: Part) -> Iterator[Record]:
    """A `Gpu` for each GPU, its `GpuLink`s, and their counters."""
    found = list(_lists(part))
    shown = {one.key for one in found if one.states}  # a GPU can be there twice, with another name
    most = max((max(len(one.states), one.least) for one in found if one.key in shown), default=0)
    for one in found:
        yield _gpu(one, most)
        if one.states and not one.whole(most):
            yield _incomplete(one, most)
        yield from (_unreadable(one, where) for where in one.damaged)
        yield from (*_links(one), *_counters(one, part.at))
    longest, last = max((len(one.states) for one in found), default=0), found[-1] if found else None
    if last and last.key != _UNNAMED and len(last.states) < longest:
        at = part.text.rstrip().count("\n")
        yield part.cut(at, f"after {len(last.states)} of {longest} NVLinks of {last.key}")


def _lists(part: Part) -> Iterator[_Listed]:
    """The list of each GPU. Lines after a gap make a list of a GPU without a name."""
    before: _Listed | None = None
    lines: list[tuple[str, Evidence]] = []
    for number, line in part.lines():
        text, where = line.strip().removeprefix(_MODELS).lstrip(), part.cite(number, line)
        if gpu := _GPU.fullmatch(text):
            yield from _filled(before, lines)
            if before:
                before.followed = True
            before, lines = _Listed(f"gpu{int(gpu[1])}", gpu[2], gpu[3], where), []
        elif text and (before or lines or _LINK.fullmatch(text) or _NONE_UP.match(text)):
            lines.append((text, where))
    yield from _filled(before, lines)


def _filled(gpu: _Listed | None, lines: Sequence[tuple[str, Evidence]]) -> Iterator[_Listed]:
    """The list with its lines, and the lists of the lines that can be of other GPUs."""
    begin = 0
    while begin < len(lines) or gpu:
        gpu = gpu or _Listed(_UNNAMED, "", None, lines[begin][1])
        candidates = lines[begin : begin + _MOST_LINES]
        own = _own([text for text, _ in candidates], gpu.least)
        for text, where in candidates[:own]:
            _line(gpu, text, where)
        begin += own
        gpu.elided |= begin < len(lines)
        yield gpu
        gpu = None


def _own(lines: Sequence[str], least: int) -> int:
    """The number of lines that are of the same GPU as the first one.

    After an omission mark, and after a number that the list has passed, the lines can be of another GPU. If links that
    are active and links that are not are listed, no filter made the list, and several missing numbers are a gap, too.
    """
    found = [(place, link) for place, text in enumerate(lines) if (link := _LINK.fullmatch(text))]
    for place, text in enumerate(lines):
        if _MARK.match(text) and any(place < one for one, _ in found):
            return place + 1
    states = [
        (place, int(link[1]), link[2].rstrip() == _INACTIVE)
        for place, link in found
        if link[2].rstrip() == _INACTIVE or _SPEED.fullmatch(link[2].rstrip())
    ]
    if sorted(number for _, number, _ in states) == list(range(least or len(states))):
        return len(lines)  # the order of the lines is another one
    for (_, last, _), (place, number, _) in pairwise(states):
        if number < last or (number > last + _FEW and len({down for *_, down in states}) > 1):
            return place
    return len(lines)


def _unreadable(one: _Listed, where: Evidence) -> NotChecked:
    why = f"{where.text[:60]!a} is no state of this NVLink: the line is damaged"
    return NotChecked(what="GpuLink.speed", subject=one.key, reason=Reason.UNREADABLE, path=where.source, detail=why)


def _incomplete(one: _Listed, most: int) -> NotChecked:
    wanted = max(one.least, most, 1 + max(one.states))
    why = f"the list has {len(one.states)} links" + (f" of {wanted}" if wanted > len(one.states) else "")
    how, path = "copy the whole output of nvidia-smi nvlink -s", one.where.source
    return NotChecked(what="Gpu.nvlinks", subject=one.key, reason=Reason.INCOMPLETE, path=path, detail=why, how=how)


def _line(gpu: _Listed, text: str, where: Evidence) -> None:
    """Read a line below the line of a GPU."""
    link = _LINK.fullmatch(text)
    if link is None:
        gpu.instances |= {int(number) for number in _INSTANCE.findall(text)}
        if _NONE_UP.match(text):
            gpu.none_up = where
        gpu.elided |= bool(_MARK.match(text))
        return
    number, content = int(link[1]), link[2].rstrip()
    if (speed := _SPEED.fullmatch(content)) or content == _INACTIVE:
        product, value = _product(gpu.name), float(speed[1]) if speed else None
        state = from_gigabytes(value) if value else None
        is_known = value is None or is_nvlink_speed(value, product.link_version if product else None)
        if is_known and gpu.states.get(number, (state, where))[0] == state:
            gpu.states[number] = state, where
        else:
            gpu.damaged.append(where)
    elif (remote := _REMOTE.fullmatch(content)) and (address := pci_address(remote[1])):
        gpu.remotes[number] = (address, where)
    elif count := _COUNT.fullmatch(content):
        _count(gpu, number, count[1], float(count[2]), where)


def _count(gpu: _Listed, link: int, name: str, value: float, where: Evidence) -> None:
    corrected = _CORRECTED.fullmatch(name)
    if corrected and value:
        before, symbols = gpu.corrected.get(link), int(corrected[1])
        gpu.corrected[link] = before if before and before[0] >= symbols else (symbols, where)
    quantity = "nvlink_effective_ber" if name == _BER else _COUNTERS.get(name)
    if quantity and name == _BER and value >= 1:  # of all bits: the exponent is cut
        gpu.damaged.append(where)
    elif quantity:
        gpu.counts.setdefault(quantity, {})[link] = (value, where)


def _gpu(one: _Listed, most: int) -> Gpu:
    """The GPU with its number of active links and their rate."""
    states = one.states.values()
    rates = [nvlink_rate(speed, one.version) for speed, _ in states if speed] if one.version is not None else []
    up = one.most_active(most)
    cites = {name: one.where for name, value in (("name", one.name), ("uuid", one.uuid)) if value}
    if up is not None:
        down = next((where for speed, where in states if speed is None), None)
        cites["nvlinks"] = one.none_up or down or next(iter(states))[1]
    return Gpu(
        key=one.key,
        name=one.name or None,
        uuid=one.uuid,
        nvlinks=up,
        nvlinks_present=len(states) if one.whole(most) else None,
        nvlink_rate=max(rates, default=None),
        mig=True if one.instances else None,
        mig_instances=(one.followed and _counted(one.instances)) or None,
        cites=cites,
    )


def _counted(numbers: set[int]) -> int | None:
    """How many there are. None if one of them is missing."""
    return len(numbers) if numbers == set(range(len(numbers))) else None


def _links(one: _Listed) -> Iterator[Record]:
    version = one.version
    for number in sorted(one.states.keys() | one.remotes.keys()):
        speed, state = one.states.get(number, (None, None))
        remote, end = one.remotes.get(number, (None, None))
        cites = {name: where for name, where in (("active", state), ("remote", end)) if where}
        yield GpuLink(
            key=f"{one.key}/nvlink{number}",
            gpu=one.key,
            kind="nvlink",
            active=None if state is None else bool(speed),
            version=version if speed else None,
            speed=speed,
            remote=remote,
            cites=cites,
        )


def _counters(one: _Listed, at: float) -> Iterator[Record]:
    """Counters as from live sources: one per link if it is not zero, and the sum over all links in the list."""
    for quantity, links in one.counts.items():
        ratio = quantity == "nvlink_effective_ber"
        for number, (value, where) in links.items():
            if value:
                unit = "ratio" if ratio else "count"
                yield _observation(f"{one.key}/nvlink{number}", quantity, unit, value, at, where)
        if not ratio:
            worst, total = max(links.values(), key=lambda link: link[0]), sum(value for value, _ in links.values())
            yield _observation(one.key, quantity, "count", total, at, worst[1])
    for number, (symbols, where) in one.corrected.items():
        if symbols:
            yield _observation(f"{one.key}/nvlink{number}", "nvlink_fec_mended", "symbols", symbols, at, where)


def _observation(about: str, quantity: str, unit: str, value: float, at: float, where: Evidence) -> Observation:
    return Observation(about=about, quantity=quantity, unit=unit, value=value, at=at, evidence=where)
