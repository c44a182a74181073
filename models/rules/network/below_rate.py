"""Ports in dumps that run far below the rate of their chip, if nothing else in the text says why; and tests that reach
far less than the rate of their port.

Cards of one chip have several rates, and a port can be cabled to a slower switch. So it is a gap, never a finding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ...facts.machine import Node, Port, Rdma
from ...facts.reason import Reason
from ...facts.records import Flow, NotChecked, Observation
from ...facts.units import as_gigabits, from_gigabits
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.rule import Rule
from ..core.wording import cited, gap, titled
from .port_claims import rate_claim
from .ports import function_of, up

# Gb/s of the fastest port with this chip, by its number in hca_type (MT4129) and in the PCI ids (0x1021): user manuals
# of the adapters (docs.nvidia.com/networking, Specifications).
_RATES: Mapping[int, tuple[str, int]] = {
    4115: ("ConnectX-4", 100),
    4119: ("ConnectX-5", 100),
    4121: ("ConnectX-5 Ex", 100),
    4123: ("ConnectX-6", 200),
    4129: ("ConnectX-7", 400),
    4131: ("ConnectX-8", 800),
    41692: ("BlueField-3", 400),
}
_FABRIC_ONLY = 4129  # older chips are on many Ethernet cards of 10 and 25 Gb/s
_HALF = 0.5  # cards of half the rate are common, ConnectX-7 of 200 Gb/s: the text does not say which card it is
_LARGE = 1 << 16  # bytes of a message that fills a link
_HOW = "ibstat of an equal node; mlxlink -d DEVICE -m -e (the rates of the port, of the cable and of the other end)"


def _chip(snapshot: Snapshot, port: Port) -> tuple[str, int] | None:
    adapter, function = snapshot.of(Rdma).get(port.device or port.key.partition("/")[0]), function_of(snapshot, port)
    named = re.fullmatch(r"MT(\d{4,5})", (adapter and adapter.hca_type) or "")
    number = int(named[1]) if named else function.device if function and not function.physfn else None
    if number is None or (port.link_layer != "InfiniBand" and number < _FABRIC_ONLY):
        return None
    return _RATES.get(number)


def is_unsupported(snapshot: Snapshot, port: Port) -> bool:
    """Select ports of dumps that are up, on a known chip, and without equal ports or a machine type to compare with."""
    node = snapshot.of(Node).get("node")
    guest = bool(node and node.virtual)  # a hypervisor can limit the rate
    if snapshot.origin != "dumps" or guest or up(port) is False or _chip(snapshot, port) is None:
        return False
    claim = rate_claim(snapshot, port)
    return claim is None or not claim.supports


def below(snapshot: Snapshot, port: Port) -> Iterator[NotChecked]:
    """A gap for a port at half of the rate of its chip, or below."""
    chip = _chip(snapshot, port)
    if chip and port.rate and port.rate <= _HALF * from_gigabits(chip[1]):
        most = as_gigabits(from_gigabits(chip[1]))
        why = f"{titled(port)} runs at {as_gigabits(port.rate)}; ports with a {chip[0]} have up to {most}"
        yield from gap(snapshot, "Port.rate", port.key, Reason.INCOMPLETE, why, _HOW)


def is_tested(snapshot: Snapshot, port: Port) -> bool:
    """Select ports without a known place over which a test ran."""
    return function_of(snapshot, port) is None and any(_is_of(one, port) for one in snapshot.observations)


def below_rate(snapshot: Snapshot, port: Port) -> Iterator[Finding]:
    """A test of the port's RDMA device with large messages reaches less than half of the port's rate."""
    measured = [one for one in snapshot.observations if _is_of(one, port)]
    best = max(measured, key=lambda one: one.value, default=None)
    if best is None or port.rate is None or best.value >= _HALF * port.rate:
        return
    yield Finding(
        code="bandwidth-low",
        severity="warning",
        confidence="possible",
        subject=port.key,
        message=f"a test over {port.key} reaches {as_gigabits(best.value)}; the port runs at {as_gigabits(port.rate)}",
        expected=port.rate,
        observed=best.value,
        unit="bytes_per_second",
        basis="capability",
        expected_source="the rate of the port",
        cause="the PCIe link of the adapter, memory of another NUMA node, a single queue pair, or losses on the way",
        evidence=(best.evidence, *cited(port, "rate")),
    )


def _is_of(one: Observation, port: Port) -> bool:
    flow = one.about
    if not isinstance(flow, Flow) or one.quantity != "rate" or port.key not in flow.ends:
        return False
    return flow.op in ("write", "read", "send") and (flow.size or 0) >= _LARGE and not flow.beside


RULES = (
    Rule("nic-rate-low", Port, ("rate",), below, is_unsupported),
    Rule("bandwidth-low", Port, ("rate",), below_rate, is_tested),
)
