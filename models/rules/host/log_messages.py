"""Messages of the log that the catalog explains (models/catalog/messages): one finding per code and subject.

The state that was read from a device takes precedence: evaluate.py adds a message to the finding of another rule about
the same code and subject.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from ...catalog import NOT_ENOUGH_EVIDENCE
from ...catalog.log_messages import Message, is_said, is_unexplained, message, search
from ...facts.gpu import Gpu, GpuLink
from ...facts.machine import Event, Node, Pci
from ...facts.records import NotChecked
from ...inventory.snapshot import Snapshot
from ...report import SEVERITIES, UNEXPLAINED, Finding, Severity
from ..core.gpus import gpu_product
from ..core.log_history import event_evidence, events, gpu_at, is_later, later, since, times, total_count, why_history
from ..core.rule import Rule
from ..core.wording import function_name, location
from ..pcie.said_links import contradicted, is_shown, whole_link

_WARNING = "warning"  # the case of an unknown warning of NCCL: no symptom beside a fault that has a name
_KIND, _FELL_OFF = "message", 79  # Xid
_OF_GPUS = ("gpu-", "nvlink-", "nvswitch-", "driver-mismatch")
_STATES = ("gpu-missing", "gpu-driver-failed")  # the driver shows whether they hold
# Words with which a driver states a failure of hardware or firmware, also in lines that linkgauge does not know.
_GRAVE = re.compile(
    r"(?i)(?<!non-)\b(?:fatal|unrecover(?:ed|able)|uncorrect(?:ed|able)|hardware (?:error|failure)|not respon\w{2,6}"
    r"|(?:un|non-)responsive|hung|dead|overheat(?:ed|ing)|fell off|fallen off)\b"
)
_DOWN, _FLAPPING, _FLAPS = "nic-port-down", "nic-port-flapping", 3  # times in an hour (network/nic_events.py)
_MEMORY, _LITTLE = "host-memory-errors", 0.98  # of the memory of a node; one of 32 modules is 0.03
_NUMBERS = ("{xid}", "{sxid}")
# Statements that a state is meant so, and the beginnings of their codes
DESIGNED = {
    "by-design-links": ("nvlink-", "bandwidth-low"),
    "no-nvlink": ("nvlink-",),
    "no-nvlink-bridge": ("nvlink-",),
    "by-design-lanes": ("pcie-link-",),
    "misreported-link": ("pcie-link-",),
    "geforce-peers": ("p2p-disabled",),
    **dict.fromkeys(("no-nvswitch", "fm-nothing-to-do"), ("fabric-manager-down",)),
}
_STARTS = "gpu init failed"  # the events that name the GPU of a driver's own number


class _Logged(Struct, frozen=True):
    """A message with its row. `past` says why it is not a fault any more."""

    event: Event
    row: Message
    code: str
    subject: str
    severity: Severity
    past: str | None

    @property
    def says(self) -> str:
        """The meaning, with the numbers of the line."""
        if is_said(self.row.name):
            from ...catalog import said_messages  # most texts and all machines have no sentences

            return said_messages.meaning(self.row.name, self.event.text or "")
        return self.row.meaning.format_map(_values(self.event))


def reported(snapshot: Snapshot, node: Node) -> Iterator[Finding | NotChecked]:
    """The messages of the log that name a fault."""
    groups: dict[tuple[str, str], list[_Logged]] = defaultdict(list)
    names = {event.name for event in events(snapshot, _KIND)}
    for event in events(snapshot, _KIND):
        row = message(event.name or "")
        symptom = row.code == NOT_ENOUGH_EVIDENCE and snapshot.origin != "dumps"  # a machine shows its state itself
        if row.code and row.severity and not symptom and _counts(row, names):
            subject = _subject(snapshot, event, row)
            past = _cleared(snapshot, event) or _of_gpu(snapshot, event, row, subject) or why_history(snapshot, event)
            past = past or _designed(row, names) or whole_link(snapshot, row, subject)
            if not _is_known(snapshot, row, subject) and not is_shown(snapshot, row):
                flaps = row.code == _DOWN and past == _cleared(snapshot, event) and _happened(event) >= _FLAPS
                severity: Severity = "info" if past and not flaps else _severity(row, event, names)
                if severity == "critical" and _may_lack_bridge(snapshot, event, row, subject):
                    severity = "warning"
                code = _FLAPPING if past and flaps else row.code
                if row.elsewhere and not past and snapshot.origin == "dumps":
                    code, severity = NOT_ENOUGH_EVIDENCE, "info"
                groups[code, subject].append(_Logged(event, row, code, subject, severity, past))
    yield from contradicted(snapshot, (one.past for found in groups.values() for one in found))
    for found in groups.values():
        explained = [one for one in found if not is_unexplained(one.row.name)]
        yield _finding(snapshot, sorted(explained or found, key=_first))


def _counts(row: Message, names: Set[str | None]) -> bool:
    """Whether the message counts beside the other messages of the log."""
    return (not row.needs or bool(names & {*row.needs} or row.severity_alone)) and not names & {*row.unless}


def _designed(row: Message, names: Set[str | None]) -> str | None:
    """Why the fault is none: the text says that the state is by design."""
    said = (name for name, codes in DESIGNED.items() if name in names and (row.code or "").startswith(codes))
    return message(found).meaning if (found := next(said, None)) else None


def _first(one: _Logged) -> tuple[int, float, int]:
    return SEVERITIES.index(one.severity), one.event.at or 0.0, one.event.place or 0


def _severity(row: Message, event: Event, names: Set[str | None]) -> Severity:
    assert row.severity
    if row.severity_alone and not names & {*row.needs}:
        return row.severity_alone
    if is_unexplained(row.name) and row.code != NOT_ENOUGH_EVIDENCE and _GRAVE.search(event.text or ""):
        return "warning"
    if row.code == _MEMORY and _LITTLE <= _share(_values(event)) < 1:
        return "info"  # a module is a larger part: the configuration was rounded
    many = row.many is not None and _count(event) >= row.many
    return row.severity_of_many if many and row.severity_of_many else row.severity


def _share(values: Mapping[str, str]) -> float:
    """The share of what there should be. 0: the message has no such numbers."""
    have, want = values.get("have", ""), values.get("want", "")
    return int(have) / int(want) if have.isdecimal() and want.isdecimal() and int(want) else 0.0


def _happened(event: Event) -> int:
    """How many times it happened within an hour. Of lines without times: how many lines there are."""
    return event.recent or event.count or 1


def _count(event: Event) -> int:
    """The number of lines, or the total that the line itself gives."""
    total = _values(event).get("total", "")
    return max(total_count([event]), int(total) if total.isdecimal() else 0)


def _values(event: Event) -> Mapping[str, str]:
    """The named groups of the message."""
    found = search(event.name or "", event.text or "")
    return {name: text or "?" for name, text in found.groupdict().items()} if found else defaultdict(lambda: "?")


def _subject(snapshot: Snapshot, event: Event, row: Message) -> str:
    """The subject. The driver's own number of a GPU is no name: the only GPU that failed to start is meant."""
    if row.about:
        others = {one.subject for one in events(snapshot, _KIND) if one.name in row.about}
        return others.pop() or "node" if len(others) == 1 else "node"
    if row.subject != "rm":
        return event.subject or "node"
    failed = {one.subject for one in events(snapshot, _STARTS) if ":" in (one.subject or "")}
    return failed.pop() or "node" if len(failed) == 1 else event.subject or "node"


def _is_known(snapshot: Snapshot, row: Message, subject: str) -> bool:
    """Whether the rule of Xids reports the same: a GPU that fell off the bus."""
    return row.code == "gpu-missing" and any(
        one.code == _FELL_OFF and subject in (one.subject, "node") for one in events(snapshot, "xid")
    )


def _of_gpu(snapshot: Snapshot, event: Event, row: Message, subject: str) -> str | None:
    """Why a fault of a GPU is over: the driver was loaded again, or it uses the GPU now."""
    if not (row.code or "").startswith(_OF_GPUS):
        return None
    if later(snapshot, event, "driver loaded", "nvidia"):
        return "the driver was loaded again after it"
    if later(snapshot, event, "reset", subject):
        return "the GPU was reset after it"
    if row.code == "gpu-driver-failed" and subject == "node" and snapshot.origin != "dumps" and snapshot.of(Pci):
        return "the driver of each GPU was read"
    gpu = gpu_at(snapshot, subject) or snapshot.of(Gpu).get(subject)
    product = gpu_product(snapshot, gpu) if gpu and row.code == "nvlink-inactive" else None
    if product and product.bridged:
        return f"normal for a {product.name} without a bridge"
    usable = gpu is not None and gpu.failure is None and snapshot.origin != "dumps"
    return "the driver uses the GPU now" if usable and row.code in _STATES else None


def _may_lack_bridge(snapshot: Snapshot, event: Event, row: Message, subject: str) -> bool:
    """Whether a GPU of an unknown product has all its links down, from the first one on: cards without a bridge have.

    The lines of one GPU are one event, with the number of the last link.
    """
    gpu = gpu_at(snapshot, subject) or snapshot.of(Gpu).get(subject)
    if row.code != "nvlink-inactive" or snapshot.origin != "dumps" or (gpu and gpu_product(snapshot, gpu)):
        return False
    link, count = _values(event).get("link", ""), event.count or 1
    own = [one for one in snapshot.of(GpuLink).values() if one.gpu == subject and one.kind == "nvlink"]
    first = {f"{subject}/nvlink{number}" for number in range(len(own))}
    alike = len(own) > 1 and not any(one.active for one in own) and {one.key for one in own} == first
    return alike or (link.isdecimal() and count > 1 and count == int(link) + 1)


@cache
def _enders(name: str, others: frozenset[str]) -> frozenset[str]:
    return frozenset(other for other in others if name in message(other).clears)


def _cleared(snapshot: Snapshot, event: Event) -> str | None:
    """Why a later message ends this one. None: no message does."""
    others = events(snapshot, _KIND)
    enders = _enders(event.name or "", frozenset(one.name or "" for one in others))
    later = (one for one in others if one.name in enders and one.subject == event.subject and is_later(one, event))
    found = next((one for one in later if _values(one).get("bar") == _values(event).get("bar")), None)
    return f"later, the log says: {message(found.name or '').meaning.format_map(_values(found))}" if found else None


def _finding(snapshot: Snapshot, found: Sequence[_Logged]) -> Finding:
    """One finding for all messages about one cause. The first of the most severe messages gives the text."""
    first = found[0]
    same = [one.event for one in found if _is_same(one, first)]
    worst = (one for one in found if one.severity == first.severity and not _is_same(one, first))
    others = list(dict.fromkeys(one.says for one in worst if one.says != first.says))
    function = snapshot.of(Pci).get(first.subject)
    name = function_name(snapshot, function) if function else None
    also = f"; also: {'; '.join(others[:2])}" if others else ""
    also += f"; and {len(others) - 2} more messages" if len(others) > 2 else ""
    said = is_said(first.row.name)
    of = "" if first.subject == "node" else f" of {name or first.subject}"
    says = "the text says that " if said else f"the log says{of}: "
    return Finding(
        code=first.code,
        kind="event",
        severity=first.severity,
        confidence="likely" if said or first.row.severity == "info" or _may_end(first.row) else "certain",
        subject=first.subject,
        subject_name=name,
        message=f"{says}{first.says}{times(same)}{also}" + (f" ({first.past})" if first.past else ""),
        since=since(first.event),
        case=UNEXPLAINED if is_unexplained(first.row.name) else None,
        observed=max(_count(one) for one in same),
        unit="count",
        expected_source=first.row.source,
        location=location(function, snapshot) if function else {},
        evidence=tuple(dict.fromkeys(event_evidence(one.event) for one in found)),
        remedy=first.row.action,
    )


def _is_same(one: _Logged, first: _Logged) -> bool:
    """Whether both messages are counted together. A row about numbered errors matches errors of different numbers."""
    return one.row is first.row and (not any(name in one.row.meaning for name in _NUMBERS) or one.says == first.says)


def _may_end(row: Message) -> bool:
    """Whether a later line that is not in the text may end the fault."""
    return row.severity_of_many is not None


def with_messages(snapshot: Snapshot, states: Sequence[Finding], logged: Iterable[Finding]) -> list[Finding]:
    """The findings of all rules, with one finding for a message and a state of the same code and subject.

    A message that names no subject is about the first finding with its code. A line in unknown words adds nothing to a
    finding, and it is no symptom beside a fault that has a name.
    """
    messages = list(logged)
    named = any(one.severity != "info" for one in (*states, *messages))
    kept = [one for one in states if not (named and one.case == _WARNING)]
    found = list(kept)
    for one in messages:
        same = (place for place, other in enumerate(kept) if other.code == one.code and _meets(snapshot, one, other))
        place = next(same, None)
        if one.case == UNEXPLAINED and (place is not None or (named and one.code == NOT_ENOUGH_EVIDENCE)):
            continue
        if place is None:
            found.append(one)
        else:
            found[place] = _both(found[place], one)
    return found


def _meets(snapshot: Snapshot, logged: Finding, state: Finding) -> bool:
    names = [snapshot.topology.find(one.subject) or one.subject for one in (logged, state)]
    return logged.subject == "node" or names[0] == names[1]


def _both(state: Finding, logged: Finding) -> Finding:
    """The more severe of two findings, with the text and the lines of the other one."""
    first, second = (
        (state, logged) if SEVERITIES.index(state.severity) <= SEVERITIES.index(logged.severity) else (logged, state)
    )
    evidence = tuple(dict.fromkeys((*first.evidence, *second.evidence)))
    return replace(first, message=f"{first.message}; {second.message}", evidence=evidence)


def _any_counts(snapshot: Snapshot, node: Node) -> bool:
    """Whether the log has a message that means something without others: each driver prints its version."""
    names = {event.name for event in events(snapshot, _KIND)}
    return any(_counts(message(name or ""), names) for name in names)


RULES = (Rule(NOT_ENOUGH_EVIDENCE, Node, (), reported, _any_counts),)
