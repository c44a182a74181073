"""External benchmarks (perftest, fio, iperf3, libfabric's tools): finding and running them.

The kernel kills a started program when this process ends, for any reason.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence

from ...models.facts.reason import Reason, reason_of
from ...models.facts.records import NotChecked
from ..calls.timeouts import no_answer

# Folders that the PATH of users often lacks; AWS's EFA installer uses the last one.
_PATH = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/gds/tools:/usr/local/cuda/gds/tools:/opt/amazon/efa/bin"
_PACKAGES: Mapping[str, str] = {
    "fio": "install fio",
    "gdsio": "install NVIDIA's gds-tools",
    "ib_write_bw": "install perftest",
    "ib_write_lat": "install perftest",
    "iperf3": "install iperf3",
    "fi_pingpong": "install libfabric's tools (AWS: the EFA installer; Debian: libfabric-bin)",
    "fi_rma_bw": "install libfabric's fabtests (AWS: the EFA installer)",
}
_PR_SET_PDEATHSIG = 1  # include/uapi/linux/prctl.h
_WATCH_INTERVAL = 0.02  # seconds between two calls of `watch` during a run
_VERSION_SECONDS = 5.0  # seconds
_LONGEST = 4 << 20  # characters of an output; fio's JSON of one job has 5 kB


class ToolFailed(Exception):
    """A program failed. The message is the reason."""

    def __init__(self, why: str, reason: Reason = Reason.OTHER) -> None:
        super().__init__(why)
        self.reason = reason


def found(name: str) -> str | None:
    """Return the path of the program; None if it is not installed."""
    return shutil.which(name, path=f"{os.environ.get('PATH') or os.defpath}:{_PATH}")


def absent(name: str, what: str, subject: str) -> NotChecked:
    """Return the NotChecked of a program that is not installed, with the package to install."""
    return NotChecked(
        what=what, subject=subject, reason=Reason.NOT_INSTALLED, detail=f"{name} is not installed", how=_PACKAGES[name]
    )


def version(program: str, flag: str = "--version") -> str:
    """Return the first line with a version, "fio-3.33", "iperf 3.12 (cJSON 1.7.15)"; else the program's name."""
    name = os.path.basename(program)
    try:
        text = run([program, flag], _VERSION_SECONDS, ends_with=(0, 1))
    except ToolFailed:
        return name
    line = next((line.strip() for line in text.splitlines() if any(map(str.isdigit, line))), "")[:80]
    return line if name.partition("_")[0].rstrip("0123456789") in line.lower() else f"{name} {line}".strip()


def started(command: Sequence[str], env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Start the program without a shell. The kernel kills it when this process ends. Raises ToolFailed."""
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def die_with_parent() -> None:  # runs between fork and exec, so it must not take a lock
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent ended before prctl()
            os._exit(1)

    try:
        return subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**os.environ, "LC_ALL": "C", **(env or {})},
            preexec_fn=die_with_parent,
        )
    except (OSError, subprocess.SubprocessError) as error:
        name = os.path.basename(command[0])
        if isinstance(error, OSError):
            raise ToolFailed(f"{name}: {error.strerror}", reason_of(error.errno)) from None
        raise ToolFailed(f"{name}: {error}") from None


def run(
    command: Sequence[str],
    deadline: float,
    env: Mapping[str, str] | None = None,
    watch: Callable[[], None] | None = None,
    ends_with: Sequence[int] = (0,),
) -> str:
    """Run the program for at most `deadline` seconds and return its standard output.

    `watch` is called repeatedly meanwhile. Raises ToolFailed.
    """
    with started(command, env) as process:
        try:
            return finished(process, os.path.basename(command[0]), deadline, watch, ends_with)
        finally:
            process.kill()


def finished(
    process: subprocess.Popen[str],
    name: str,
    deadline: float,
    watch: Callable[[], None] | None = None,
    ends_with: Sequence[int] = (0,),
) -> str:
    """Wait for a started program and return its standard output. Raises ToolFailed."""
    end = time.monotonic() + deadline
    while True:
        left = end - time.monotonic()
        if left <= 0:
            raise ToolFailed(f"{name}: {no_answer(deadline)}", Reason.NO_ANSWER)
        try:
            output, errors = process.communicate(timeout=min(left, _WATCH_INTERVAL) if watch else left)
        except subprocess.TimeoutExpired:
            if watch:
                watch()
            continue
        if process.returncode not in ends_with:
            raise ToolFailed(f"{name}: {_last(errors) or _last(output) or f'ended with {process.returncode}'}")
        return output[:_LONGEST]


def _last(text: str) -> str:
    """Return the last line with text other than dashes."""
    lines = [line.strip() for line in text.splitlines() if line.strip(" -\t")]
    return lines[-1][:200] if lines else ""
