"""Unhealthy states of checks, of whatever program: the kind of the check, its device, and the event.

models/catalog/messages/agent_checks.toml has the meaning of each kind of check.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from ....models.facts.machine import Event
from ....models.facts.records import Evidence

# The kinds of checks, by words of the name of the check and of its error codes. The first one that fits
_KINDS: Mapping[str, str] = {
    "sxid": r"(?-i:SXID|SXid|(?<![A-Za-z])sxid)",  # not the end of "SysLogs" before "XID"
    "xid": r"xid",
    "remap": r"remap|retired",
    "ecc": r"ecc|gpu[-_]?mem|dbe|sram",
    "nvlink": r"nvlink",
    "fabric": r"fabric",
    "nvswitch": r"nvswitch",
    "heat": r"thermal|temperature|slow-?down|throttl|power",
    "count": r"gpu[-_]?(?:count|lost|missing)|fallen|off[-_]?the[-_]?bus|off_bus",
    "port": r"infiniband|ethernet|(?<![a-z])nic|(?<![a-z])ib(?![a-z])|rdma|(?<![a-z])roce|mellanox|link[-_]?flap",
    "pcie": r"pci",
    "driver": r"driver|nvml|inforom|dcgm[-_]?(?:conn|unresp)|gpu[-_]?health|accelerated",
    "disk": r"disk|file-?system|nvme|storage|raid",
}
_KIND = {name: re.compile(words, re.IGNORECASE) for name, words in _KINDS.items()}
_RDMA = re.compile(
    r"(?<![\w.])((?:mlx5|bnxt_re|irdma|ionic|erdma|efa|rocep|ibp)\w{0,12})(?:[ /:,]{1,2}(?:port )?([1-4])(?!\d))?"
)
_GPU = re.compile(r"\bGPU[ #:]?(\d{1,2})\b")
_XID = re.compile(r"(?i)\bxid\W{0,3}(?:errors?\W{1,3})?([1-9][0-9]{0,2})\b")
_PCI = re.compile(r"([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})(?:\.([0-7]))?", re.IGNORECASE)
_LANES = re.compile(r"(?i)width|lanes?\b|\bx ?(?:1|2|4|8|16)\b")
_SPEED = re.compile(r"(?i)\bgen(?:eration)?[ _]?\d|speed|gt/s")
_FLAPS, _RATE = re.compile(r"(?i)flap"), re.compile(r"(?i)\b(?:rate|speed|[gm]b(?:/s|ps))")
_DOWN = re.compile(r"(?i)\bdown\b|polling|disabled|not active|inactive|only \d+ port|no carrier|missing|disappear")


class FailedCheck(Struct, frozen=True):
    """An unhealthy state of a check. `entities`: kinds and names of devices, as the record names them."""

    check: str
    message: str
    fatal: bool = False
    codes: tuple[str, ...] = ()
    entities: tuple[tuple[str, str], ...] = ()


def event_of_check(state: FailedCheck, subject: str, cite: Evidence) -> Event:
    """The event of the state: an Xid if the state names one, else a message of the catalog."""
    kind = kind_of_check(state)
    if code := _xid(kind, state):
        subject = "gpu" if subject == "node" else subject
        key = f"xid {subject} {code}"
        cites = {"text": cite}
        return Event(key=key, kind="xid", code=int(code), subject=subject, text=state.message, count=1, cites=cites)
    grade = "-fatal" if state.fatal and kind != "other" else ""
    text = f"check {state.check} [{kind}{grade}]: {state.message}"
    name = f"agent-check-{kind}{grade}"
    key = f"message {subject} {name} {state.check}"
    return Event(key=key, kind="message", name=name, subject=subject, text=text, count=1, cites={"text": cite})


def _xid(kind: str, state: FailedCheck) -> str | None:
    """The number of the Xid that the state is about."""
    if kind not in ("xid", "other", "driver", "count"):
        return None
    numbers = (code for code in state.codes if kind == "xid" and code.isdecimal())
    named = _XID.search(" ".join((state.message, *state.codes)))
    return next(numbers, named[1] if named else None)


def kind_of_check(state: FailedCheck) -> str:
    """The kind of the check: a row agent-check-KIND of the catalog, or "other"."""
    words = (state.check, " ".join(state.codes))
    kind = next((name for text in words for name, form in _KIND.items() if form.search(text)), "other")
    if kind == "port":
        down, flaps = _DOWN.search(state.message), _FLAPS.search(f"{state.check} {state.message}")
        return "flap" if flaps else "port" if down else "rate" if _RATE.search(state.message) else "counter"
    if kind == "pcie":
        text = " ".join((state.message, *words))
        return "lanes" if _LANES.search(text) else "speed" if _SPEED.search(text) else kind
    return "nvlink-counter" if kind == "nvlink" and not _DOWN.search(" ".join((state.message, *words))) else kind


def subject_of_check(state: FailedCheck) -> str:
    """The device that the record or its message names."""
    for kind, value in state.entities:
        if kind == "gpu" and value.isdecimal():
            return f"gpu{int(value)}"
        if kind == "pci" and (found := _PCI.fullmatch(value)):
            return f"{found[1].lower()}.{found[2] or 0}"
        if kind in ("nic", "ib", "rdma", "infiniband", "ethernet") and (found := _RDMA.match(value)):
            return f"{found[1]}/{found[2] or 1}"
    if found := _PCI.search(state.message):
        return f"{found[1].lower()}.{found[2] or 0}"
    if found := _RDMA.search(state.message):
        return f"{found[1]}/{found[2] or 1}"
    return f"gpu{int(found[1])}" if (found := _GPU.search(state.message)) else "node"


def counts_devices(check: str) -> bool:
    """Whether the name of a check says that it counts GPUs."""
    return _KIND["count"].search(check) is not None
