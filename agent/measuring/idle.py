"""Decide whether the node is idle. Probes run only if the node is known to be idle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked, Observation, Record
from ...models.facts.units import GIB, as_bytes
from ...models.report import Report, ReportedObservation
from ...probes.calls.hold import held
from ...probes.gpu.amd_kfd import processes
from ...probes.gpu.nvml_use import gpu_use
from ...probes.host.host import Host, Unreadable
from ...probes.pcie.busy_speed import BUSY, byte_counts
from ..pipeline.source import Source

_BUSY_PERCENT = 40.0  # of all CPUs over the interval
_BUSY_CPUS = 1.5  # one process per GPU polls with one CPU each: a small share of a large machine, but not idle
_INTERVAL = 0.1  # seconds
_FREE_MEMORY = 2 * GIB  # several times what a probe takes
_GPU_MEMORY = 1 * GIB  # that a driver may use on a GPU without processes
_GPU_PERCENT = 5.0  # share of the time in which a GPU computes
_MOST = 4  # names that a message lists


def busy_reason(report: Report, host: Host, owner: str | None = None) -> str | None:
    """The reason why probes must not run now, as text; None if the node is idle.

    `owner` is the caller's own job, if the scheduler has allocated this machine to it.
    """
    return claimed_by(host, owner) or _gpus_in_use(report, host) or _in_use(host)


def claimed_by(host: Host, owner: str | None = None) -> str | None:
    """The hold or job that claims this machine, even if unused; None: no claim. It can change between two probes."""
    if why := held():
        return why
    # imported only to measure: the readers of Slurm and Kubernetes
    from ...probes.system.job_cgroups import AllocationsUnknown
    from ...probes.system.scheduler_allocations import allocations

    try:
        others = allocations(host, owner)
    except AllocationsUnknown as unknown:
        return f"whether a job has this machine is not known: {unknown}"
    if others:
        return f"{_listed(list(others.values()))} {'has' if len(others) == 1 else 'have'} this machine"
    return None


def _gpus_in_use(report: Report, host: Host) -> str | None:
    """The GPUs in use according to their drivers. Memory and utilization also show processes of other containers."""
    try:
        use, numbers = gpu_use(host, again=True), processes(host)
    except Unreadable:
        use, numbers = None, []
    if use is None:
        return "the use of the GPUs is not known"
    if numbers:
        return f"process{'es' * (len(numbers) > 1)} {_listed(numbers)} {'use' if len(numbers) > 1 else 'uses'} its GPUs"
    known: list[ReportedObservation | Observation] = [*report.observations, *use]
    limits = {"processes": 0.0, "memory_used": _GPU_MEMORY, "utilization": _GPU_PERCENT / 100}
    in_use = {
        quantity: list(dict.fromkeys(str(one.about) for one in known if one.quantity == quantity and one.value > most))
        for quantity, most in limits.items()
    }
    if names := in_use["processes"]:
        return f"processes use {_listed(names)}"
    if names := in_use["memory_used"]:
        return f"memory of {_listed(names)} is in use"
    if names := in_use["utilization"]:
        return f"{_listed(names)} compute{'s' * (len(names) == 1)}"
    return None


def gpus_computing(host: Host) -> str | None:
    """The GPUs that processes use now. Call it between two probes, when no process of ours uses a GPU.

    Memory use is no sign then: a driver takes a moment to free the memory of the last probe.
    """
    names = [str(one.about) for one in gpu_use(host) or () if one.quantity == "processes" and one.value]
    return f"processes use {_listed(names)}" if names else None


def _in_use(host: Host) -> str | None:
    """The load of CPUs, memory, ports and disks over 0.1 s."""
    import psutil  # takes 15 ms, and `--passive` does not need it

    before = byte_counts(host)
    try:
        load, free = psutil.cpu_percent(interval=_INTERVAL), psutil.virtual_memory().available
    except (OSError, TypeError, ValueError):  # sandboxes give parts of /proc, or empty files
        return "the load of this machine is not known"
    count = psutil.cpu_count() or 1
    if load > _BUSY_PERCENT or load / 100 * count > _BUSY_CPUS:
        return f"the CPUs are {load:.0f} % busy, {load / 100 * count:.1f} of {count}"
    if free < _FREE_MEMORY:
        return f"only {as_bytes(free)} of memory are free"
    moving = _moving(before, byte_counts(host))
    return f"bytes move through {_listed(moving)}" if moving else None


def _moving(before: Mapping[str, int], after: Mapping[str, int]) -> list[str]:
    least = BUSY * _INTERVAL
    return [path.rpartition("/")[2] for path, now in after.items() if now - before.get(path, now) >= least]


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return f"{', '.join(names[:_MOST])}{more}"


def not_measured(why: str) -> Source:
    """A source that replaces the probes and reports why they did not run."""
    how = "run it when the node is idle; --owner names a job of your own, --force measures all the same"
    return not_checked_source("bandwidth", Reason.NOT_MEASURED, f"not measured: {why}", how)


def not_checked_source(what: str, reason: Reason, detail: str, how: str) -> Source:
    """A source that yields one NotChecked."""

    def idle(host: Host) -> Iterator[Record]:
        del host
        yield NotChecked(what=what, subject="node", reason=reason, detail=detail, how=how)

    return Source("idle", idle)
