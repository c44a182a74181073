"""The gate of a node: which findings keep jobs away, and the limits that prevent wrong drains."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Annotated, Literal, NamedTuple

import msgspec

from ..report import Finding

DISABLED = "/etc/linkgauge/gate.disabled"
# The default list: states that are read, do not clear themselves, and affect every job on the node.
USUAL = (
    "gpu-missing",
    "gpu-driver-failed",
    "gpu-row-remap",
    "pcie-link-narrow",
    "nvlink-inactive",
    "nvlink-fabric-incomplete",
    "nic-missing",
    "nic-port-down",
)


class Gate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The table `[gate]` of the site file. By default it closes nothing and only reports what it would close for."""

    enforce: bool = False
    codes: tuple[Annotated[str, msgspec.Meta(min_length=1)], ...] | None = None
    max_drained: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.02  # share of all nodes that linkgauge may drain
    unknown: Literal["allow", "block"] = "allow"  # if the state of the node is unknown
    disable_file: Annotated[str, msgspec.Meta(pattern="^/")] = DISABLED  # while this file exists, every gate is open

    def __post_init__(self) -> None:
        if self.enforce and self.codes is None:
            raise ValueError("enforce = true without codes: name those for which a node may be drained")


class Cause(NamedTuple):
    """A reason to close the gate."""

    code: str
    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.code} {self.subject}"


def causes(findings: Iterable[Finding], gate: Gate) -> Iterator[Cause]:
    """The findings that close the gate: listed code, confidence certain, not ignored, not info.

    In the order of the findings, most severe first. Of several findings with the same code and subject, only the first.
    """
    listed = USUAL if gate.codes is None else gate.codes
    done: set[tuple[str, str]] = set()
    for one in findings:
        counts = one.confidence == "certain" and one.severity != "info" and one.silenced is None
        if one.code in listed and counts and (one.code, one.subject) not in done:
            done.add((one.code, one.subject))
            yield Cause(one.code, one.subject, one.message)


def has_room(name: str, drained: Collection[str], asking: Collection[str], nodes: int, gate: Gate) -> bool:
    """Whether the node may be drained too: the share of nodes before it is below `max_drained`.

    `drained` are the nodes that linkgauge has drained. `asking` are the nodes that request a drain, in the order of
    their names, so that all nodes compute the same result.
    """
    before = {*drained} - {name}
    ahead = [one for one in {*asking} - before if one < name]
    return nodes > 0 and (len(before) + len(ahead)) / nodes < gate.max_drained
