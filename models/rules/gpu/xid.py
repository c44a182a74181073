"""Errors of GPUs that NVIDIA's driver logged (Xids). One finding per GPU, most severe first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache

from ...catalog.xids import UNKNOWN, Xid, xids
from ...facts.gpu import Gpu
from ...facts.machine import Event
from ...facts.recovery import OF_NODE, logged_action
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ...report import Finding, Severity
from ..core.gpus import asks_recovery, driver_release, gpu_product
from ..core.log_history import EPOCH, bursts, events, events_about, gpu_at, later, why_history
from ..core.rule import Rule
from .logged_errors import DRIVER, LoggedError, finding_of, has_nvidia, worst_first
from .missing import gone

_NVLINK, _NVLINK_FATAL = 74, "NVLink: fatal error"  # agents print this text with other numbers
_NVLINK_5 = range(144, 151)  # the message says if it is fatal; if not, NVIDIA's documented immediate action is "none"
# Xid 145 within 30 s of a link that went down (149) is a by-product of it (Xid catalog, CHECK_NVLINK_FAILURE_FLOW).
_ROUTING, _LINK_DOWN, _BY_PRODUCT = 145, 149, 30.0
_ASKED: Mapping[str, str] = {
    "GPU reset": "a GPU reset",
    "node reboot": "a restart of the node",
    "drain P2P": "the end of peer traffic (drain P2P)",
    "drain and reset": "a GPU reset after its jobs have ended",
    "recover IMEX domain": "the recovery of its IMEX domain",
    "bus reset": "a reset of its bus",
    "system reboot": "a restart of the whole system",
}
_MILD = ("drain P2P", "recover IMEX domain")
_LOOK = "look at the log of the program; if other programs get it on this GPU alone, test the GPU (dcgmi diag -r 3)"
# The catalog's column "Xid 154 linkage" is about A100, H100, B100 and GB200: GPUs with HBM since PCIe 4.
_FIRST_PCIE, _FIRST_RELEASE = 4, 565  # the first release that reports a recovery action


def of_gpu(snapshot: Snapshot, event: Event) -> bool:
    """Select Xids and changes of the recovery action that the driver requests."""
    return event.kind in ("xid", "recovery")


def xid(snapshot: Snapshot, event: Event) -> Iterator[Finding]:
    """The driver logged an Xid that needs an action. Xids that a program causes are not faults of the node: only a text
    that somebody pasted is answered with what they mean.

    The Xids of a missing GPU are evidence of the finding that reports it as missing.
    """
    if event.subject in gone(snapshot):
        return
    errors = _errors(snapshot)(event.subject)
    gpu = gpu_at(snapshot, event.subject)
    if not errors or errors[0].event is not event or (gpu and asks_recovery(gpu) and errors[0].severity != "critical"):
        return  # the current request of the driver is more severe than the log: state.py
    yield finding_of(snapshot, "gpu-xid", "Xid", "the driver logged Xid {} for {}", errors)


@once_per_snapshot
def _errors(snapshot: Snapshot) -> Callable[[str | None], list[LoggedError]]:
    """The Xids of each GPU, or what the driver asks for. Each GPU is evaluated once."""
    return cache(
        lambda subject: _xids(snapshot)(subject) or _recovery(snapshot, subject) or _of_programs(snapshot, subject)
    )


@once_per_snapshot
def _xids(snapshot: Snapshot) -> Callable[[str | None], list[LoggedError]]:
    return cache(lambda subject: _of_gpu(snapshot, subject))


def _of_gpu(snapshot: Snapshot, subject: str | None) -> list[LoggedError]:
    """The relevant Xids of a GPU, most severe first, then newest first."""
    found = []
    for event in events_about(snapshot, subject, "xid"):
        meaning = _meaning(event)
        if meaning.severity is None:
            continue
        past = _past(snapshot, event, meaning) or _by_product(snapshot, event)
        severity: Severity = "info" if past or _is_harmless(snapshot, event) else meaning.severity
        found.append(LoggedError(event, severity, meaning.says, meaning.action, meaning.source, past))
    return sorted(found, key=worst_first)


def _of_programs(snapshot: Snapshot, subject: str | None) -> list[LoggedError]:
    """The Xids in a dump that programs cause, newest first."""
    if snapshot.origin != "dumps":
        return []
    logged = ((event, _meaning(event)) for event in events_about(snapshot, subject, "xid"))
    mild = [
        LoggedError(event, "info", row.says, _LOOK, row.source)
        for event, row in logged
        if row.severity is None and not row.housekeeping
    ]
    return sorted(mild, key=worst_first)


def _meaning(event: Event) -> Xid:
    """The row of the catalog. An Xid that the catalog does not have needs a look at its log line."""
    return xids().get(_NVLINK if _NVLINK_FATAL in (event.text or "") else event.code or 0, UNKNOWN)


def _past(snapshot: Snapshot, event: Event, meaning: Xid) -> str | None:
    """Why an Xid is not a fault any more. None: it is."""
    if meaning.clears == "nothing":
        return None
    if past := why_history(snapshot, event):
        return past
    gpu = gpu_at(snapshot, event.subject)
    if gpu and asks_recovery(gpu):
        return None
    if later(snapshot, event, "driver loaded", DRIVER):
        return "the driver was loaded again after it"
    if meaning.clears == "gpu reset" and later(snapshot, event, "reset", event.subject):
        return "the GPU was reset after it"
    if _repeated(snapshot, event):
        return None
    if meaning.clears == "gpu reset" and later(snapshot, event, "recovery", event.subject, 0):
        return "after it, the driver asked for nothing any more"
    if snapshot.origin == "capture" and not EPOCH < (event.at or 0.0) <= snapshot.now:
        return None  # of a log beside the capture, which may be newer than the states in it
    if gpu and gpu.recovery == "none" and _sets_recovery(snapshot, gpu, meaning):
        return "the driver asks for no recovery"
    if gpu and meaning.state and getattr(gpu, meaning.state) is not None:
        return "whether it still holds is read from the GPU itself"
    return None


def _sets_recovery(snapshot: Snapshot, gpu: Gpu, meaning: Xid) -> bool:
    """Whether this driver sets the recovery action of this GPU with this Xid. Otherwise "none" says nothing.

    A driver of an unknown release reports recovery actions, so it is at least the first release that does.
    """
    product = gpu_product(snapshot, gpu)
    known = product is not None and product.memory_kind == "hbm" and product.pcie >= _FIRST_PCIE
    release = driver_release(snapshot) or _FIRST_RELEASE
    return known and meaning.recovery is not None and meaning.recovery <= release


def _is_harmless(snapshot: Snapshot, event: Event) -> bool:
    """Whether the message itself says that the error is not fatal, or it is a by-product."""
    return (event.code in _NVLINK_5 and event.fatal is False) or _by_product(snapshot, event) is not None


def _by_product(snapshot: Snapshot, event: Event) -> str | None:
    """Why Xid 145 is a by-product of another GPU's link that went down shortly before. None: it is not."""
    if event.code != _ROUTING or event.at is None:
        return None
    first = event.at if event.first is None else event.first
    for other in _links_down(snapshot):
        if other.subject == event.subject or other.at is None or other.until != event.until:
            continue
        began = other.at if other.first is None else other.first
        if began <= event.at and first <= other.at + _BY_PRODUCT:
            return f"a by-product of Xid {_LINK_DOWN} of {other.subject}"
    return None


@once_per_snapshot
def _links_down(snapshot: Snapshot) -> list[Event]:
    return [one for one in events(snapshot, "xid") if one.code == _LINK_DOWN]


def _repeated(snapshot: Snapshot, event: Event) -> bool:
    """Whether the GPU had such errors in several bursts within a day. One fault logs one burst of lines.

    The driver sets its recovery action to "none" when an error is repaired. This excuses one burst, not the next one.
    NVIDIA's node monitor counts the bursts of a GPU, too (NVIDIA/NVSentinel, health-events-analyzer). The node checks
    of Azure fail on each new Xid (Azure/azurehpc-health-checks, azure_gpu_xid.nhc).
    """
    return _bursts(snapshot)(event.subject, event.until) > 1


@once_per_snapshot
def _bursts(snapshot: Snapshot) -> Callable[[str | None, float | None], int]:
    """The number of bursts of errors of each GPU in each log."""

    @cache
    def count(subject: str | None, until: float | None) -> int:
        errors = (one for one in events_about(snapshot, subject, "xid") if one.until == until)
        return bursts([one for one in errors if _meaning(one).severity and not _is_harmless(snapshot, one)])

    return count


def named_errors(snapshot: Snapshot) -> str:
    """The current Xids of all GPUs as text for a finding on the node: "Xid 79 of 0000:53:00.0"."""
    subjects = dict.fromkeys(one.subject for one in events(snapshot, "xid") if one.subject)
    worst = [errors[0] for subject in subjects if (errors := _xids(snapshot)(subject))]
    return ", ".join(f"Xid {one.event.code} of {one.event.subject}" for one in worst if one.severity != "info")


def _recovery(snapshot: Snapshot, subject: str | None) -> list[LoggedError]:
    """The last recovery action that the driver requested in the log. Empty if the current request is known.

    The driver logs an action of the whole node for each of its GPUs. One finding cites the line of the first GPU.
    """
    found = _requested(snapshot).get(subject)
    gpu = gpu_at(snapshot, subject)
    if found is None or (gpu and gpu.recovery is not None):
        return []  # state.py evaluates the current request
    last, action = found
    of_node = action in OF_NODE
    if of_node and subject != next(one for one, (_, other) in _requested(snapshot).items() if other == action):
        return []
    done = later(snapshot, last, "driver loaded", DRIVER) or later(snapshot, last, "reset", subject)
    past = "it was done" if done else why_history(snapshot, last)
    severity: Severity = "info" if past else "warning" if action in _MILD else "critical"
    after = named_errors(snapshot) if of_node else ""
    says = f"the driver asks for {_ASKED[action]}" + (f", after {after}" if after else "")
    return [LoggedError(last, severity, says, None, xids()[154].source, past, of_node)]


@once_per_snapshot
def _requested(snapshot: Snapshot) -> Mapping[str | None, tuple[Event, str]]:
    """The last recovery action that the driver requested in the log, of GPUs without an Xid that needs an action."""
    found: dict[str | None, tuple[Event, str]] = {}
    for event in sorted(events(snapshot, "recovery"), key=lambda one: one.at or 0.0):
        action = logged_action(event.text, event.code, driver_release(snapshot))
        found.pop(event.subject, None)
        if action in _ASKED and not _xids(snapshot)(event.subject):
            found[event.subject] = event, str(action)
    return dict(sorted(found.items(), key=lambda item: item[0] or ""))


RULES = (Rule("gpu-xid", Event, ("kind", "code"), xid, of_gpu, has_nvidia),)
