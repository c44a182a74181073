"""The table of all rules. A rule names the facts that it evaluates and the fields that it needs."""

from __future__ import annotations

from .core.claims import Claims
from .core.rule import Rule
from .gpu import (
    bar1,
    clocks,
    driver,
    driver_log,
    external_tests,
    gpu_claims,
    gpu_pcie,
    memory,
    missing,
    pcie_events,
    state,
    xid,
)
from .host import (
    counts,
    disk_events,
    firmware,
    host,
    host_counters,
    inventory,
    job_limits,
    log_messages,
    mounts,
    nvme_health,
    offline_cpus,
    placement,
    settings,
    storage,
)
from .nccl import nccl, version
from .network import (
    congestion,
    dumped_counters,
    gid,
    logged_events,
    mtu,
    nic,
    nic_affinity,
    node_pairs,
    optics,
    port_claims,
    port_counters,
)
from .nvlink import cuda_init, errors, fabric_manager, imex, nvlink, nvlink_claims, nvswitch, peer_access
from .pcie import acs, aer, below_evidence, emulated_tree, link_claims, not_responding, partial_dumps, pcie

RULES: tuple[Rule, ...] = (
    *pcie.RULES,
    *below_evidence.RULES,
    *aer.RULES,
    *emulated_tree.RULES,
    *partial_dumps.RULES,
    *not_responding.RULES,
    *missing.RULES,
    *driver_log.RULES,
    *driver.RULES,
    *xid.RULES,
    *memory.RULES,
    *clocks.RULES,
    *gpu_claims.RULES,
    *state.RULES,
    *gpu_pcie.RULES,
    *bar1.RULES,
    *nvlink.RULES,
    *nvlink_claims.RULES,
    *errors.RULES,
    *fabric_manager.RULES,
    *imex.RULES,
    *nvswitch.RULES,
    *peer_access.RULES,
    *nic.RULES,
    *nic_affinity.RULES,
    *gid.RULES,
    *mtu.RULES,
    *congestion.RULES,
    *port_counters.RULES,
    *dumped_counters.RULES,
    *optics.RULES,
    *cuda_init.RULES,
    *placement.RULES,
    *host.RULES,
    *firmware.RULES,
    *counts.RULES,
    *inventory.RULES,
    *offline_cpus.RULES,
    *storage.RULES,
    *nvme_health.RULES,
    *mounts.RULES,
    *acs.RULES,
    *settings.RULES,
    *host_counters.RULES,
    *job_limits.RULES,
    *nccl.RULES,
    *version.RULES,
    *node_pairs.RULES,
    *pcie_events.RULES,
    *logged_events.RULES,
    *disk_events.RULES,
    *external_tests.RULES,
    *log_messages.RULES,
)

# The values of a healthy node that independent evidence must support (docs/reference/coverage.md).
CLAIMS: tuple[Claims, ...] = (
    link_claims.link_claims,
    gpu_pcie.hidden_claims,
    nvlink_claims.nvlink_claims,
    peer_access.peer_claims,
    gpu_claims.gpu_claims,
    bar1.window_claims,
    host.numa_claims,
    counts.count_claims,
    offline_cpus.cpu_claims,
    port_claims.port_claims,
)

__all__ = ["CLAIMS", "RULES", "Rule"]
