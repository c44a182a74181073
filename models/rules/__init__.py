"""The table of all rules. A rule names the facts that it evaluates and the fields that it needs."""

from __future__ import annotations

from .core.rule import Rule
from .gpu import (
    bar1 as gpu_window,
)
from .gpu import (
    clocks as gpu_clocks,
)
from .gpu import (
    driver as gpu_driver,
)
from .gpu import (
    external_tests as diagnosis,
)
from .gpu import (
    gpu_pcie,
)
from .gpu import (
    memory as gpu_memory,
)
from .gpu import (
    missing as gpu_missing,
)
from .gpu import (
    pcie_events as bus_events,
)
from .gpu import (
    state as gpu_state,
)
from .gpu import (
    xid as events,
)
from .host import (
    host,
    host_counters,
    mounts,
    settings,
    storage,
)
from .host import (
    job_limits as job,
)
from .host import (
    placement as places,
)
from .nccl import nccl
from .nccl import version as nccl_version
from .network import (
    congestion,
    gid,
    mtu,
    nic,
    node_pairs,
)
from .network import (
    logged_events as device_events,
)
from .network import (
    nic_affinity as nic_place,
)
from .nvlink import (
    cuda_init as cuda,
)
from .nvlink import (
    errors as nvlink_errors,
)
from .nvlink import (
    fabric_manager as fabric,
)
from .nvlink import (
    nvlink,
    nvswitch,
)
from .nvlink import (
    peer_access as peers,
)
from .pcie import acs, pcie
from .pcie import not_responding as lost
from .pcie import partial_dumps as one_end

RULES: tuple[Rule, ...] = (
    *pcie.RULES,
    *one_end.RULES,
    *lost.RULES,
    *gpu_missing.RULES,
    *gpu_driver.RULES,
    *events.RULES,
    *gpu_memory.RULES,
    *gpu_clocks.RULES,
    *gpu_state.RULES,
    *gpu_pcie.RULES,
    *gpu_window.RULES,
    *nvlink.RULES,
    *nvlink_errors.RULES,
    *fabric.RULES,
    *nvswitch.RULES,
    *peers.RULES,
    *nic.RULES,
    *nic_place.RULES,
    *gid.RULES,
    *mtu.RULES,
    *congestion.RULES,
    *cuda.RULES,
    *places.RULES,
    *host.RULES,
    *storage.RULES,
    *mounts.RULES,
    *acs.RULES,
    *settings.RULES,
    *host_counters.RULES,
    *job.RULES,
    *nccl.RULES,
    *nccl_version.RULES,
    *node_pairs.RULES,
    *bus_events.RULES,
    *device_events.RULES,
    *diagnosis.RULES,
)

__all__ = ["RULES", "Rule"]
