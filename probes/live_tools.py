"""Tools that are installed on a machine, asked what our own discovery says too. What they print is read as dumps are.

Each runs in a child and without a shell: a tool asks the driver, which may hang.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from ..models.facts.reason import Reason, reason_of
from ..models.facts.records import NotChecked, Record
from .calls.timeouts import no_answer
from .host.host import Host

_SECONDS = 20.0  # of all commands of a tool; nvidia-smi without persistence starts each GPU first
_LONGEST = 64 << 20  # characters of an output; nvidia-smi -q -x of 16 GPUs has 1 MB
_PATH = "/usr/local/sbin:/usr/sbin:/sbin"  # ibstat is there, and users without privileges do not look


@dataclass(frozen=True, slots=True)
class _Tool:
    """A program under its names, what it is asked, and what brings it."""

    names: tuple[str, ...]
    questions: tuple[tuple[str, ...], ...]
    package: str


# lstopo: all PCI functions, also the CPUs that this process may not use (lstopo(1)).
_TOOLS: Mapping[str, _Tool] = {
    "nvidia-smi": _Tool(
        ("nvidia-smi",),
        (("-q", "-x"), ("topo", "-m"), ("topo", "-p2p", "r"), ("topo", "-p2p", "w"), ("nvlink", "-s")),
        "it comes with NVIDIA's driver",
    ),
    "lstopo": _Tool(
        ("lstopo-no-graphics", "lstopo"),
        (("--of", "xml", "--filter", "io:all", "--disallowed"),),
        "install hwloc (Debian: hwloc-nox)",
    ),
    "ibstat": _Tool(("ibstat",), ((),), "install infiniband-diags"),
}
NAMES = tuple(_TOOLS)


def cross_check(tool: str) -> Callable[[Host], Iterator[Record]]:
    """Reads what the tool says. What it does not say is a gap of the comparison, not of our own discovery."""

    def source(host: Host) -> Iterator[Record]:
        for said in ask(host, tool):
            if isinstance(said, NotChecked):
                about = "" if said.subject == "node" else f"{said.what} of {said.subject}: "
                yield replace(said, what=tool, subject="node", detail=f"{about}{said.why}", path=None)
            else:
                yield said

    return source


def ask(host: Host, tool: str) -> Iterator[Record]:
    """What the tool says."""
    yield from host.call("tools", tool, deadline=_SECONDS + 2)


def outputs(tool: str) -> Iterator[Record]:
    """Runs in the child: what each command of the tool prints, cited as "nvidia-smi topo -m:7"."""
    from .dumps import read_text  # some thirty readers

    told = _TOOLS[tool]
    path = f"{os.environ.get('PATH') or os.defpath}:{_PATH}"
    program = next((found for name in told.names if (found := shutil.which(name, path=path))), None)
    if program is None:
        yield NotChecked(
            what=tool, subject="node", reason=Reason.NOT_INSTALLED, detail="not installed", how=told.package
        )
        return
    until = time.monotonic() + _SECONDS
    for question in told.questions:
        command = " ".join((tool, *question))
        try:
            text = _run([program, *question], until)
        except (OSError, subprocess.SubprocessError) as error:
            reason, detail = _refusal(error)
            yield NotChecked(what=tool, subject="node", reason=reason, path=command, detail=detail)
        else:
            yield from read_text(command, text, time.time())


def _run(command: list[str], until: float) -> str:
    """What the command prints. Raises OSError and SubprocessError."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=True,
        timeout=max(until - time.monotonic(), 0.1),
        env={**os.environ, "LC_ALL": "C"},
    )
    return done.stdout[:_LONGEST]


def _refusal(error: OSError | subprocess.SubprocessError) -> tuple[Reason, str]:
    if isinstance(error, subprocess.TimeoutExpired):
        return Reason.NO_ANSWER, no_answer(_SECONDS)
    if isinstance(error, subprocess.CalledProcessError):
        last = (error.stderr or error.stdout or "").strip().rpartition("\n")[2]
        return Reason.OTHER, last[:300] or f"ended with {error.returncode}"
    if isinstance(error, OSError):
        return reason_of(error.errno), str(error.strerror)
    return Reason.OTHER, str(error)
