"""uname -a, os-release, the kernel's command line, lsmod, ulimit and /proc/PID/limits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from ....models.facts.machine import Node, Rdma, Setting
from ....models.facts.records import Evidence, Fact, Record
from ....models.facts.units import KIB
from ..core.part import Part

_LIMIT = r"(?:[0-9]{1,20}|unlimited)"
_FORMS = {
    "uname": r"(?:uname: )?Linux [A-Za-z0-9][\w.-]{0,252} [0-9]{1,2}\.[0-9]{1,3}[\w.+-]{0,80} #[0-9][^\n]*",
    "release": r"(?:PRETTY_NAME|VERSION_CODENAME|ID_LIKE)=[^\n]*",
    "command": r"(?:Kernel command line: )?(?:BOOT_IMAGE=|root=(?:UUID=|LABEL=|/dev/))[^\n]*",
    "modules": r"Module[ ]{2,40}Size[ ]{1,8}Used by",
    "module": r"(?:nvidia(?:_[a-z]{2,8})?|nv_peer_mem|gdrdrv|mlx5_core|ib_core)[ ]+[0-9]{4,9}[ ]+-?[0-9]{1,4}(?!\S)",
    "shell": rf"(?:max locked memory|core file size|scheduling priority)[ ]+\([^()\n]{{2,20}}\)[ ]+{_LIMIT}$",
    "listed": rf"-l:[ ]locked-in-memory size[ ]\((?:k?bytes)\)[ ]+{_LIMIT}$",  # ulimit -a in zsh
    "asked": rf"(?:\S{{0,40}}[$#%] )?(?:(?:mpirun|srun|docker) [^\n]{{0,80}}?)?ulimit (?:-[SH] ?)?-l[ \t]*\n{_LIMIT}$",
    # UCX, src/uct/ib/base/ib_log.c: the hint that it adds if the limit is low.
    "ucx": r"(?:\[[^\]\n]{1,120}\][ ]{1,40})?\w{1,40}\.c:[0-9]{1,5}[ ]{1,4}UCX[ ]{1,4}ERROR[ ][^\n]{0,300}?"
    r"\(ulimit -l\) to 'unlimited' \(current: [0-9]{1,15} kbytes\)",
    "process": rf"Max locked memory[ ]{{2,40}}{_LIMIT}[ ][^\n]*|Limit[ ]{{2,40}}Soft Limit[^\n]*",
}
BEGIN = rf"^[ \t]*(?:{'|'.join(_FORMS.values())})"
_ALL = re.compile("^[ \t]*(?:" + "|".join(f"(?P<{name}>{form})" for name, form in _FORMS.items()) + ")", re.MULTILINE)
# Kernel modules and their rows in models/catalog/settings.toml. A missing module means nothing: lists are often
# filtered by grep.
_MODULES = {"nvidia_peermem": "peer_memory", "nv_peer_mem": "peer_memory", "nvidia_fs": "gds_module"}
_UNITS = {"kbytes": KIB, "bytes": 1}


def read(part: Part) -> Iterator[Record]:
    """The settings, and the host name and kernel version."""
    for line, found in part.matches(_ALL):
        text = found[found.lastgroup or 0].strip()
        cite = part.cite(line, text.replace("\n", " "))
        yield from _READERS.get(found.lastgroup or "", _nothing)(text, cite)


def _uname(text: str, cite: Evidence) -> Iterator[Fact]:
    _, hostname, kernel, *_ = text.removeprefix("uname: ").split()
    yield Node(key="node", hostname=hostname, kernel=kernel, cites={"hostname": cite, "kernel": cite})


def _command(text: str, cite: Evidence) -> Iterator[Fact]:
    """Settings on the kernel command line; Documentation/admin-guide/kernel-parameters.txt of Linux."""
    words = text.split()
    passed = {"iommu=pt", "iommu.passthrough=1"} & set(words)
    if passed:
        yield Setting(key="iommu", value="identity", cites={"value": cite})
    elif {"intel_iommu=on", "iommu=nopt", "iommu.passthrough=0"} & set(words):
        yield Setting(key="iommu", value="DMA", cites={"value": cite})
    for word in words:
        name, _, value = word.partition("=")
        if name == "transparent_hugepage" and value in ("always", "madvise", "never"):
            yield Setting(key="transparent_hugepage", value=value, cites={"value": cite})
        elif name == "numa_balancing" and value in ("enable", "disable"):
            yield Setting(key="numa_balancing", value=str(int(value == "enable")), cites={"value": cite})


def _module(text: str, cite: Evidence) -> Iterator[Fact]:
    name = text.split()[0]
    if name in _MODULES:
        yield Setting(key=_MODULES[name], value=name, cites={"value": cite})


def _shell(text: str, cite: Evidence) -> Iterator[Fact]:
    """A line of ulimit -a: "max locked memory (kbytes, -l) 64"."""
    if "memory" not in text:
        return
    value, unit = text.rpartition(" ")[2], re.search(r"\((\w+)(?:, -l)?\)", text)
    if unit and unit[1] in _UNITS:
        yield _locked(value, _UNITS[unit[1]], cite)


def _ulimit(text: str, cite: Evidence) -> Iterator[Fact]:
    """The command ulimit -l and its output, in KiB (bash(1))."""
    yield _locked(text.split()[-1], KIB, cite)


def _ucx(text: str, cite: Evidence) -> Iterator[Fact]:
    """The limit and the failed device: "ERROR mlx5_0: ibv_create_cq() failed: ... (current: 64"."""
    yield _locked(text.split()[-2], KIB, cite)
    if device := re.search(r"ERROR (\w{1,30}): ", text):
        yield Rdma(key=device[1])


def _process(text: str, cite: Evidence) -> Iterator[Fact]:
    """The soft limit of /proc/PID/limits, in bytes."""
    if text.startswith("Max"):
        yield _locked(text.split()[3], 1, cite)


def _locked(value: str, unit: int, cite: Evidence) -> Setting:
    size = str(int(value) * unit) if value.isdecimal() else value
    return Setting(key="memlock", value=size, cites={"value": cite})


def _nothing(text: str, cite: Evidence) -> Iterator[Fact]:
    """Known lines without use for a rule."""
    return iter(())


_READERS: Mapping[str, Callable[[str, Evidence], Iterator[Fact]]] = {
    "uname": _uname,
    "command": _command,
    "module": _module,
    "shell": _shell,
    "listed": _shell,
    "asked": _ulimit,
    "ucx": _ucx,
    "process": _process,
}
