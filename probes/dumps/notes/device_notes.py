"""What people write about devices, line by line: "GPU 3: PCIe Gen4 x8 (max x16)", "mlx5_2 Down Polling".

No tool writes these lines, so they are read only where no other reader begins. words.py has the vocabulary.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from ....models.facts.gpu import Gpu, GpuLink
from ....models.facts.machine import Pci
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, NotChecked, Record
from ...kernel_log.patterns import event_of
from ...parsing.expressions import ignoring_case
from ..core.fields import FactCollector
from ..core.part import Part
from ..lines.markup import cells_of
from . import links_down
from .device_fields import FIELDS, GPU_CLASS, add_fact, add_nic_link, keys_of
from .instead import ANY_LINE as INSTEAD
from .instead import NAMELESS, instead, names_gpu
from .statement import Statement, statement
from .words import DEVICES, MARK, Word, clauses, spelled, words

_DEVICE = "|".join(DEVICES.values())
_VALUE = (
    r"x[ ]?[0-9]|[0-9]x|gen|pcie|gt/s|width|lane|b/s|bps|rate|speed|link|active|down|ecc|dbe"
    r"|remap|slowdown|brake|carrier|mhz|power limit|missing|lost|gone|off the bus|not (?:found|detected|visible)"
)
BEGIN = r"^Notes on devices:[ \t]*$"
# A device and a value
ANY_LINE = (
    rf"^(?i:(?=[^\n]{{0,200}}(?:{_VALUE}))[^\n]{{0,40}}?(?<![\w.:/-])(?:{_DEVICE})"
    r"|[ \t]{0,8}(?:cur|max)[a-z]{0,4}_(?:link_)?(?:width|speed)[ :=][^\n]{1,120}?(?<![\w.:/-])"
    rf"(?:{DEVICES['pci']})|{INSTEAD})"
)
_ANY_DEVICE = re.compile(
    rf"(?<![\w.:/-])(?:{'|'.join(f'(?P<{kind}>{text})' for kind, text in DEVICES.items())})", re.IGNORECASE
)
# "state = Polling[mlx5_2]": the heading of the next device, joined to a value
_JOINED = re.compile(rf"\w\[(?:{DEVICES['nic']}|{DEVICES['net']})\]", re.IGNORECASE)
# A device between two numbers, "GPU 2 is at x8, GPU 3 is at x16", but not "x8 on GPU 2 instead of x16"
_TWO_STATEMENTS = re.compile("nd+n")
_HOW = "write each line as 'gpu3: PCIe Gen4 x8, max x16', or paste the output of a tool"


def read(part: Part) -> Iterator[Record]:
    """Fields of Gpu, Pci, Net, Rdma and Port facts, and a NotChecked if some lines are not understood.

    Nothing if no line is understood: then it is no list of devices (split.py), unless its first line says so.
    """
    found, unclear, marked = FactCollector(), list[int](), list[int]()
    for number, line in part.lines():
        plain = spelled(cells_of(line).strip())
        if not any(map(str.isalnum, plain)) or re.match(BEGIN, plain) or event_of(plain):
            continue  # log_events.py reads the lines of a log
        marked += [number] if ignoring_case(MARK).search(line) else []
        if not _take(found, plain, cite := part.cite(number, line)) and not _take_instead(
            found, plain, part.where(number), cite
        ):
            unclear.append(number)
    yield from found.records()
    if marked and found.facts:
        why = f"line {part.place(marked[0])} is marked as a fault, and the mark does not say of what"
        yield NotChecked(
            what="dump", subject=part.file, reason=Reason.INCOMPLETE, path=part.where(marked[0]), detail=why, how=_HOW
        )
    if unclear and (found.facts or re.match(BEGIN, part.text)):
        more = f" and {len(unclear) - 1} more" if len(unclear) > 1 else ""
        yield NotChecked(
            what="dump",
            subject=part.file,
            reason=Reason.INCOMPLETE,
            path=part.where(unclear[0]),
            detail=f"line {part.place(unclear[0])}{more} of a list of devices: not understood",
            how=_HOW,
        )


def _take(found: FactCollector, line: str, cite: Evidence) -> bool:
    """Add the facts of one line. False: it is not understood."""
    own, others = clauses(line)
    every = () if _JOINED.search(own) else words(own)
    named = [word for word in every if word.kind in DEVICES]
    said = statement([word for word in every if word.kind not in DEVICES], words(others))
    kinds = {word.kind for word in named}
    if _has_lost(every):
        return False
    if said is None or len(kinds - {"pci"}) > 1 or _TWO_STATEMENTS.search("".join(map(_letter, every))):
        return False
    if kinds == {"gpu"} and _take_links(found, every, cite):
        return True
    kind = next((one for one in FIELDS if one in kinds), None)
    values = FIELDS[kind](said) if kind else {}
    if kind == "nic" and _take_function(found, named, said, cite):
        return True
    if kind == "pci" and any(word.text == "gpu" for word in every):
        values["pci_class"] = GPU_CLASS
    values |= _ids(every) if kind == "pci" else {}
    if kind is None or not any(value is not None for value in values.values()):
        return False
    for key in [key for word in named if word.kind == kind for key in keys_of(word)]:
        add_fact(found, kind, key, cite, values)
    return True


def _take_function(found: FactCollector, named: Sequence[Word], said: Statement, cite: Evidence) -> bool:
    """Add the PCIe link of a NIC and its port. False: the line says nothing of the link."""
    addresses = [key for word in named if word.kind == "pci" for key in keys_of(word)]
    names = [key for word in named if word.kind == "nic" for key in keys_of(word)]
    if len(names) != 1 or len(addresses) > 1:
        return False
    return add_nic_link(found, names[0], next(iter(addresses), None), said, cite)


def _take_instead(found: FactCollector, line: str, where: str, cite: Evidence) -> bool:
    """Add the link of a sentence in any words about one device or none: "my card runs at x8 instead of x16"."""
    said, named = instead(line), list(_ANY_DEVICE.finditer(line))
    if said is None or len(named) > 1:
        return False
    kind = named[0].lastgroup if named else None
    if kind == "gpu" or (kind is None and names_gpu(line)):
        keys = keys_of(Word("gpu", named[0][0].lower(), "")) if named else iter((NAMELESS,))
        for key in keys:
            found.add(Gpu, key, cite, **said.of_gpu())
    elif kind in (None, "pci"):
        key = next(keys_of(Word("pci", named[0][0].lower(), ""))) if named else where
        found.add(Pci, key, cite, **said.of_function())
    return kind in (None, "gpu", "pci")


def _ids(every: Sequence[Word]) -> dict[str, Any]:
    """Vendor and device in "0000:41:00.0 (10de:2684)"."""
    found = [word.text.split(":") for word in every if word.kind == "ids"]
    return {"vendor": int(found[0][0], 16), "device": int(found[0][1], 16)} if len(found) == 1 else {}


def _take_links(found: FactCollector, every: Sequence[Word], cite: Evidence) -> bool:
    """Add the NVLinks of GPUs that the line calls down. False: it is about something else."""
    numbers, counts = links_down.named(every), links_down.counted(every)
    for key in [key for word in every if word.kind == "gpu" and (numbers or counts) for key in keys_of(word)]:
        up, present = counts or (None, None)
        found.add(Gpu, key, cite, nvlinks=up, nvlinks_present=present)
        for number in numbers if not counts else ():
            found.add(GpuLink, f"{key}/nvlink{number}", cite, gpu=key, kind="nvlink", active=False)
    return bool(numbers or counts)


def _has_lost(every: Sequence[Word]) -> bool:
    """Whether the line says that something lost a GPU: "gpu-12 has lost a GPU". Its name is that of a machine."""
    gone = next((place for place, word in enumerate(every) if word.kind == "gone"), len(every))
    return any(word.text in ("gpu", "gpus") for word in every[gone:])


def _letter(word: Word) -> str:
    """Of a device d, of a number n, of a word that changes what a number means m."""
    if word.kind in DEVICES:
        return "d"
    return {"lanes": "n", "speed": "n", "rate": "n", "most": "m", "wanted": "m"}.get(word.kind, "")
