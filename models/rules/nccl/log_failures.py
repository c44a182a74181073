"""Faults in the log of NCCL: paths that it could not use, resources that it lacked, and failures."""

from __future__ import annotations

from collections.abc import Iterator

from ...catalog import NOT_ENOUGH_EVIDENCE
from ...catalog.settings import settings
from ...facts.gpu import Gpu
from ...facts.job_ranks import Rank
from ...facts.machine import Mount, NcclFailure, Rdma, Setting, Transport
from ...facts.units import as_bytes
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.rule import Rule
from ..core.wording import cited
from ..host.job_limits import SHARED_MEMORY
from ..host.settings import has_wrong_value
from ..network.gid import link_local, unrouted
from ..nvlink.cuda_init import mismatched, unready
from ..nvlink.interconnect_kind import switched
from ..pcie.direct_paths import may_be_reached

_RDMA = ("NCCL_IB_DISABLE", "NCCL_NET")  # variables with which a job does without RDMA
_LEVELS = ("NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL")  # variables with which a job disables P2P on purpose
_DEFAULT = settings()["memlock"].more_than or 0  # bytes: up to this limit the rule of the setting applies


def may_be_direct(snapshot: Snapshot, device: Rdma) -> bool:
    """Select RDMA devices if the GPU driver lets NICs access GPU memory, or this is not known."""
    return may_be_reached(snapshot)


def direct(snapshot: Snapshot, device: Rdma) -> Iterator[Finding]:
    """NICs cannot access GPU memory. One finding for all, on the first NIC."""
    without = [one for one in snapshot.of(Rdma).values() if one.gpu_direct is False]
    if not without or without[0].key != device.key:
        return
    names = ", ".join(one.key for one in without)
    yield Finding(
        code="gdr-disabled",
        severity="critical",
        subject=device.key,
        message=f"NCCL does not let {names} reach GPU memory (GPU Direct RDMA is disabled): each byte to the network "
        "goes through host memory",
        expected="enabled",
        observed="disabled",
        expected_source="NCCL documentation, GPU Direct RDMA",
        cause="no peer-memory module is registered with the RDMA stack in use (/sys/kernel/mm/memory_peers), and "
        "dma-buf is not available either",
        evidence=tuple(seen for one in without for seen in cited(one, "gpu_direct")),
    )


def joined(snapshot: Snapshot, pair: Transport) -> bool:
    """Select pairs of GPUs that are joined by NVSwitches."""
    ends = [snapshot.of(Gpu).get(name) for name in pair.key.split("-")]
    return len(ends) == 2 and all(gpu is not None and gpu.nvlinks != 0 and switched(snapshot, gpu) for gpu in ends)


def over_host(snapshot: Snapshot, pair: Transport) -> Iterator[Finding]:
    """GPUs joined by NVLink communicate through host memory without a variable that requests it. One finding."""
    if any(snapshot.of(Setting).get(name) for name in _LEVELS):
        return
    pairs = [one for one in snapshot.of(Transport).values() if _through_host(one) and joined(snapshot, one)]
    if not pairs or pairs[0].key != pair.key:
        return
    more = f" and {len(pairs) - 1} more pairs" if len(pairs) > 1 else ""
    yield Finding(
        code="p2p-disabled",
        severity="critical",
        confidence="likely",
        subject=pair.key,
        message=f"NCCL moves the bytes of {pair.key}{more} through host memory ({', '.join(pair.via or ())}) though "
        "NVLink joins these GPUs",
        expected="P2P",
        observed=", ".join(pair.via or ()),
        expected_source="NCCL src/graph/paths.cc: GPUs that NVLink joins are peers",
        cause="the driver or the container does not let one GPU reach the other's memory",
        evidence=cited(pair, "via"),
    )


def _through_host(pair: Transport) -> bool:
    return bool(pair.via) and all(transport.startswith("SHM") for transport in pair.via or ())


def registration(snapshot: Snapshot, failure: NcclFailure) -> Iterator[Finding]:
    """RDMA could not register memory. If the limit is known and low, the rule of the setting reports it."""
    setting = snapshot.of(Setting).get("memlock")
    limit = setting.value if setting else None
    if failure.key != "memory registration" or (limit and limit.isdecimal() and int(limit) <= _DEFAULT):
        return
    known = limit is not None
    yield Finding(
        code=NOT_ENOUGH_EVIDENCE if known else "memlock-low",
        severity="info" if known else "critical",
        confidence="possible" if known else "likely",
        subject="node",
        message=f"NCCL could not register memory for RDMA: {failure.error}"
        + (f", and the limit on locked memory is {limit}" if known else ""),
        expected="unlimited",
        observed=limit,
        expected_source="NCCL documentation, troubleshooting, InfiniBand",
        cause=None
        if known
        else "the limit on locked memory of the job (ulimit -l) is the usual cause; it was not read",
        case="registration" if known else None,
        evidence=cited(failure, "text"),
    )


def shared_memory(snapshot: Snapshot, failure: NcclFailure) -> Iterator[Finding]:
    """NCCL could not create a shared memory segment."""
    if failure.key != "shared memory":
        return
    mount = snapshot.of(Mount).get(SHARED_MEMORY)
    wanted = f" of {failure.size} bytes ({as_bytes(failure.size)})" if failure.size else ""
    has = f"; {SHARED_MEMORY} has {as_bytes(mount.size)}" if mount and mount.size is not None else ""
    yield Finding(
        code="shm-small",
        severity="critical",
        confidence="certain" if failure.error else "possible",
        subject="node",
        message=f"NCCL could not create a shared memory segment{wanted}: {failure.error or 'it does not say why'}{has}",
        expected=failure.size,
        observed=mount.size if mount else None,
        unit="bytes" if failure.size else None,
        expected_source="NCCL documentation, troubleshooting, shared memory",
        cause="the container was started with the default size of /dev/shm, or files are left over in it",
        evidence=cited(failure, "text"),
    )


_ONE_SIDE = "host memory on one side"  # other nodes of the job use GPUDirect RDMA
_SYMPTOMS = {
    "queue pair": "NCCL failed: an RDMA connection could not be made ({error})",
    "completion": "NCCL failed: a message over RDMA was not delivered ({error})",
    "connection": "NCCL failed: the connection to another rank broke ({error})",
    "provider": "NCCL failed: its libfabric plugin found no provider: without EFA it uses sockets ({error})",
    "hang": "a job failed: it hangs ({error})",
    "CUDA": "NCCL failed: a GPU operation failed ({error})",
    "communicator": "the ranks of a communicator do not agree ({error})",
    "warning": "NCCL warns: {error}",
    "sockets": "NCCL sends between nodes over {error}: it uses no RDMA device",
}


def symptom(snapshot: Snapshot, failure: NcclFailure) -> Iterator[Finding]:
    """A failure with several possible causes, on this node or another."""
    if failure.key == "queue pair" and (unrouted(snapshot) or link_local(failure)):
        return  # the cause is the unreachable address: network/gid.py
    if failure.key == "communicator" and snapshot.of(Rank):
        return  # ranks.py
    if unready(failure) or mismatched(snapshot, failure):
        return  # nvlink/cuda_init.py
    if failure.key == "sockets" and any(has_wrong_value(snapshot, name) for name in _RDMA):
        return  # the cause is the variable
    yield Finding(
        code=NOT_ENOUGH_EVIDENCE,
        severity="info",
        subject="node",
        message=_SYMPTOMS[failure.key].replace("{error}", str(failure.error)),
        observed=failure.error,
        cause="the log alone does not tell; findings beside this one may",
        evidence=cited(failure, "text"),
        case=failure.key,
    )


def through_host(snapshot: Snapshot, failure: NcclFailure) -> Iterator[Finding]:
    """The library receives from other nodes in host memory. Without GPUs that support it, this is by design.

    It is a fault if another node of the same job sends from the memory of its GPUs.
    """
    if any(one.gpu_direct is False for one in snapshot.of(Rdma).values()):
        return  # direct()
    yield Finding(
        code="gdr-disabled",
        severity="warning" if failure.key == _ONE_SIDE else "info",
        confidence="possible",
        subject="node",
        message=f"NCCL receives from other nodes without GPUDirect RDMA (via {failure.error}): each byte goes through "
        "host memory",
        expected="GDRDMA",
        observed=failure.error,
        cause="the distance between GPU and adapter (NCCL_NET_GDR_LEVEL), no peer-memory module, or a GPU without it",
        evidence=cited(failure, "text"),
    )


RULES = (
    Rule(
        "gdr-disabled",
        NcclFailure,
        ("text",),
        through_host,
        lambda _, failure: failure.key in ("host memory", _ONE_SIDE),
    ),
    Rule("gdr-disabled", Rdma, ("gpu_direct",), direct, may_be_direct),
    Rule("p2p-disabled", Transport, ("via",), over_host, joined),
    Rule("memlock-low", NcclFailure, ("text",), registration),
    Rule(NOT_ENOUGH_EVIDENCE, NcclFailure, ("text",), symptom, lambda snapshot, failure: failure.key in _SYMPTOMS),
    Rule("shm-small", NcclFailure, ("text",), shared_memory),
)
