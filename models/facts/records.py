"""What a source says: facts, observations, what it could not say, and how long it took. One stream, as it comes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from .reason import Reason


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where something stood, and the text that stood there."""

    source: str  # "sys/bus/pci/devices/0000:53:00.0/current_link_width", "all_reduce.txt:41", a call
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """What one source said of one thing; None where it did not say.

    Facts of one type and key are merged field by field (merge.py). The kinds are in facts.py.
    """

    key: str  # the kernel's or the tool's own name
    cites: Mapping[str, Evidence] = field(default_factory=dict)  # field -> where it stood


# Operations in which every end sends and receives; "-nvls" is reduced in the NVSwitches.
COLLECTIVES = frozenset(
    {
        "all_reduce",
        "all_reduce-nvls",
        "all_gather",
        "reduce_scatter",
        "alltoall",
        "broadcast",
        "reduce",
        "gather",
        "scatter",
        "collective",
    }
)
EGRESS = "egress"  # from all ends at once to the NICs that are nearest to each
LOOPBACK = "loopback"  # from a memory to a NIC and back: it proves the adapter and its PCIe links, not the cable
SOCKETS = frozenset({"tcp", "udp"})  # through the kernel's network stack: processors hold them as often as links


@dataclass(frozen=True, slots=True)
class Flow:
    """Bytes that move: what a rate is about. Equal flows can be compared, others cannot."""

    op: str  # copy, copy-sm, read, triad, all_reduce ...
    ends: tuple[str, ...]  # sender and receiver; every rank; one memory
    size: int | None = None  # bytes of one message; None: long enough to reach the rate
    via: str = ""  # nvlink, pcie, host, net: where more than one way is possible
    beside: tuple[tuple[str, ...], ...] = ()  # ends of the flows that ran at the same moment

    @property
    def subject(self) -> str:
        """The name of the flow in a finding: "gpu0-gpu3", "numa1"; long lists of ranks as "rank0-...-rank7"."""
        if len(self.ends) > 4:
            return f"{self.ends[0]}-...-{self.ends[-1]}"
        return "-".join(self.ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A number that held at a moment: a rate, a counter, a trained speed. Never merged: observations are a series."""

    about: Flow | str  # a flow, or the key of a fact
    quantity: str  # rate, bus_bandwidth, link_speed, aer_correctable ...
    unit: str  # bytes_per_second, transfers_per_second, count
    value: float
    at: float  # seconds since 1970
    busy: bool | None = None  # bytes were moving over it
    evidence: Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class NotChecked:
    """Something that should have been read and was not: never a finding, never silence."""

    what: str  # a kind of fact or a field of it: "Pci", "Pci.width"
    subject: str  # the key of the thing, or "node"
    reason: Reason
    detail: str  # the sentence, without the path
    path: str | None = None  # the file, the call or the tool that refused
    how: str | None = None  # what would bring it back

    @property
    def why(self) -> str:
        """The whole sentence, as reports show it."""
        return f"{self.path}: {self.detail}" if self.path else self.detail


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A source that was asked once."""

    name: str
    ok: bool
    seconds: float
    bytes: int = 0  # moved by a probe
    at: float  # seconds since 1970, when it began


Record: TypeAlias = Fact | Observation | NotChecked | Run
