"""Sentences about one link without the name of its device: "My RTX 4090 runs at x8 instead of x16".

They count in any words around the two values, because the words between these say which one is expected. Sentences
about what was or could be do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from msgspec.structs import replace

from ....models.facts.gpu import Gpu
from ....models.facts.machine import Pci
from ....models.facts.pcie_rates import speed_of
from ....models.facts.records import Record
from ...parsing.sentences import asks_why

NAMELESS = "gpu"  # key of the GPU of a sentence that does not name it

_LANES = r"x ?(?P<lanes{0}>16|8|4|2|1)(?!\w|[.]\w)"
_GEN = r"gen(?:eration)? ?[.-]?(?P<gen{0}>[1-6])(?!\w|[.]\w)"
_SPEED = r"(?P<speed{0}>2\.5|5(?:\.0)?|8(?:\.0)?|16(?:\.0)?|32(?:\.0)?|64(?:\.0)?) ?gt/s"
_FILL = r"[^\n0-9.;?!]{0,30}?(?<!\w)"  # words and brackets before a value
_ASIDE = r"(?:[ ]?\([^()\n]{1,24}\))?"  # "Gen 1 (2.5 GT/s)"
_INSTEAD = (
    r"(?:instead of|rather than|(?:but|and|it)?[ ]?should (?:be|run)|(?:is |are )?supposed to be|and not"
    r"|statt|anstatt|anstelle von|au lieu de|en (?:lugar|vez) de|invece (?:di|che)|вместо"
    r"|而不是|而非|应该是|应为|本来是|正常是|正常应)"
)
_GPU = re.compile(
    r"(?<![a-z])(?:gpus?|graphics card|[gr]tx|geforce|tesla|quadro|titan|grafikkarte|видеокарт|显卡"
    r"|[abhlv][0-9]{2,3}s?)(?![a-z])|(?<![\w.])[2-5]0[5-9]0(?![\w.])",
    re.IGNORECASE,
)
_OTHER_TIMES = re.compile(
    r"(?<![\w-])(?:was|were|had|fixed|solved|resolved|no longer|not any|used to|if|when|whether|would|could|might|may"
    r"|can|before|until|unless|limits?|limited to|normal|as (?:expected|intended)|by design|war|waren|behoben|gelöst"
    r"|wenn|falls|était|если|было)(?![\w-])|解决|修复|如果",
    re.IGNORECASE,
)
_FIRST = (
    r"(?:should (?:be|run)|supposed to be|expected|meant to be|sollte|müsste|应该是|应为|本来是)"  # what is expected
)
_BUT = r"[^\n0-9.;?!]{0,24}?(?:ではなく|なのに|(?<!\w)(?:but|yet|only|just|actually|aber|nur)(?!\w)|只有|但|却)"
_THOUGH = (  # "Gen1 although the card supports Gen4", "x8, the others are at x16"
    r"(?:(?:although|even though|though|whereas|while|but)[^\n0-9.;?!]{0,40}?(?<![a-z])"
    r"(?:supports?|capable of|rated for)|(?:whereas|while|but|and|,)[^\n0-9.;?!]{0,24}?(?<![a-z])others?"
    r"(?: [a-z]{1,6})?(?: are| have| run| show)(?: at)?)(?![a-z])"
)
_VALUES = (_LANES, _GEN, _SPEED)
_FORMS = (
    *(rf"{value.format('')}{_ASIDE}[, ，。]{{0,2}}{_INSTEAD}{_FILL}{value.format(2)}" for value in _VALUES),
    *(
        rf"{value.format('')}{_ASIDE}[ ,]{{0,2}}[^\n0-9.;?!]{{0,24}}?{_THOUGH}{_FILL}{value.format(2)}"
        for value in _VALUES
    ),
    *(rf"{_FIRST}{_FILL}{value.format(2)}{_ASIDE}{_BUT}{_FILL}{value.format('')}" for value in _VALUES),
    *(rf"{value.format(2)}{_ASIDE}[ ]?(?:ではなく|なのに)[^\n0-9.;?!]{{0,24}}?{value.format('')}" for value in _VALUES),
)
ANY_LINE = rf"[^\n]{{0,300}}?(?<!\w)(?:{'|'.join(re.sub(r'[(][?]P<[a-z0-9]+>', '(?:', form) for form in _FORMS)})"
_LONGEST = 600


@cache
def _forms() -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(rf"(?<!\w){form}", re.IGNORECASE) for form in _FORMS)


class Instead(NamedTuple):
    """What a link has, and what it should have: lanes, or transfers per second."""

    now: float
    wanted: float
    lanes: bool

    def of_gpu(self) -> dict[str, Any]:
        """Fields of a Gpu."""
        if self.lanes:
            return {"pcie_width": int(self.now), "pcie_wanted_width": int(self.wanted)}
        return {"pcie_speed": self.now, "pcie_wanted_speed": self.wanted}

    def of_function(self) -> dict[str, Any]:
        """Fields of a Pci."""
        if self.lanes:
            return {"width": int(self.now), "max_width": int(self.wanted), "downgraded": ("width",)}
        return {"speed": self.now, "max_speed": self.wanted, "downgraded": ("speed",)}


def instead(line: str) -> Instead | None:
    """What a sentence says of a link. None: nothing, or of another time."""
    if len(line) > _LONGEST or _OTHER_TIMES.search(line) or ("?" in line and not asks_why(line)):
        return None
    for form in _forms():
        if found := form.search(line):
            kind = next(name for name in ("lanes", "gen", "speed") if name in found.groupdict())
            now, wanted = _value(kind, found[kind]), _value(kind, found[f"{kind}2"])
            if now < wanted:
                return Instead(now, wanted, kind == "lanes")
    return None


def names_gpu(line: str) -> bool:
    """Whether the sentence is about a GPU."""
    return bool(_GPU.search(line))


def _value(kind: str, text: str) -> float:
    return speed_of(int(text)) if kind == "gen" else float(text) * (1e9 if kind == "speed" else 1)


def with_named(records: Sequence[Record]) -> Sequence[Record]:
    """The records without the nameless GPU of a sentence, if the text shows links of devices with names.

    The sentence is then about those GPUs that have what it says.
    """
    spoken = next((one for one in records if isinstance(one, Gpu) and one.key == NAMELESS and _wanted(one)), None)
    shown = [one for one in records if one is not spoken and _link(one) != (None, None)]
    if spoken is None or not shown:
        return records
    meant = [one for one in shown if isinstance(one, Gpu) and any(_agree(_link(one), _link(spoken)))]
    return [_with_wanted(one, spoken) if one in meant else one for one in records if one is not spoken]


def _wanted(gpu: Gpu) -> dict[str, Any]:
    names = ("pcie_wanted_width", "pcie_wanted_speed")
    return {name: value for name in names if (value := getattr(gpu, name)) is not None}


def _link(one: Record) -> tuple[float | None, float | None]:
    if isinstance(one, Gpu):
        return one.pcie_width, one.pcie_speed
    return (one.width, one.speed) if isinstance(one, Pci) else (None, None)


def _agree(one: tuple[float | None, float | None], other: tuple[float | None, float | None]) -> Iterator[bool]:
    return (a is not None and a == b for a, b in zip(one, other, strict=True))


def _with_wanted(gpu: Gpu, spoken: Gpu) -> Gpu:
    wanted = {name: value for name, value in _wanted(spoken).items() if getattr(gpu, name) is None}
    return replace(gpu, **wanted, cites={**gpu.cites, **{name: spoken.cites[name] for name in wanted}})
