"""Slurm's jobs on this machine, by their cgroups.

A job without a step has a cgroup only with PrologFlags=Contain (slurm.conf(5): "At job allocation time, use the
ProcTrack plugin to create a job container"; X11 and RunInJob include it). Without it, the prolog must hold the machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from posixpath import dirname, join

from msgspec import Struct

from ..host.host import Host, Unreadable
from .job_cgroups import CGROUPS, AllocationsUnknown, populated, runs

# cgroup.conf(5) of Slurm: with cgroup v2 below the scope of its step daemon, with v1 below each controller.
_SCOPE = re.compile(r"(?:.+_)?slurmstepd\.scope")
_TREE = re.compile(r"slurm(?:_.+)?")
_JOB = re.compile(r"job_([0-9]{1,12})")
# Packages of Slurm and of Debian, and the cache of a node without own files (https://slurm.schedmd.com/configless_slurm.html).
_CONFIGURATIONS = ("etc/slurm/slurm.conf", "run/slurm/conf/slurm.conf", "etc/slurm-llnl/slurm.conf")
_SETTING = re.compile(r"^[ \t]*(PrologFlags|Prolog|Include)[ \t]*[= \t][ \t]*(\S+)", re.MULTILINE | re.IGNORECASE)
_CONTAINED = {"contain", "x11", "runinjob"}
_HOLDS = re.compile(r"^[^#\n]*\blinkgauge hold [^\n]*--for\b", re.MULTILINE)
_MOST_INCLUDED = 4  # files, each included by the one before


class _Setting(Struct, frozen=True):
    name: str  # in lower case
    value: str
    folder: str  # of the file with this setting


def slurm_jobs(host: Host, is_own: bool) -> list[str]:
    """The IDs of jobs with processes here. `is_own`: the caller has a job here itself. Raises AllocationsUnknown."""
    try:
        trees = list(_trees(host))
        folders = [
            (job[1], f"{tree}/{name}") for tree in trees for name in host.list(tree) if (job := _JOB.fullmatch(name))
        ]
        jobs = dict.fromkeys(job for job, folder in folders if populated(host, folder))
        if jobs or is_own:
            return [*jobs]
        if (why := _unseen(host, bool(trees))) and runs(host, "slurmd"):
            raise AllocationsUnknown(f"slurmd runs, but {why}")
    except Unreadable as refusal:
        raise AllocationsUnknown(f"{refusal.path}: {refusal.why}") from None
    return []


def _trees(host: Host) -> Iterator[str]:
    """Yield the cgroup folders that contain a folder for each job."""
    for name in host.list(f"{CGROUPS}/system.slice"):
        if _SCOPE.fullmatch(name):
            yield f"{CGROUPS}/system.slice/{name}"
    for controller in ("freezer", "memory", "cpuset", "devices"):
        for name in host.list(f"{CGROUPS}/{controller}"):
            if _TREE.fullmatch(name):
                tree = f"{CGROUPS}/{controller}/{name}"
                yield from (f"{tree}/{user}" for user in host.list(tree) if user.startswith("uid_"))
                yield tree


def _unseen(host: Host, has_cgroups: bool) -> str | None:
    """Why a job of Slurm may be invisible here. None: all are visible or held, or there is no slurm.conf."""
    main = next((path for path in _CONFIGURATIONS if host.resolve(path)), None)
    settings = [*_settings(host, main)] if main else []
    if _prolog_holds(host, settings):
        return None
    if not has_cgroups:
        return "no cgroups show its jobs (ProctrackType is not cgroup)"
    flags = {flag.lower() for one in settings if one.name == "prologflags" for flag in one.value.split(",")}
    if not main or flags & _CONTAINED:
        return None
    return (
        "a job without a step shows no cgroup: slurm.conf has no PrologFlags=Contain, "
        "and no prolog runs 'linkgauge hold --for'"
    )


def _settings(host: Host, path: str, depth: int = 0) -> Iterator[_Setting]:
    """Yield the settings of slurm.conf and of the files that it includes."""
    folder = dirname(f"/{path}")
    for name, value in _SETTING.findall(host.read(path) or ""):
        if name.lower() != "include":
            yield _Setting(name.lower(), value, folder)
        elif depth < _MOST_INCLUDED:
            yield from _settings(host, join(folder, value).lstrip("/"), depth + 1)


def _prolog_holds(host: Host, settings: Iterable[_Setting]) -> bool:
    """Whether a script of the setting Prolog holds the machine for a given time. The setting may be a pattern."""
    for one in settings:
        if one.name == "prolog":
            folder, _, wanted = join(one.folder, one.value).lstrip("/").rpartition("/")
            names = [name for name in host.list(folder) if fnmatch(name, wanted)]
            if any(_HOLDS.search(host.read(f"{folder}/{name}") or "") for name in names):
                return True
    return False
