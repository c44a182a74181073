"""The steps of a repair that fit a finding: selected by conditions, with the names of this node filled in.

codes.toml has the steps and the conditions of each. A condition is True, False, or None if the value was not read. A
step is left out only if a value that was read contradicts it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from msgspec.structs import replace

from ..catalog import Step, codes
from ..facts.gpu import Driver, Gpu
from ..facts.machine import OWN_SERVICE, Array, Net, Port, Rdma, Service
from ..inventory.device_names import address_of
from ..inventory.snapshot import Snapshot
from ..report import Finding
from ..rules.gpu.state import wanted_modes
from ..rules.nccl.version import repair
from ..rules.pcie.acs import names_of_ports
from .conditions import CONDITIONS, gpu_of

Holds: TypeAlias = Callable[[str], "bool | None"]
Names: TypeAlias = Mapping[str, str]
SEVERAL = "several"
_SEVERAL = 3  # devices with the same fault: a common cause is likelier than as many broken devices
_CASE, _NO_CASE, _OTHERWISE = "case ", "none", "in other cases"
_RELEASE = "Let the linkgauge service close the GPU driver: sudo linkgauge release."
_GPU_RESET = re.compile(r"--gpu-reset|\breset (?:the|all) GPUs?\b", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_BETWEEN = re.compile(r"(?<=[.]) (?=[A-Z])|; (?=if )")
_NOTHING = "Nothing"
_SHORT = 60  # characters of a first step that has no short form


def with_remedies(snapshot: Snapshot, findings: Sequence[Finding]) -> Iterator[Finding]:
    """The findings with their steps. They must be complete: the same fault on several devices has other steps."""
    subjects: dict[str, set[str]] = defaultdict(set)
    for one in findings:
        if one.severity != "info":
            subjects[one.code].add(one.subject)
    for one in findings:
        yield _with_remedy(snapshot, one, len(subjects[one.code]) >= _SEVERAL and one.subject in subjects[one.code])


def _with_remedy(snapshot: Snapshot, finding: Finding, several: bool) -> Finding:
    names = _names(snapshot, finding)
    if finding.remedy:
        rows = [Step(do=text) for text in _sentences(finding.remedy)]
    else:
        rows = list(select(codes()[finding.code].fix, partial(_holds, snapshot, finding, several), names))
    steps = [filled(row.do, names) for row in rows]
    first = filled(_first_step(rows), names)
    if _own_service_runs(snapshot) and not steps[0].startswith(_NOTHING) and any(map(_GPU_RESET.search, steps)):
        steps = [_RELEASE, *steps]  # the driver resets no GPU that a process has open
    return replace(finding, steps=tuple(steps), remedy=" ".join(steps), first_step=first)


def select(steps: Iterable[Step], holds: Holds, names: Names) -> Iterator[Step]:
    """The steps that no known value contradicts, and whose names are known."""
    for step in steps:
        known = all(name in names for name in _PLACEHOLDER.findall(step.do))
        named = any(name in names for one in step.unless for name in _PLACEHOLDER.findall(one))
        unless = any(holds(one) for one in step.unless if not _PLACEHOLDER.search(one))
        if known and not named and not unless and all(holds(one) is not False for one in step.when):
            yield step


def _holds(snapshot: Snapshot, finding: Finding, several: bool, condition: str) -> bool | None:
    if condition == SEVERAL:
        return several
    if condition.startswith(_CASE):
        return (finding.case or _NO_CASE) == condition.removeprefix(_CASE)
    return CONDITIONS[condition].holds(snapshot, finding)


def _names(snapshot: Snapshot, finding: Finding) -> Names:
    """The names that this node has for the placeholders, as far as they are known."""
    address, gpu = address_of(snapshot, finding.subject), gpu_of(snapshot, finding)
    port = snapshot.of(Port).get(finding.subject)
    net = finding.subject if finding.subject in snapshot.of(Net) else port.netdev if port else None
    nic = port.device if port else finding.subject if finding.subject in snapshot.of(Rdma) else None
    array = finding.subject if finding.subject in snapshot.of(Array) else None
    known = {"address": address, "gpu": gpu and (gpu.address or gpu.key.removeprefix("gpu"))}
    known |= {"nic": nic, "netdev": net, "array": array, **_values(snapshot, finding)}
    if known["gpu"] is None and address in {one.key for one in snapshot.functions("gpu")}:
        known["gpu"] = address
    return {name: value for name, value in known.items() if value}


def _values(snapshot: Snapshot, finding: Finding) -> Mapping[str, str | None]:
    """The placeholders of a single code."""
    match finding.code:
        case "pcie-acs-redirect":
            return {"ports": names_of_ports(snapshot)}
        case "gpu-clocks-limited":
            gpu = gpu_of(snapshot, finding)
            limits = {one.power_limit_default for one in ([gpu] if gpu else snapshot.of(Gpu).values())}
            watts = limits.pop() if len(limits) == 1 else None
            return {"watts": f"{watts:.0f}" if watts else None}
        case "gpu-mode":
            gpu = gpu_of(snapshot, finding)
            return wanted_modes(snapshot, gpu) if gpu else {}
        case "driver-mismatch":
            driver = snapshot.of(Driver).get("nvidia")
            return {"driver": driver.version if driver else None}
        case "nccl-version":
            return dict(zip(("nccl", "variables"), repair(snapshot), strict=True))
    return {}


def _sentences(text: str) -> list[str]:
    """The steps of a remedy that a rule gives as one text. A command at the beginning keeps its lower case."""
    parts = [f"I{one[1:]}" if one.startswith("if ") else one for one in _BETWEEN.split(text)]
    return [one + ("" if one.endswith(".") or one is parts[-1] else ".") for one in parts]


def filled(text: str, names: Names | None = None) -> str:
    """The text with names instead of placeholders; without names, with words for them: "GPU"."""
    return _PLACEHOLDER.sub(lambda found: (names or {}).get(found[1], found[1].upper()), text)


def _first_step(rows: Sequence[Step]) -> str:
    """The first step in few words, and the second one if both have a short form."""
    first = rows[0].short
    if first is None:
        text = rows[0].do.rstrip(".")
        whole = len(text) <= _SHORT and not text.startswith(_NOTHING)
        short = text if whole else re.split(r": |; |, (?=and )", text)[0]
        return short if short[:2].isupper() else short[:1].lower() + short[1:]
    second = rows[1].short if len(rows) > 1 else None
    return f"{first}, then {second}" if second and second != first else first


def _own_service_runs(snapshot: Snapshot) -> bool:
    service = snapshot.of(Service).get(OWN_SERVICE)
    return service is not None and bool(service.running)


def in_words(step: Step) -> str:
    """The step for readers without a finding, with its conditions in brackets."""
    hidden = ("guest", SEVERAL)
    when = [_OTHERWISE if name == _CASE + _NO_CASE else f"if {_condition(name)}" for name in step.when]
    named = (name for name in step.unless if name not in hidden and not _PLACEHOLDER.search(name))
    unless = [f"not if {_condition(name)}" for name in named]
    return filled(step.do) + (f" ({'; '.join([*when, *unless])})" if when or unless else "")


def _condition(name: str) -> str:
    if name == SEVERAL:
        return "several devices have the fault"
    return f'the case is "{name.removeprefix(_CASE)}"' if name.startswith(_CASE) else CONDITIONS[name].words
