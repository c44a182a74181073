"""May we measure? A probe never takes what a job is using; and who cannot tell, does not measure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked, Observation, Record
from ...models.facts.units import GIB, as_bytes
from ...models.report import Report, Seen
from ...probes.calls.hold import held
from ...probes.gpu.amd_kfd import processes
from ...probes.gpu.nvml_use import gpu_use
from ...probes.host.host import Host, Unreadable
from ...probes.pcie.busy_speed import BUSY, byte_counts
from ...probes.system.scheduler_allocations import Unknown, allocations
from ..pipeline.source import Source

_BUSY_PERCENT = 40.0  # of all CPUs over the interval
_BUSY_CPUS = 1.5  # a job of one process a GPU polls with a CPU each: few of a large machine, and not idle
_INTERVAL = 0.1  # seconds
_FREE_MEMORY = 2 * GIB  # several times what a probe takes
_GPU_MEMORY = 1 * GIB  # that a driver may keep of a GPU without processes
_GPU_PERCENT = 5.0  # of its time that a GPU computed
_MOST = 4  # names in a sentence


def busy_because(report: Report, host: Host, owner: str | None = None) -> str | None:
    """Why nothing should be measured now, in words; None where the node is idle.

    `owner` is the job that this machine was given to, where that is the caller's own.
    """
    return given_away(host, owner) or _gpus_in_use(report, host) or _in_use(host)


def given_away(host: Host, owner: str | None = None) -> str | None:
    """Who has asked for this machine, whether or not it is used: what may change from one probe to the next."""
    if why := held():
        return why
    try:
        others = allocations(host, owner)
    except Unknown as unknown:
        return f"nothing says whether a job has it: {unknown}"
    if others:
        return f"{_listed(list(others.values()))} {'has' if len(others) == 1 else 'have'} it"
    return None


def _gpus_in_use(report: Report, host: Host) -> str | None:
    """What the drivers say of its GPUs; the processes of other containers are seen by their memory and time."""
    try:
        use, numbers = gpu_use(host), processes(host)
    except Unreadable:
        use, numbers = None, []
    if use is None:
        return "nothing says whether its GPUs are in use"
    if numbers:
        return f"process{'es' * (len(numbers) > 1)} {_listed(numbers)} {'use' if len(numbers) > 1 else 'uses'} its GPUs"
    known: list[Seen | Observation] = [*report.observations, *use]
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


def computing(host: Host) -> str | None:
    """Which GPUs processes compute on by now; between two probes, when nothing of ours does.

    Memory that is in use or free says nothing then: a driver takes a moment to give back what a probe had.
    """
    names = [str(one.about) for one in gpu_use(host) or () if one.quantity == "processes" and one.value]
    return f"processes use {_listed(names)}" if names else None


def _in_use(host: Host) -> str | None:
    """What CPUs, memory, ports and disks say over a moment."""
    import psutil  # takes 15 ms, and `--passive` does not need it

    before = byte_counts(host)
    try:
        load, free = psutil.cpu_percent(interval=_INTERVAL), psutil.virtual_memory().available
    except (OSError, TypeError, ValueError):  # sandboxes give parts of /proc, or empty files
        return "nothing says how busy this machine is"
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
    """The source in the place of probes that do not run: it says why there are no measurements."""
    how = "run it when the node is idle; --owner names a job of your own, --force measures all the same"
    return said_once("bandwidth", Reason.NOT_MEASURED, f"not measured: {why}", how)


def said_once(what: str, reason: Reason, detail: str, how: str) -> Source:
    """A source that has one thing to say about measuring."""

    def idle(host: Host) -> Iterator[Record]:
        del host
        yield NotChecked(what=what, subject="node", reason=reason, detail=detail, how=how)

    return Source("idle", idle)
