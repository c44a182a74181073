"""The gate of a node: what keeps jobs away from it, and the brakes that keep it from being closed wrongly."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Annotated, Literal, NamedTuple

import msgspec

from ..report import Finding

DISABLED = "/etc/linkgauge/gate.disabled"
# Without a list of the site's own: states that are read, do not mend themselves, and cost every job on the node.
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
    """The table `[gate]` of the site file. As it ships it closes nothing, and says what it would close for."""

    enforce: bool = False
    codes: tuple[Annotated[str, msgspec.Meta(min_length=1)], ...] | None = None
    max_drained: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.02  # share of all nodes that may be drained by us
    unknown: Literal["allow", "block"] = "allow"  # where nobody knows how the node is
    disable_file: Annotated[str, msgspec.Meta(pattern="^/")] = DISABLED  # while it is there every gate is open

    def __post_init__(self) -> None:
        if self.enforce and self.codes is None:
            raise ValueError("enforce = true without codes: name those for which a node may be drained")


class Cause(NamedTuple):
    """What closes a gate, or would."""

    code: str
    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.code} {self.subject}"


def causes(findings: Iterable[Finding], gate: Gate) -> Iterator[Cause]:
    """The findings for which the gate closes: of a code that is listed, certain, neither silenced nor mere information.

    In the order of the findings, the gravest first; of several about the same the first.
    """
    listed = USUAL if gate.codes is None else gate.codes
    told: set[tuple[str, str]] = set()
    for one in findings:
        counts = one.confidence == "certain" and one.severity != "info" and one.silenced is None
        if one.code in listed and counts and (one.code, one.subject) not in told:
            told.add((one.code, one.subject))
            yield Cause(one.code, one.subject, one.message)


def has_room(name: str, drained: Collection[str], asking: Collection[str], nodes: int, gate: Gate) -> bool:
    """Whether the node may be drained too: the share of those before it is below `max_drained`.

    `drained` are the nodes that we have drained, `asking` those that want to be: they come in the order of their names,
    so that all of them reach the same answer by themselves.
    """
    before = {*drained} - {name}
    ahead = [one for one in {*asking} - before if one < name]
    return nodes > 0 and (len(before) + len(ahead)) / nodes < gate.max_drained
