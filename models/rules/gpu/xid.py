"""What NVIDIA's driver logged: Xids of GPUs, SXids of NVSwitches. One finding a device, led by the gravest of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...catalog.sxids import sxids
from ...catalog.xids import Xid, xids
from ...facts.gpu import Gpu, GpuLink
from ...facts.machine import Event, Pci
from ...facts.pci_classes import NVIDIA
from ...inventory.snapshot import Snapshot
from ...report import SEVERITIES, Finding, Severity
from ..core.log_history import events, gpu_at, history, later, number, often, proof, since
from ..core.rule import Rule
from ..core.wording import location, named
from .missing import gone

_NVLINK_5 = range(144, 151)  # their messages say whether they are fatal; if not, NVIDIA's immediate action is none
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
class Told:
    """An event with what it means, and why it is not a fault today, if it is not."""

    event: Event
    severity: Severity
    says: str
    action: str | None
    source: str | None
    past: str | None = None


def of_gpu(snapshot: Snapshot, event: Event) -> bool:
    """An Xid, or a change of what the driver asks for."""
    return event.kind in ("xid", "recovery")


def xid(snapshot: Snapshot, event: Event) -> Iterator[Finding]:
    """The driver logged an Xid that needs an action. Those that a program causes are not faults of the node.

    Of a GPU that is missing it says how it went, which the finding on that cites.
    """
    if event.subject in gone(snapshot):
        return
    told = _told(snapshot, event.subject) or _asked(snapshot, event.subject)
    gpu = gpu_at(snapshot, event.subject)
    if not told or told[0].event is not event or (gpu and _asks(gpu) and told[0].severity != "critical"):
        return  # what the driver asks for now is graver than what it logged: gpu_state.py
    yield _finding(snapshot, "gpu-xid", "Xid", "the driver logged Xid {} for {}", told)


def _told(snapshot: Snapshot, subject: str | None) -> list[Told]:
    """The Xids of a GPU that mean something, the gravest and then the newest first."""
    found = []
    for event in events(snapshot, "xid"):
        meaning = xids().get(event.code or 0)
        if event.subject != subject or meaning is None or meaning.severity is None:
            continue
        past = _past(snapshot, event, meaning)
        harmless = event.code in _NVLINK_5 and event.fatal is False
        severity: Severity = "info" if past or harmless else meaning.severity
        found.append(Told(event, severity, meaning.says, meaning.action, meaning.source, past))
    return sorted(found, key=_first)


def _past(snapshot: Snapshot, event: Event, meaning: Xid) -> str | None:
    """Why an Xid is not a fault today."""
    if meaning.clears == "nothing":
        return None
    if past := history(snapshot, event):
        return past
    gpu = gpu_at(snapshot, event.subject)
    if gpu and _asks(gpu):
        return None
    if later(snapshot, event, "driver loaded", _DRIVER):
        return "the driver was loaded again after it"
    if meaning.clears == "gpu reset" and later(snapshot, event, "reset", event.subject):
        return "the GPU was reset after it"
    if meaning.clears == "gpu reset" and later(snapshot, event, "recovery", event.subject, 0):
        return "after it, the driver asked for nothing any more"
    if gpu and meaning.recovery and gpu.recovery == "none":
        return "the driver asks for no recovery"
    if gpu and meaning.state and getattr(gpu, meaning.state) is not None:
        return "whether it still holds is read from the GPU itself"
    return None


def _asks(gpu: Gpu) -> bool:
    """Whether the driver asks for something to be done, now."""
    return gpu.recovery not in (None, "none")


def _asked(snapshot: Snapshot, subject: str | None) -> list[Told]:
    """What the driver asks for in the log, where it did not say since that nothing is needed."""
    asked = [event for event in events(snapshot, "recovery") if event.subject == subject]
    last = max(asked, key=lambda one: one.at or 0.0, default=None)
    gpu = gpu_at(snapshot, subject)
    if last is None or last.code not in _RECOVERIES or (gpu and gpu.recovery is not None):
        return []  # what the driver asks for now is known, and judged as a state
    done = later(snapshot, last, "driver loaded", _DRIVER) or later(snapshot, last, "reset", subject)
    past = "it was done" if done else history(snapshot, last)
    severity: Severity = "info" if past else "warning" if last.code in (3, 5) else "critical"
    says = f"the driver asks for {_RECOVERIES[last.code]}"
    return [Told(last, severity, says, None, xids()[154].source, past)]


def sxid(snapshot: Snapshot, event: Event) -> Iterator[Finding]:
    """An NVSwitch reported an error. One that changed nothing is worth knowing; of one that is gone, it is missed."""
    function = snapshot.of(Pci).get(event.subject or "")
    led_to = any(link.remote == event.subject for link in snapshot.of(GpuLink).values())
    if function.lost if function else led_to and snapshot.of(Pci):
        return
    found = [
        told for one in events(snapshot, "sxid") if one.subject == event.subject if (told := _switch(snapshot, one))
    ]
    found.sort(key=_first)
    if found and found[0].event is event:
        yield _finding(snapshot, "nvswitch-error", "SXid", "SXid {} of NVSwitch {}", found)


def of_switch(snapshot: Snapshot, event: Event) -> bool:
    """An SXid."""
    return event.kind == "sxid"


def _switch(snapshot: Snapshot, event: Event) -> Told | None:
    """What an SXid means: the log's own "Fatal" is believed, the catalog for the rest."""
    meaning = sxids().get(event.code or 0)
    severity = meaning.severity if meaning else "info"
    if event.fatal:
        severity = "critical"
    if severity is None:
        return None
    past = history(snapshot, event)
    if later(snapshot, event, "driver loaded", _DRIVER):
        past = "the driver was loaded again after it"
    if meaning and meaning.ends and later(snapshot, event, "sxid", event.subject, meaning.ends):
        past = "it ended"
    says = meaning.says if meaning else "an error that NVIDIA's tables do not name"
    action = meaning.action if meaning else None
    return Told(event, "info" if past else severity, says, action, meaning.source if meaning else None, past)


def _first(told: Told) -> tuple[int, bool, float]:
    return SEVERITIES.index(told.severity), not told.event.fatal, -(told.event.at or 0.0)


def _finding(snapshot: Snapshot, code: str, word: str, phrase: str, told: list[Told]) -> Finding:
    """One finding for all that was logged of a device."""
    first, event = told[0], told[0].event
    same = [one.event for one in told if one.event.code == event.code]
    others = sorted({one.event.code or 0 for one in told} - {event.code})
    links = sorted({one.link for one in same if one.link is not None})
    function = snapshot.of(Pci).get(event.subject or "")
    observed = event.code if event.kind != "recovery" else 154
    return Finding(
        code=code,
        kind="event",
        severity=first.severity,
        subject=event.subject or "node",
        subject_name=named(snapshot, function) if function else None,
        message=phrase.format(observed, event.subject)
        + (f", link {', '.join(map(str, links))}" if links else "")
        + f"{often(number(same))}: {first.says}"
        + (f"; also {word} {', '.join(map(str, others))}" if others else "")
        + (f" ({first.past})" if first.past else ""),
        since=since(min(same, key=lambda one: one.first or one.at or 0.0)) if event.first else since(event),
        observed=observed,
        unit=word.lower(),
        cause=first.says,
        remedy=_remedy(first),
        expected_source=first.source,
        location=location(function, snapshot) if function else {},
        evidence=tuple(dict.fromkeys(proof(one.event) for one in told)),
    )


def _remedy(told: Told) -> str | None:
    if told.action is None:
        return None
    if told.past:
        return f"Nothing now. If it is logged again: {told.action}."
    return f"{told.action[:1].upper()}{told.action[1:]}."


def _has_nvidia(snapshot: Snapshot) -> bool:
    """Elsewhere nobody misses their log. Where PCI could not be read, nobody knows."""
    of_nvidia = any(function.vendor == NVIDIA for function in snapshot.of(Pci).values())
    return of_nvidia or bool(snapshot.of(Gpu)) or any(lost.what == "Pci" for lost in snapshot.not_checked)


RULES = (
    Rule("gpu-xid", Event, ("kind", "code"), xid, of_gpu, _has_nvidia),
    Rule("nvswitch-error", Event, ("kind", "code"), sxid, of_switch, _has_nvidia),
)
