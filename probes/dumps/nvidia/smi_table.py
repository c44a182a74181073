"""The table of `nvidia-smi`, `nvidia-smi --version`, and the tool's error messages.

A GPU has two or three rows between two border lines: name and address, present state, MIG mode. Names are cut to the
column width ("NVIDIA A100-SXM..."). The reader skips names that end in dots.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ....models.facts.gpu import Driver, Gpu
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, NotChecked, Record
from ...parsing.nvml_enums import pci_address
from ..core.part import Part
from .smi_fields import Card, facts
from .smi_values import nvml_status

_HANDLE = r"Unable to determine the device handle for (?:GPU|gpu) ?"
_ADDRESS = r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]"
_FAILED = (
    r"NVIDIA-SMI has failed because [^\n]{1,200}|Failed to initialize NVML: [^\n]{1,200}|No devices were found[. ]*"
)
_DATED = r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9][0-9] [0-9:]{8} [0-9]{4}[ \t]*\n"  # the line above the table
_EDGE = r"\+-{60,100}\+[ \t]*\n[ \t]*\|[ ]NVIDIA-SMI[ ]"
BEGIN = (
    rf"^[ \t]*(?:(?:{_DATED}[ \t]*)?{_EDGE}|\|[ ]NVIDIA-SMI[ ][0-9]|NVIDIA-SMI version[ ]+:[ ]|"
    rf"\|=+\+=+\+=+\|[ \t]*$|(?:{_FAILED})|{_HANDLE})"
)
# Rows of a GPU without the head of the table.
ANY_LINE = (
    rf"^[ \t]*\|(?:[ ]+[0-9]{{1,3}}[ ]+\S[^|\n]{{2,60}}\|[ ]+{_ADDRESS}[ ]"
    r"|[ ]*(?:N/A|[0-9]{1,3}%|ERR!)[ ]+(?:N/A|[0-9]{1,3}C|ERR!)[ ]+(?:P[0-9]{1,2}|N/A|ERR!)[ ]+[^|\n]{3,40}\|)"
)
_UNNAMED = "gpu"
_VERSIONS = re.compile(
    r"(?:(?:Driver|DRIVER|KMD) [Vv]ersion|NVML (?:library )?version|CUDA (?:UMD )?Version)\s*: ?([0-9.]{1,20})"
)
_NOT_LOADED = "Driver Not Loaded"  # NVML's name for the error that the tool describes in two sentences
_FIELD = {"D": "version", "K": "version", "N": "nvml", "C": "cuda"}  # by the first letter of the label
_FAILURE = re.compile(_FAILED)
_SLOT = r"[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}[.:]"
_ODD = r"[0-9A-Fa-f.:-]{5,20}(?=: )|GPU-[\w-]{1,40}(?=: )"  # a damaged address, a UUID
_LOST = re.compile(rf"{_HANDLE}(?:([0-9]{{1,3}}): ?(?!{_SLOT}))?(?:({_ADDRESS})|{_ODD})?[: ]*([A-Z][A-Za-z ]{{2,60}})")
_CELL = r"(?:N/A|[^\s/|]+)"
_FIRST = re.compile(
    rf"\|\s+([0-9]{{1,3}})\s+([^\s|]+(?:[ ][^\s|]+)*)\s+(On|Off|ERR!|N/A)\s*\|\s+({_ADDRESS})\s+[^\s|]+\s*\|"
    r"\s+([^\s|]+)\s*\|"
)
_SECOND = re.compile(
    rf"\|\s*[^\s|]+\s+([^\s|]+)\s+(P[0-9]{{1,2}}|ERR!|N/A)\s+({_CELL})\s*/\s*({_CELL})\s*\|\s+({_CELL})\s*/\s*({_CELL})\s*\|"
    r"\s+[^\s|]+\s+([^\s|][^|]*)\|"
)
# A GPU that does not answer: a message instead of the used memory.
_MESSAGE = re.compile(
    rf"\|\s*{_CELL}\s+({_CELL})\s+({_CELL})\s+{_CELL}\s*/\s*{_CELL}\s*\|\s+([A-Z][A-Za-z]*(?: [A-Za-z]+){{1,5}})\s*\|"
)
_THIRD = re.compile(r"\|\s+\|\s+\|\s+(Enabled|Disabled|N/A)\*?\s*\|")
_UNCORRECTED = "ecc.errors.uncorrected.volatile.total"  # the column "Volatile Uncorr. ECC"
_UNITS = re.compile(r"([0-9]{1,9})(MiB|W|C)")


def read(part: Part) -> Iterator[Record]:
    """The `Driver` or its failure, and each `Gpu` of the table."""
    cards: list[Card] = []
    for number, line in part.lines():
        text, where = line.strip(), part.cite(number, line)
        if "ersion" in text:
            yield from _versions(text, where)
        if failure := _FAILURE.match(text):
            yield from _failed(failure[0], where)
        elif lost := _LOST.match(text):
            yield _lost(lost, where)
        elif first := _FIRST.match(text):
            card = _card(first, where)
            if any(one.key == card.key and one.address != card.address for one in cards):
                yield _two(card, where)
                card.key = card.address or _UNNAMED
            cards.append(card)
        elif text.startswith("|") and (cards or _SECOND.match(text) or _MESSAGE.match(text)):
            cards = cards or [Card(key=_UNNAMED)]
            _further_row(cards[-1], text, where)
        if cards and "ERR!" in text:
            yield _refused(cards[-1], where)
    for card in cards:
        yield from facts(card, part.at)


def _two(card: Card, where: Evidence) -> NotChecked:
    why = f"two GPUs with different addresses have the number of {card.key}: the rows are of two machines"
    return NotChecked(what="Gpu", subject=card.key, reason=Reason.CONTRADICTED, path=where.source, detail=why)


def _refused(card: Card, where: Evidence) -> NotChecked:
    """A value that the driver could not read: a broken sensor, or a GPU that begins to fail."""
    return NotChecked(
        what="Gpu.readings",
        subject=card.key,
        reason=Reason.INCOMPLETE,
        path=where.source,
        detail="the driver gives ERR! instead of a value",
        how="nvidia-smi -q; dmesg | grep NVRM",
    )


def _versions(text: str, where: Evidence) -> Iterator[Record]:
    known: dict[str, Any] = {_FIELD[found[0][0]]: found[1] for found in _VERSIONS.finditer(text)}
    if "version" in known:
        known["library"] = known["version"]
    if known:
        yield Driver(key="nvidia", cites=dict.fromkeys(known, where), **known)


def _failed(text: str, where: Evidence) -> Iterator[Record]:
    """A failure of the driver. "No devices" is not a failure, because a machine may have no GPU."""
    if text.startswith("No devices"):
        yield Driver(key="nvidia", gpus=0, cites={"gpus": where})
        return
    failure = re.split("NVML: |because ", text)[1].rstrip(". ")
    if "ermission" in failure or failure.startswith("you are not"):  # an administrator
        yield NotChecked(
            what="Gpu",
            subject="node",
            reason=Reason.PERMISSION,
            path=where.source,
            detail=failure,
            how="run nvidia-smi as root",
        )
    elif text.startswith("Failed to") and not _is_status(failure):
        yield NotChecked(
            what="Driver.failure", subject="nvidia", reason=Reason.UNREADABLE, path=where.source, detail=text[:200]
        )
    else:
        failure = _NOT_LOADED if "couldn't communicate" in failure else failure
        yield Driver(key="nvidia", failure=failure, cites={"failure": where})


def _is_status(text: str) -> bool:
    """Whether the text is one of NVML's. Else the line is damaged."""
    try:
        return text == "N/A" or bool(nvml_status(text))
    except ValueError:
        return False


def _lost(found: re.Match[str], where: Evidence) -> Record:
    """A GPU that the driver knows but that does not answer."""
    address = pci_address(found[2]) if found[2] else None
    key = f"gpu{int(found[1])}" if found[1] else address or "gpu"
    cites = {"failure": where} | ({"address": where} if address else {})
    return Gpu(key=key, address=address, failure=found[3].strip(), cites=cites)


def _card(first: re.Match[str], where: Evidence) -> Card:
    number, name, persistence, address, errors = first.groups()
    card = Card(key=f"gpu{int(number)}", address=pci_address(address))
    card.texts["PCI/Bus Id"] = (address, where)
    if not name.endswith(".."):
        card.texts["Product Name"] = (name, where)
    if persistence in ("On", "Off"):
        card.texts["Persistence Mode"] = (persistence, where)
    if errors.isdecimal():
        card.texts[_UNCORRECTED] = (errors, where)
    return card


def _further_row(card: Card, text: str, where: Evidence) -> None:
    """Read the further rows of a GPU. They show ERR! if the GPU does not answer."""
    if second := _SECOND.match(text):
        temperature, state, power, limit, used, memory, mode = map(str.rstrip, second.groups())
        values = {
            "Temperature/GPU Current Temp": temperature,
            "Performance State": state,
            "GPU Power Readings/Power Draw": power,
            "GPU Power Readings/Current Power Limit": limit,
            "FB Memory Usage/Used": used,
            "FB Memory Usage/Total": memory,
            "Compute Mode": mode,
        }
        for name, value in values.items():
            if _UNITS.fullmatch(value) or name in ("Performance State", "Compute Mode"):
                card.texts.setdefault(name, ("N/A" if value == "ERR!" else value, where))
        if temperature == state == "ERR!":  # a single ERR! may be a broken sensor
            card.texts["Product Name"] = ("ERR!", where)
    elif message := _MESSAGE.match(text):
        card.texts["FB Memory Usage/Used"] = (message[3], where)
        if message[1] == message[2] == "ERR!":
            card.texts.setdefault("Product Name", ("ERR!", where))
    elif third := _THIRD.match(text):
        card.texts.setdefault("MIG Mode/Current", (third[1], where))
