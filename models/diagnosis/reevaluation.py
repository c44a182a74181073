"""Reevaluation: what prevents the evaluation of a finding, so that its absence from a report does not mean repair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from ..facts.gpu import Gpu, GpuLink
from ..facts.health import DiskHealth
from ..facts.machine import Array, Disk, Net, Node, Numa, Nvme, Package, Pci, Port, Rdma
from ..facts.records import Fact
from ..facts.states import STATES
from ..inventory.present import is_complete
from ..inventory.snapshot import Snapshot
from ..report import Finding, Report
from ..rules import RULES, Rule

# Codes whose rules evaluate absent devices, with the help of the inventory.
_ABSENCE = frozenset({"gpu-missing", "nic-missing", "storage-missing", "nvswitch-error"})
# The fields that a driver can stop to report, by kind of fact: states, and counters that rules read as states.
_STATES: Mapping[type[Fact], frozenset[str]] = {
    **{kind: frozenset(fields) for kind, fields in STATES.items()},
    Gpu: frozenset({*STATES[Gpu], "ecc_corrected", "ecc_uncorrected", "recovery"}),
}
# Facts about hardware and arrays. One of these that is absent was removed or lost, which repairs nothing.
_HARDWARE = (Pci, Gpu, GpuLink, Rdma, Port, Net, Nvme, Disk, DiskHealth, Array, Package, Numa)


def obstacles(snapshot: Snapshot, report: Report, finding: Finding) -> tuple[str, ...]:
    """Why rules of this code could not be evaluated for this subject. Empty: all of them were evaluated.

    A finding can be present with obstacles: another rule of the same code found it.
    """
    if finding.kind == "measurement":
        return _unmeasured(report, finding)
    names = _names(snapshot, finding.subject)
    rules = _rules().get(finding.code, ())
    reasons = [why for rule in rules for why in _not_evaluated(snapshot, report, rule, names)]
    return tuple(dict.fromkeys((*reasons, *_absent(snapshot, rules, finding.subject, names))))


def unreported(snapshot: Snapshot, finding: Finding) -> tuple[str, ...]:
    """The states of the device that rules of this code read and that no source reports, without a reason.

    A driver can answer "not supported" for a value that it had before. A device of an older model never had it.
    """
    names, rules = _names(snapshot, finding.subject), _rules().get(finding.code, ())
    found = (
        f"{name} of {fact.key} is not reported any more"
        for rule in rules
        if rule.over is not Node
        for fact in _facts(snapshot, rule, names)
        for name in (*rule.required, *rule.optional)
        if name in _STATES.get(rule.over, ()) and getattr(fact, name) is None
    )
    return tuple(dict.fromkeys(found))


@cache
def _rules() -> Mapping[str, tuple[Rule, ...]]:
    return {code: tuple(rule for rule in RULES if rule.code == code) for code in {rule.code for rule in RULES}}


def _not_evaluated(snapshot: Snapshot, report: Report, rule: Rule, names: frozenset[str]) -> Iterator[str]:
    """Why the rule was not evaluated for the device with these names."""
    for one in report.not_checked:
        everything = one.subject == "node" or rule.over is Node
        if one.what in rule.wanted | rule.foreign | rule.helpful and (everything or one.subject in names):
            yield one.why
    for fact in _facts(snapshot, rule, names):
        missing = [name for name in rule.required if getattr(fact, name) is None]
        if missing and rule.where(snapshot, fact):
            yield f"{', '.join(missing)} of {fact.key} could not be read"


def _absent(snapshot: Snapshot, rules: tuple[Rule, ...], subject: str, names: frozenset[str]) -> tuple[str, ...]:
    """That the device is absent, if the rules are about hardware and none of them has found the device."""
    hardware = subject != "node" and any(rule.over in _HARDWARE for rule in rules)
    if rules and rules[0].code in _ABSENCE and _accepted_as_absent(snapshot, subject):
        return ()
    own = (rule for rule in rules if rule.over is not Node)
    known = snapshot.topology.find(subject) or any(_facts(snapshot, rule, names) for rule in own)
    return (f"{subject} is absent",) if hardware and not known else ()


def _accepted_as_absent(snapshot: Snapshot, subject: str) -> bool:
    """Whether the present inventory does not have the device, because an operator accepted the node without it."""
    return snapshot.inventory is not None and is_complete(snapshot) and snapshot.inventory.find(subject) is None


def _facts(snapshot: Snapshot, rule: Rule, names: frozenset[str]) -> list[Fact]:
    """The facts that the rule reads about the device with these names."""
    return [fact for fact in snapshot.of(rule.over).values() if rule.over is Node or _is_about(fact, names)]


def _is_about(fact: Fact, names: frozenset[str]) -> bool:
    return fact.key in names or fact.key.partition("/")[0] in names or getattr(fact, "address", None) in names


def _names(snapshot: Snapshot, subject: str) -> frozenset[str]:
    """All names of the device."""
    device = snapshot.topology.find(subject)
    names = {subject, *((device.id, *device.aliases) if device else ())}
    gpus = [gpu for gpu in snapshot.of(Gpu).values() if gpu.key in names or gpu.address in names]
    return frozenset({*names, *(gpu.key for gpu in gpus), *(gpu.address for gpu in gpus if gpu.address)})


def _unmeasured(report: Report, finding: Finding) -> tuple[str, ...]:
    """That no flow of the finding was measured."""
    flows = {finding.subject, *(name.partition(":")[2] for name in finding.explains)}
    measured = any(level.observed is not None and level.flow.subject in flows for level in report.levels)
    return () if measured else ("it was not measured again",)
