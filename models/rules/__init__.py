"""The one table of rules: what is judged, over which things, from which fields."""

from __future__ import annotations

from . import (
    acs,
    bus_events,
    congestion,
    cuda,
    device_events,
    diagnosis,
    events,
    fabric,
    gid,
    gpu_clocks,
    gpu_driver,
    gpu_memory,
    gpu_missing,
    gpu_pcie,
    gpu_state,
    gpu_window,
    host,
    host_counters,
    job,
    lost,
    mounts,
    mtu,
    nccl,
    nccl_version,
    nic,
    nic_place,
    node_pairs,
    nvlink,
    nvlink_errors,
    nvswitch,
    one_end,
    pcie,
    peers,
    places,
    settings,
    storage,
)  # fmt: skip
from .rule import Rule

RULES: tuple[Rule, ...] = (
    *pcie.RULES, *one_end.RULES, *lost.RULES,
    *gpu_missing.RULES, *gpu_driver.RULES, *events.RULES, *gpu_memory.RULES, *gpu_clocks.RULES, *gpu_state.RULES,
    *gpu_pcie.RULES, *gpu_window.RULES,
    *nvlink.RULES, *nvlink_errors.RULES, *fabric.RULES, *nvswitch.RULES, *peers.RULES,
    *nic.RULES, *nic_place.RULES, *gid.RULES, *mtu.RULES, *congestion.RULES, *cuda.RULES,
    *places.RULES, *host.RULES, *storage.RULES, *mounts.RULES,
    *acs.RULES, *settings.RULES, *host_counters.RULES, *job.RULES, *nccl.RULES, *nccl_version.RULES, *node_pairs.RULES,
    *bus_events.RULES, *device_events.RULES, *diagnosis.RULES,
)  # fmt: skip

__all__ = ["RULES", "Rule"]
