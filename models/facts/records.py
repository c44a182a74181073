"""Records that a source yields: facts, observations, failed reads (NotChecked), and the run itself. One stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct, field

from .reason import Reason


class Evidence(Struct, frozen=True):
    """A quoted text and the place where it was read."""

    source: str  # "sys/bus/pci/devices/0000:53:00.0/current_link_width", "all_reduce.txt:41", or a call
    text: str


class Fact(Struct, frozen=True, kw_only=True):
    """Values that one source reads of one thing. None: the source does not know the value.

    Facts of one type and key are merged field by field (merge.py). machine.py and gpu.py define the types.
    """

    key: str  # the name that the kernel or the tool uses
    cites: Mapping[str, Evidence] = field(default_factory=dict)  # field -> where it was read


# Operations in which every end sends and receives. For "-nvls" the NVSwitches reduce the data.
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
EGRESS = "egress"  # from all ends at once to the NICs nearest to each
LOOPBACK = "loopback"  # from a memory to a NIC and back: tests the adapter and its PCIe links, not the cable
SOCKETS = frozenset({"tcp", "udp"})  # through the kernel's network stack; the CPU limits them as often as the link


class Flow(Struct, frozen=True):
    """A data transfer, the subject of a rate. Only equal flows can be compared."""

    op: str  # copy, copy-sm, read, triad, all_reduce ...
    ends: tuple[str, ...]  # sender and receiver; every rank; one memory
    size: int | None = None  # bytes of one message; None: long enough to reach the rate
    via: str = ""  # nvlink, pcie, host, net: if more than one path is possible
    beside: tuple[tuple[str, ...], ...] = ()  # ends of the flows that ran at the same time

    @property
    def subject(self) -> str:
        """The name of the flow in a finding: "gpu0-gpu3", "numa1"; a long list of ranks is "rank0-...-rank7"."""
        if len(self.ends) > 4:
            return f"{self.ends[0]}-...-{self.ends[-1]}"
        return "-".join(self.ends)


class Observation(Struct, frozen=True, kw_only=True):
    """A number at a point in time: a rate, a counter, a trained speed. Observations are never merged: they form a
    series.
    """

    about: Flow | str  # a flow, or the key of a fact
    quantity: str  # rate, bus_bandwidth, link_speed, aer_correctable ...
    unit: str  # bytes_per_second, transfers_per_second, count
    value: float
    at: float  # seconds since 1970
    busy: bool | None = None  # data was moving over the link
    evidence: Evidence


class NotChecked(Struct, frozen=True, kw_only=True):
    """Something that should have been read and could not be. It is no finding, and it is always reported."""

    what: str  # a kind of fact or a field of it: "Pci", "Pci.width"
    subject: str  # the key of the device, or "node"
    reason: Reason
    detail: str  # the reason as a sentence, without the path
    path: str | None = None  # the file, the call or the tool that refused
    how: str | None = None  # how to make the value readable

    @property
    def why(self) -> str:
        """The complete sentence that reports show."""
        return f"{self.path}: {self.detail}" if self.path else self.detail


class Run(Struct, frozen=True, kw_only=True):
    """One run of a source."""

    name: str
    ok: bool
    seconds: float
    bytes: int = 0  # that a probe moved
    at: float  # start, seconds since 1970


Record: TypeAlias = Fact | Observation | NotChecked | Run
