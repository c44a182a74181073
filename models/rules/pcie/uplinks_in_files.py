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
from ...inventory.cohorts import ports_above
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.rule import Rule
from ..core.wording import cited, function_name
from .pcie import is_switch

_FAULTY = 8  # a device below the switch is this many times as fast as the uplink


def in_file(snapshot: Snapshot, function: Pci) -> bool:
    """Select upstream ports whose link only the function above describes."""
    link = snapshot.topology.link_below.get(function.key)
    known = link is not None and link.rated is not None and function.max_speed is None
    return known and snapshot.origin == "dumps" and is_switch(snapshot, function)


def slow_uplink(snapshot: Snapshot, function: Pci) -> Iterator[Finding]:
    """The uplink has less than the link of a device below the switch."""
    links = snapshot.topology.link_below
    uplink = links[function.key]
    below = [links[key] for key, above in ports_above(snapshot).items() if key in links and function.key in above]
    fastest = max((link for link in below if link.rated), key=lambda link: link.rated or 0.0, default=None)
    own, most = uplink.rated or 0.0, fastest.rated or 0.0 if fastest else 0.0
    if fastest is None or own >= most:
        return
    above = snapshot.of(Pci)[uplink.a]
    faulty = own * _FAULTY <= most
    yield Finding(
        code="pcie-path-bottleneck",
        severity="critical" if faulty else "info",
        confidence="likely",
        subject=function.key,
        subject_name=function_name(snapshot, function),
        fact=f"carries {as_gigabytes(own)}, less than the {as_gigabytes(most)} of a link below it",
        message=f"the topology file gives the switch's uplink {as_gigabytes(own)} "
        f"({as_transfers(above.max_speed or 0.0)} x{above.max_width}), and the link of {fastest.b} below it "
        f"{as_gigabytes(most)}" + ("" if faulty else "; built that way"),
        expected=most,
        observed=own,
        unit="bytes_per_second",
        basis="capability",
        expected_source=f"link {fastest.id}",
        case=None if faulty else "by design",
        cause="the link is at fault, or the file (NCCL_TOPO_FILE) is not of this machine: NCCL then chooses slow paths"
        if faulty
        else "the switch supports no more",
        limits={uplink.id: own},
        evidence=cited(above, "max_speed", "max_width"),
    )


RULES = (Rule("pcie-path-bottleneck", Pci, ("pci_class",), slow_uplink, in_file),)
