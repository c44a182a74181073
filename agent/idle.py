"""May we measure? A probe never takes what a job is using."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..models.report import Report
from ..models.said import NotChecked, Said
from ..models.units import GIB, as_bytes
from ..probes.host import Host

_BUSY_PERCENT = 40.0  # of all CPUs over the interval
_BUSY_CPUS = 2.0  # a job of one process a GPU polls with a CPU each: few of a large machine, and not idle
_INTERVAL = 0.1  # seconds
_FREE_MEMORY = 2 * GIB  # several times what a probe takes


def busy_because(report: Report) -> str | None:
    """Why nothing should be measured now, in words; None where the node is idle."""
    in_use = [one.about for one in report.observations if one.quantity == "processes" and one.value]
    if in_use:
        return f"processes use {', '.join(in_use)}"
    import psutil  # takes 15 ms, and `--passive` does not need it

    try:
        load, free = psutil.cpu_percent(interval=_INTERVAL), psutil.virtual_memory().available
    except (OSError, TypeError, ValueError):  # sandboxes give parts of /proc, or empty files
        return "nothing says how busy this machine is"
    if load > _BUSY_PERCENT or load / 100 * (psutil.cpu_count() or 1) > _BUSY_CPUS:
        return f"the CPUs are {load:.0f} % busy"
    if free < _FREE_MEMORY:
        return f"only {as_bytes(free)} of memory are free"
    return None


def not_measured(why: str) -> Callable[[Host], Iterator[Said]]:
    """The source in the place of the probes while the node is busy: it says why there are no measurements."""

    def idle(host: Host) -> Iterator[Said]:
        del host
        how = "run it when the node is idle"
        yield NotChecked(what="bandwidth", subject="node", why=f"not measured: {why}", how=how)

    return idle
