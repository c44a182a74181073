"""Installed tools whose output is compared with linkgauge's own discovery. Dump readers parse the output.

Each tool runs in a child process without a shell, because a tool uses the driver, which may hang.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ..models.facts.reason import Reason, reason_of
from ..models.facts.records import NotChecked, Record
from .calls.timeouts import no_answer
from .host.host import Host

_SECONDS = 20.0  # for all commands of a tool; without persistence mode nvidia-smi initializes each GPU first
_LONGEST = 64 << 20  # characters of an output; nvidia-smi -q -x of 16 GPUs has 1 MB
_PATH = "/usr/local/sbin:/usr/sbin:/sbin"  # ibstat is in these folders, which the PATH of users often lacks


class _Tool(Struct, frozen=True):
    """A program: its possible names, the arguments of its commands, and how to install it."""

    names: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...]
    package: str


# lstopo prints all PCI functions, and with --disallowed also CPUs that this process may not use (lstopo(1)).
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
    """Return a source that runs the tool. Its NotChecked records concern the comparison, not linkgauge's discovery."""

    def source(host: Host) -> Iterator[Record]:
        for record in run_tool(host, tool):
            if isinstance(record, NotChecked):
                prefix = "" if record.subject == "node" else f"{record.what} of {record.subject}: "
                yield replace(record, what=tool, subject="node", detail=f"{prefix}{record.why}", path=None)
            else:
                yield record

    return source


def run_tool(host: Host, tool: str) -> Iterator[Record]:
    """Run the tool and yield its records."""
    yield from host.call("tools", tool, deadline=_SECONDS + 2)


def outputs(tool: str) -> Iterator[Record]:
    """Run each command of the tool, in the child process. Records cite the output as "nvidia-smi topo -m:7"."""
    import shutil

    from .dumps.read import read_text  # imports about thirty readers

    entry = _TOOLS[tool]
    path = f"{os.environ.get('PATH') or os.defpath}:{_PATH}"
    program = next((found for name in entry.names if (found := shutil.which(name, path=path))), None)
    if program is None:
        yield NotChecked(
            what=tool, subject="node", reason=Reason.NOT_INSTALLED, detail="not installed", how=entry.package
        )
        return
    until = time.monotonic() + _SECONDS
    for arguments in entry.commands:
        command = " ".join((tool, *arguments))
        try:
            text = _run([program, *arguments], until)
        except (OSError, subprocess.SubprocessError) as error:
            reason, detail = _refusal(error)
            yield NotChecked(what=tool, subject="node", reason=reason, path=command, detail=detail)
        else:
            yield from read_text(command, text, time.time())


def _run(command: list[str], until: float) -> str:
    """Return the output of the command. Raises OSError and SubprocessError."""
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
