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
from ...inventory.cohorts import ports_above
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.rule import Rule
from ..core.wording import cited, function_name
from .pcie import is_switch

_FAULTY = 8  # a device below the switch is this many times as fast as the uplink


def is_fault(snapshot: Snapshot, function: Pci) -> bool:
    """Select upstream ports whose link only the function above describes, and which are far too slow.

    A faster one shows no health, as the files hold no trained link.
    """
    if snapshot.origin != "dumps" or function.max_speed is not None or not is_switch(snapshot, function):
        return False
    uplink, fastest = snapshot.topology.link_below.get(function.key), _fastest_below(snapshot, function)
    own, most = uplink and uplink.rated, fastest and fastest.rated
    return bool(own and most and own * _FAULTY <= most)


def _fastest_below(snapshot: Snapshot, function: Pci) -> Link | None:
    links = snapshot.topology.link_below
    below = (links[key] for key, above in ports_above(snapshot).items() if key in links and function.key in above)
    return max((link for link in below if link.rated), key=lambda link: link.rated or 0.0, default=None)


def slow_uplink(snapshot: Snapshot, function: Pci) -> Iterator[Finding]:
    """The uplink has far less than the link of a device below the switch."""
    uplink, fastest = snapshot.topology.link_below[function.key], _fastest_below(snapshot, function)
    if fastest is None or not fastest.rated or not uplink.rated:
        return
    own, most, above = uplink.rated, fastest.rated, snapshot.of(Pci)[uplink.a]
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
