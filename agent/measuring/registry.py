"""The registry of probes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from ...probes.calls.targets import load

if TYPE_CHECKING:
    from ...probes.measure.probe import Plan

# The names are those of --only, --skip, captures and metrics. "module:function" plans the
# probe; the module is relative to linkgauge.probes. The most useful probe is first: the budget may end before the list.
PROBES: Mapping[str, str] = {
    "host_copy": "measure.gpu.host_copy:plan",
    "peer_copy": "measure.gpu.peer_copy:plan",
    "device_memory": "measure.gpu.device_memory:plan",
    "host_memory": "measure.memory.host_memory:plan",
    "port_loopback": "measure.network.port_loopback:plan",
    "collective": "measure.gpu.collective:plan",
    "disk_read": "measure.disk.disk_read:plan",
}
# Probes that measure their flows in turns, as many rounds as wanted (copy_plan.py).
REPEATABLE: Collection[str] = ("host_copy", "peer_copy")


def plan_of(name: str) -> Plan:
    """The function that plans a probe. Its module is imported here, so that commands that only read do not load it."""
    plan: Plan = load(PROBES[name])
    return plan
