"""Lists of dcgmi: `discovery`, `nvlink -s` and `stats`. dcgmi/Query.cpp, Nvlink.cpp and ProcessStats.cpp of https://github.com/NVIDIA/DCGM.

Each link of a GPU is one letter. A row is as long as the maximum number of links of any GPU. Ports of NVSwitches have
no fact. An inactive port gives a NotChecked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ....models.facts.gpu import Gpu, GpuLink
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, NotChecked, Record
from ...parsing.nvml_enums import pci_address
from ...parsing.parsers import word
from ..core.fields import FactCollector
from ..core.part import Part
from . import dcgm_words
from .dcgm_diag import cells

_OWNER = re.compile(r"(gpuId|physicalId) ([0-9]{1,4}):")
_STATES = re.compile(r"[UDX_](?: [UDX_]){0,255}")
_LENGTHS = (6, 12, 18, 36)  # DCGM_NVLINK_MAX_LINKS_PER_GPU of the versions; a row of another length is truncated
_INDENT = 4  # blanks before a row, beyond those of the GPU's line
_FIELD = re.compile(r"(Name|PCI Bus ID|Device UUID): ([^\s|][^|]*?)(?: \|.*)?")  # without a row that was joined
_FIELDS = {
    "Name": ("name", word),
    "PCI Bus ID": ("address", pci_address),
    "Device UUID": ("uuid", word),
    "Device Name": ("name", word),
    "UUID": ("uuid", word),
    "VBIOS": ("vbios", word),
}
_LOST = "GPU is lost"
_UNNAMED = "gpu"
_SYSTEM = re.compile(r"(?P<system>[A-Z][\w ]{1,30}?) ?(?:system)?: (?P<verdict>Warning|Failure) - (?P<text>.*)")
_ONE = re.compile(r"GPU ID: ([0-9]{1,3})")
_COUNT = re.compile(r"[0-9]{1,18}")
_PERCENT = re.compile(r"[0-9]{1,3}")
_HEAT = "thermal violation"
_HOT = 10  # percent of the time of a job


def read_states(part: Part, rows: list[tuple[int, str]], found: FactCollector) -> Iterator[Record]:
    """The links of each GPU. A row at the end of the text can be truncated."""
    kind, owner, margin = "", 0, 0
    for place, (number, line) in enumerate(rows):
        text, where = line.strip(), part.cite(number, line)
        if named := _OWNER.fullmatch(text):
            kind, owner, margin = named[1], int(named[2]), len(line) - len(line.lstrip())
            if kind == "gpuId":
                found.add(Gpu, f"gpu{owner}", where)
        elif (kind or len(text.split()) in _LENGTHS) and _STATES.fullmatch(text):
            letters, indent = text.split(), len(line) - len(line.lstrip())
            states = {link: letter for link, letter in enumerate(letters) if letter != "_"}
            if kind == "physicalId":
                yield from _ports(owner, states, where)
            elif kind and len(letters) not in _LENGTHS and (indent - margin) % _INDENT:
                yield from _torn(f"gpu{owner}", where)
            else:
                complete = len(letters) in _LENGTHS
                whole = complete and place + 1 < len(rows)
                _links(f"gpu{owner}" if kind else _UNNAMED, states, (complete, whole), where, found)
            kind = ""


def _ports(switch: int, states: Mapping[int, str], where: Evidence) -> Iterator[NotChecked]:
    """A NotChecked if ports of an NVSwitch are down."""
    if down := [str(port) for port, letter in states.items() if letter == "D"]:
        yield NotChecked(
            what="NVSwitch ports",
            subject=f"nvswitch{switch}",
            reason=Reason.INCOMPLETE,
            path=where.source,
            detail=f"DCGM reports its NVLink port{'s' * (len(down) > 1)} {', '.join(down)} as down",
            how="nvidia-smi nvlink -s, and the log of the fabric manager",
        )


def _torn(gpu: str, where: Evidence) -> Iterator[NotChecked]:
    """A NotChecked for a row whose first letter is lost, so that the others are in the places of other links."""
    yield NotChecked(
        what="NVLinks",
        subject=gpu,
        reason=Reason.INCOMPLETE,
        path=where.source,
        detail="its row is too short and begins too far to the right: a letter is lost",
        how="dcgmi nvlink -s, the whole output",
    )


def _links(
    gpu: str, states: Mapping[int, str], of_row: tuple[bool, bool], where: Evidence, found: FactCollector
) -> None:
    """The links of a row. A row that may be cut has no count, unless it shows a link that is down, and one that is cut
    has none. `of_row`: whether the row is complete, and whether it is certain that it is not cut.
    """
    for link, letter in states.items():
        found.add(GpuLink, f"{gpu}/nvlink{link}", where, gpu=gpu, kind="nvlink", active=letter == "U")
    complete, whole = of_row
    letters = set(states.values())  # U: up, D: down, X: disabled
    if states and (whole or (complete and ("D" in letters or letters == {"U", "X"}))):
        exist = "UDX" if "U" in letters else "UD"
        up, present = (sum(letter in some for letter in states.values()) for some in ("U", exist))
        found.add(Gpu, gpu, where, nvlinks=up, nvlinks_present=present)


def read_devices(part: Part, rows: list[tuple[int, str]], found: FactCollector) -> Iterator[Record]:
    """The name, the PCI address and the UUID of each GPU. Rows whose first row is missing are of "a GPU"."""
    gpu, below = "", False  # below: the number of the GPU is in the first of its rows, and a border ends them
    for number, line in rows:
        name, text = cells(line)
        if below and line.strip().startswith("+"):
            gpu = _UNNAMED
        text, where = text.strip(), part.cite(number, line)
        if one := _ONE.fullmatch(name):
            gpu, below = f"gpu{int(one[1])}", False
        elif re.fullmatch("[0-9]{1,3}", name):
            gpu, below = f"gpu{int(name)}", True
        elif name in ("Switch ID", "CPU ID") or name.startswith("Group of"):
            gpu, below = "", False
        elif name and below:
            gpu = _UNNAMED
        field = _FIELD.fullmatch(text)
        called, value = (field[1], field[2]) if field else (name, text)
        if gpu and called in _FIELDS and value not in ("", "****"):
            found.take(Gpu, gpu, where, _FIELDS[called][0], value, _FIELDS[called][1])
        elif gpu and text == f"Return: {_LOST}":
            found.add(Gpu, gpu, where, failure=_LOST)
        elif gpu and text.startswith("Error: "):
            yield NotChecked(
                what="Gpu", subject=gpu, reason=Reason.OTHER, path=where.source, detail=text, how="nvidia-smi -q; dmesg"
            )


def read_old_health(part: Part, rows: list[tuple[int, str]], found: FactCollector) -> Iterator[Record]:
    """The health watch before DCGM 2: a verdict per GPU, and a text per system, which continues over several rows."""
    entity, texts = "", list[tuple[str, str, Evidence]]()
    for number, line in rows:
        name, text = cells(line)
        if one := _ONE.fullmatch(name):
            entity = f"gpu{int(one[1])}"
        elif not name and _SYSTEM.match(text.strip()) and entity:
            texts.append((entity, text.strip(), part.cite(number, line)))
        elif not name and text and texts:
            texts[-1] = (*texts[-1][:1], f"{texts[-1][1]} {text.strip()}", texts[-1][2])
    for gpu, text, where in texts:
        if system := _SYSTEM.match(text):
            yield from dcgm_words.unhealthy(system["system"], gpu, system["verdict"], system["text"], where, found)


def read_stats(part: Part, rows: list[tuple[int, str]], found: FactCollector) -> Iterator[Record]:
    """Errors and slowdowns of each GPU during a job. Xids have no number here, so they are events of a failed test."""
    gpu = _UNNAMED
    for number, line in rows:
        (name, text), where = cells(line), part.cite(number, line)
        value = text.strip()
        if one := _ONE.fullmatch(name.rstrip(" |")):
            gpu = f"gpu{int(one[1])}"
        elif name == "Double Bit ECC Errors" and _COUNT.fullmatch(value):
            found.add(Gpu, gpu, where, ecc_uncorrected=int(value))
        elif name == "Critical XID Errors" and _COUNT.fullmatch(value) and int(value):
            dcgm_words.failed(found, "DCGM's statistics of a job", gpu, f"{value} critical Xids", where)
        elif name == "- Thermal (%)" and _PERCENT.fullmatch(value):
            found.add(Gpu, gpu, where, clock_reasons=(_HEAT,) if int(value) > _HOT else ())
    yield from ()
