"""The memory-exchange service (IMEX) of machines in a multi-node NVLink domain."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.gpu import Gpu
from ...facts.machine import Service
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.gpus import gpu_product
from ..core.rule import Rule
from ..core.wording import cited

EXCHANGE = "nvidia-imex"


def needs_exchange(snapshot: Snapshot, service: Service) -> bool:
    """Select the memory-exchange service (IMEX) on nodes of a multi-node NVLink domain."""
    return service.key == EXCHANGE and any(
        gpu.fabric_cluster and (known := gpu_product(snapshot, gpu)) and known.c2c_rate
        for gpu in snapshot.of(Gpu).values()
    )


def exchange(snapshot: Snapshot, service: Service) -> Iterator[Finding]:
    """IMEX does not run, so memory cannot be shared with other nodes. A scheduler may start it with each job."""
    if service.running:
        return
    clusters = sorted({gpu.fabric_cluster for gpu in snapshot.of(Gpu).values() if gpu.fabric_cluster})
    yield Finding(
        code="imex-not-ready",
        severity="critical" if snapshot.context == "job" else "info",
        subject=service.key,
        message=f"the service {service.key} does not run on this node of NVLink domain {', '.join(clusters)}: "
        "it shares no memory with the other nodes",
        expected="running",
        observed="not running",
        case="in a job" if snapshot.context == "job" else None,
        cause="it was not started, or a scheduler starts it with each job",
        evidence=cited(service, "running"),
    )


def domain(snapshot: Snapshot, service: Service) -> Iterator[Finding]:
    """The memory-exchange domain is not ready, as nvidia-imex-ctl states. A degraded one lacks some of its nodes.

    Without the state of the domain, nodes that are not ready show a degraded domain at least.
    """
    if service.state in ("UP", "READY"):
        return
    yield Finding(
        code="imex-not-ready",
        severity="warning" if (service.state or "").startswith(("DEGRADED", "node ")) else "critical",
        subject=service.key,
        message=f"the memory-exchange domain is not ready: {service.state}",
        expected="UP",
        observed=service.state,
        case="domain",
        cause="a node whose service does not run or cannot be reached, or versions that differ",
        evidence=cited(service, "state"),
    )


def has_state(snapshot: Snapshot, service: Service) -> bool:
    """Select the service, if the state of its domain was read."""
    return service.key == EXCHANGE and service.state is not None


RULES = (
    Rule("imex-not-ready", Service, ("running",), exchange, needs_exchange),
    Rule("imex-not-ready", Service, ("state",), domain, has_state),
)
