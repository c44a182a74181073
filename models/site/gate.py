"""The gate of a node: which findings keep jobs away, and the limits that prevent wrong drains."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Annotated, Literal, NamedTuple

import msgspec

from ..report import Finding

DISABLED = "/etc/linkgauge/gate.disabled"


class Gate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The table `[gate]` of the site file. By default it closes nothing and only reports what it would close for."""

    enforce: bool = False
    remediate: bool = False  # let NVSentinel cordon and drain the node for findings that close the gate
    codes: tuple[Annotated[str, msgspec.Meta(min_length=1)], ...] | None = None
    max_drained: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.02  # share of all nodes that linkgauge may drain
    unknown: Literal["allow", "block"] = "allow"  # if the state of the node is unknown
    disable_file: Annotated[str, msgspec.Meta(pattern="^/")] = DISABLED  # while this file exists, every gate is open

    def __post_init__(self) -> None:
        for name in ("enforce", "remediate"):
            if getattr(self, name) and self.codes is None:
                raise ValueError(f"{name} = true without codes: name those for which a node may be drained")


class Cause(NamedTuple):
    """A reason to close the gate."""

    code: str
    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.code} {self.subject}"


def causes(findings: Iterable[Finding], gate: Gate) -> Iterator[Cause]:
    """The findings that close the gate, most severe first. Of several with the same code and subject, the first.

    A finding that another finding explains closes it too. A stale finding closes it until it is evaluated again.
    """
    done: set[tuple[str, str]] = set()
    for one in findings:
        for code, subject in _counting(one, gate):
            if (code, subject) not in done:
                done.add((code, subject))
                yield Cause(code, subject, one.message)


def _counting(finding: Finding, gate: Gate) -> Iterator[tuple[str, str]]:
    """Code and subject of the finding and of those that it explains, as far as they close the gate."""
    if why_open(finding, gate) is None:
        yield finding.code, finding.subject
    if gate.codes is None or finding.silenced is not None or finding.severity == "info":
        return
    for name in finding.explains:
        code, _, subject = name.partition(":")
        if code in gate.codes and finding.confidence == "certain":
            yield code, subject


def why_open(finding: Finding, gate: Gate) -> str | None:
    """Why the finding does not close the gate, to follow "which". None: it closes the gate.

    Without a list, critical states that are certain close it. Events are over, and measurements are never certain.
    """
    if finding.silenced is not None:
        return "is silenced"
    if finding.severity == "info":
        return "is no fault"
    if gate.codes is not None and finding.code not in gate.codes:
        return "is not on the list"
    if finding.confidence != "certain":
        return f"is {finding.confidence}, not certain"
    if gate.codes is None and finding.severity != "critical":
        return "is not critical"
    if gate.codes is None and finding.kind != "state":
        article = "an" if finding.kind == "event" else "a"
        return f"is {article} {finding.kind}, not a state"
    return None


def has_room(name: str, drained: Collection[str], asking: Collection[str], nodes: int, gate: Gate) -> bool:
    """Whether the node may be drained too: the share of nodes before it is below `max_drained`.

    `drained` are the nodes that linkgauge has drained. `asking` are the nodes that request a drain, in the order of
    their names, so that all nodes compute the same result.
    """
    before = {*drained} - {name}
    ahead = [one for one in {*asking} - before if one < name]
    return nodes > 0 and (len(before) + len(ahead)) / nodes < gate.max_drained
