"""Errors that NVIDIA's driver logged: Xids of GPUs, SXids of NVSwitches. One finding per device, most severe first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from ...catalog.sxids import sxids
from ...catalog.xids import Xid, xids
from ...facts.gpu import Gpu, GpuLink
from ...facts.machine import Event, Pci
from ...facts.pci_classes import NVIDIA
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ...report import SEVERITIES, Finding, Severity
from ..core.log_history import bursts, event_evidence, events_about, gpu_at, later, since, times, why_history
from ..core.rule import Rule
from ..core.wording import function_name, location
from .missing import gone

_NVLINK, _NVLINK_FATAL = 74, "NVLink: fatal error"  # agents print this text with other numbers
_NVLINK_5 = range(144, 151)  # the message says if it is fatal; if not, NVIDIA's documented immediate action is "none"
# nvml.h, nvmlDeviceGpuRecoveryAction_t
_RECOVERIES = {
    1: "a GPU reset",
    2: "a restart of the node",
    3: "the end of peer traffic (drain P2P)",
    4: "a GPU reset after its jobs have ended",
    5: "the recovery of its IMEX domain",
    6: "a reset of its bus",
    7: "a restart of the whole system",
}
_DRIVER = "nvidia"


@dataclass(frozen=True, slots=True)
class LoggedError:
    """A logged error with its meaning. `past` says why it is not a fault any more."""

    event: Event
    severity: Severity
    says: str
    action: str | None
    source: str | None
    past: str | None = None


def of_gpu(snapshot: Snapshot, event: Event) -> bool:
    """Select Xids and changes of the recovery action that the driver requests."""
    return event.kind in ("xid", "recovery")


def xid(snapshot: Snapshot, event: Event) -> Iterator[Finding]:
    """The driver logged an Xid that needs an action. Xids that a program causes are not faults of the node.

    The Xids of a missing GPU are evidence of the finding that reports it as missing.
    """
    if event.subject in gone(snapshot):
        return
    errors = _errors(snapshot)(event.subject)
    gpu = gpu_at(snapshot, event.subject)
    if (
        not errors
        or errors[0].event is not event
        or (gpu and _requests_recovery(gpu) and errors[0].severity != "critical")
    ):
        return  # the current request of the driver is more severe than the log: state.py
    yield _finding(snapshot, "gpu-xid", "Xid", "the driver logged Xid {} for {}", errors)


@once_per_snapshot
def _errors(snapshot: Snapshot) -> Callable[[str | None], list[LoggedError]]:
    """The Xids of each GPU, or what the driver asks for. Each GPU is evaluated once."""
    return cache(lambda subject: _xids(snapshot, subject) or _recovery(snapshot, subject))


def _xids(snapshot: Snapshot, subject: str | None) -> list[LoggedError]:
    """The relevant Xids of a GPU, most severe first, then newest first."""
    found = []
    for event in events_about(snapshot, subject, "xid"):
        meaning = xids().get(_NVLINK if _NVLINK_FATAL in (event.text or "") else event.code or 0)
        if meaning is None or meaning.severity is None:
            continue
        past = _past(snapshot, event, meaning)
        severity: Severity = "info" if past or _is_harmless(event) else meaning.severity
        found.append(LoggedError(event, severity, meaning.says, meaning.action, meaning.source, past))
    return sorted(found, key=_first)


def _past(snapshot: Snapshot, event: Event, meaning: Xid) -> str | None:
    """Why an Xid is not a fault any more. None: it is."""
    if meaning.clears == "nothing":
        return None
    if past := why_history(snapshot, event):
        return past
    gpu = gpu_at(snapshot, event.subject)
    if gpu and _requests_recovery(gpu):
        return None
    if later(snapshot, event, "driver loaded", _DRIVER):
        return "the driver was loaded again after it"
    if meaning.clears == "gpu reset" and later(snapshot, event, "reset", event.subject):
        return "the GPU was reset after it"
    if _repeated(snapshot, event):
        return None
    if meaning.clears == "gpu reset" and later(snapshot, event, "recovery", event.subject, 0):
        return "after it, the driver asked for nothing any more"
    if gpu and meaning.recovery and gpu.recovery == "none":
        return "the driver asks for no recovery"
    if gpu and meaning.state and getattr(gpu, meaning.state) is not None:
        return "whether it still holds is read from the GPU itself"
    return None


def _is_harmless(event: Event) -> bool:
    """Whether the message itself says that the error is not fatal."""
    return event.code in _NVLINK_5 and event.fatal is False


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
        known = ((one, xids().get(one.code or 0)) for one in errors)
        return bursts([one for one, meaning in known if meaning and meaning.severity and not _is_harmless(one)])

    return count


def _requests_recovery(gpu: Gpu) -> bool:
    """Whether the driver requests a recovery action now."""
    return gpu.recovery not in (None, "none")


def _recovery(snapshot: Snapshot, subject: str | None) -> list[LoggedError]:
    """The last recovery action that the driver requested in the log. Empty if the current request is known."""
    requests = events_about(snapshot, subject, "recovery")
    last = max(requests, key=lambda one: one.at or 0.0, default=None)
    gpu = gpu_at(snapshot, subject)
    if last is None or last.code not in _RECOVERIES or (gpu and gpu.recovery is not None):
        return []  # state.py evaluates the current request
    done = later(snapshot, last, "driver loaded", _DRIVER) or later(snapshot, last, "reset", subject)
    past = "it was done" if done else why_history(snapshot, last)
    severity: Severity = "info" if past else "warning" if last.code in (3, 5) else "critical"
    says = f"the driver asks for {_RECOVERIES[last.code]}"
    return [LoggedError(last, severity, says, None, xids()[154].source, past)]


def sxid(snapshot: Snapshot, event: Event) -> Iterator[Finding]:
    """An NVSwitch reported an error. Errors without an effect are "info". Other rules report missing switches."""
    function = snapshot.of(Pci).get(event.subject or "")
    if function.lost if function else event.subject in _far_ends(snapshot) and snapshot.of(Pci):
        return
    found = _switch_errors(snapshot)(event.subject)
    if found and found[0].event is event:
        yield _finding(snapshot, "nvswitch-error", "SXid", "SXid {} of NVSwitch {}", found)


@once_per_snapshot
def _far_ends(snapshot: Snapshot) -> frozenset[str | None]:
    return frozenset(link.remote for link in snapshot.of(GpuLink).values())


@once_per_snapshot
def _switch_errors(snapshot: Snapshot) -> Callable[[str | None], list[LoggedError]]:
    """The SXids of each NVSwitch, most severe first. Each NVSwitch is evaluated once."""

    @cache
    def of(subject: str | None) -> list[LoggedError]:
        found = (_switch(snapshot, one) for one in events_about(snapshot, subject, "sxid"))
        return sorted(filter(None, found), key=_first)

    return of


def of_switch(snapshot: Snapshot, event: Event) -> bool:
    """Select SXids."""
    return event.kind == "sxid"


def _switch(snapshot: Snapshot, event: Event) -> LoggedError | None:
    """The meaning of an SXid. "Fatal" in the log sets the severity, otherwise the catalog does. None: no fault."""
    meaning = sxids().get(event.code or 0)
    severity = meaning.severity if meaning else "info"
    if event.fatal:
        severity = "critical"
    if severity is None:
        return None
    past = why_history(snapshot, event)
    if later(snapshot, event, "driver loaded", _DRIVER):
        past = "the driver was loaded again after it"
    if meaning and meaning.ends and later(snapshot, event, "sxid", event.subject, meaning.ends):
        past = "it ended"
    says = meaning.says if meaning else "an error that NVIDIA's tables do not name"
    action = meaning.action if meaning else None
    source = meaning.source if meaning else None
    return LoggedError(event, "info" if past else severity, says, action, source, past)


def _first(error: LoggedError) -> tuple[int, bool, float]:
    return SEVERITIES.index(error.severity), not error.event.fatal, -(error.event.at or 0.0)


def _finding(snapshot: Snapshot, code: str, word: str, phrase: str, errors: list[LoggedError]) -> Finding:
    """One finding for all logged errors of a device."""
    first, event = errors[0], errors[0].event
    same = [one.event for one in errors if one.event.code == event.code]
    others = sorted({one.event.code or 0 for one in errors} - {event.code})
    links = sorted({one.link for one in same if one.link is not None})
    function = snapshot.of(Pci).get(event.subject or "")
    observed = event.code if event.kind != "recovery" else 154
    return Finding(
        code=code,
        kind="event",
        severity=first.severity,
        subject=event.subject or "node",
        subject_name=function_name(snapshot, function) if function else None,
        message=phrase.format(observed, event.subject)
        + (f", link {', '.join(map(str, links))}" if links else "")
        + f"{times(same)}: {first.says}"
        + (f"; also {word} {', '.join(map(str, others))}" if others else "")
        + (f" ({first.past})" if first.past else ""),
        since=since(min(same, key=lambda one: one.first or one.at or 0.0)) if event.first else since(event),
        observed=observed,
        unit=word.lower(),
        cause=first.says,
        remedy=_remedy(first),
        expected_source=first.source,
        location=location(function, snapshot) if function else {},
        evidence=tuple(dict.fromkeys(event_evidence(one.event) for one in errors)),
    )


def _remedy(error: LoggedError) -> str | None:
    if error.action is None:
        return None
    if error.past:
        return f"Nothing now. If it is logged again: {error.action}."
    return f"{error.action[:1].upper()}{error.action[1:]}."


def _has_nvidia(snapshot: Snapshot) -> bool:
    """Whether the machine has or may have NVIDIA devices. Otherwise an unread log is no gap."""
    of_nvidia = any(function.vendor == NVIDIA for function in snapshot.of(Pci).values())
    return of_nvidia or bool(snapshot.of(Gpu)) or any(lost.what == "Pci" for lost in snapshot.not_checked)


RULES = (
    Rule("gpu-xid", Event, ("kind", "code"), xid, of_gpu, _has_nvidia),
    Rule("nvswitch-error", Event, ("kind", "code"), sxid, of_switch, _has_nvidia),
)
