"""Uplinks of switches in the topology files of NCCL, which have the speed and width of a link above its function.

The files do not say whether the numbers are of a healthy machine. Older switches halve the rate of newer devices below
them, and the emulated switches of AWS p5 have a quarter. An eighth or less is no design: the link is at fault, or the
file is not of this machine. NCCL sends no faster than the file says (NVIDIA/nccl src/graph/topo.cc), so it costs the
job in both cases.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.machine import Pci
from ...facts.units import as_gigabytes, as_transfers
from ...graph.topology import Link
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.rule import Rule
from ..core.wording import cited, function_name
from .pcie import fastest_below, is_switch

_FAULTY = 8  # a device below the switch is this many times as fast as the uplink


def is_fault(snapshot: Snapshot, function: Pci) -> bool:
    """Select upstream ports whose link only the function above describes, and which are far too slow.

    A faster one shows no health, as the files hold no trained link.
    """
    both = _both(snapshot, function) if snapshot.origin == "dumps" and function.max_speed is None else None
    return both is not None and is_switch(snapshot, function) and _rate(both[0]) * _FAULTY <= _rate(both[1])


def _both(snapshot: Snapshot, function: Pci) -> tuple[Link, Link] | None:
    """The uplink, and the fastest link below it. None: the rated rate of one is not known."""
    uplink, fastest = snapshot.topology.link_below.get(function.key), fastest_below(snapshot, function)
    return (uplink, fastest) if uplink and uplink.rated and fastest else None


def _rate(link: Link) -> float:
    return link.rated or 0.0


def slow_uplink(snapshot: Snapshot, function: Pci) -> Iterator[Finding]:
    """The uplink has far less than the link of a device below the switch."""
    both = _both(snapshot, function)
    if both is None:
        return
    uplink, fastest = both
    own, most, above = _rate(uplink), _rate(fastest), snapshot.of(Pci)[uplink.a]
    yield Finding(
        code="pcie-path-bottleneck",
        severity="critical",
        confidence="likely",
        subject=function.key,
        subject_name=function_name(snapshot, function),
        fact=f"carries {as_gigabytes(own)}, less than the {as_gigabytes(most)} of a link below it",
        message=f"the topology file gives the switch's uplink {as_gigabytes(own)} "
        f"({as_transfers(above.max_speed or 0.0)} x{above.max_width}), and the link of {fastest.b} below it "
        f"{as_gigabytes(most)}",
        expected=most,
        observed=own,
        unit="bytes_per_second",
        basis="capability",
        expected_source=f"link {fastest.id}",
        cause="the link is at fault, or the file (NCCL_TOPO_FILE) is not of this machine: NCCL then chooses slow paths",
        limits={uplink.id: own},
        evidence=cited(above, "max_speed", "max_width"),
    )


RULES = (Rule("pcie-path-bottleneck", Pci, ("pci_class",), slow_uplink, is_fault),)
