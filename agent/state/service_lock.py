"""The lock of the state folder, which a running service holds (agent/service/checkpoint.py)."""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import suppress

from ...models.facts.units import as_utc
from .state_file import opened_folder

LOCK = ".lock"
# proc_locks(5): "1: FLOCK  ADVISORY  WRITE 708 08:01:12345 0 EOF"
_HELD = re.compile(r"^[0-9]+: FLOCK +\S+ +WRITE ([0-9]+) [0-9a-f]+:[0-9a-f]+:([0-9]+) ", re.MULTILINE)
_STATE = re.compile(r"\) ([A-Za-z]) ")  # proc_pid_stat(5): after the name of the program


def why_silent(folder: str, at: float) -> str | None:
    """Why the service of this folder completes no cycle. None: it runs, or this user cannot find out.

    `at` is the end of its last cycle, in seconds since 1970. Only root and the service's user can open the lock.
    """
    try:
        with opened_folder(folder) as above:
            descriptor = os.open(LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=above)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        process = _holder(os.fstat(descriptor).st_ino)
        why = f"process {process} of the service is stopped by a signal" if process and _is_stopped(process) else None
    except OSError:
        return None  # a file system without locks
    else:
        why = "no service runs: nothing holds the lock of this folder"
    finally:
        os.close(descriptor)
    return why and f"{folder}: {why}; the last cycle ended {as_utc(at)}"


def _holder(inode: int) -> int | None:
    """The process that holds the lock."""
    with suppress(OSError), open("/proc/locks", encoding="ascii", errors="replace") as locks:
        return next((int(found[1]) for found in _HELD.finditer(locks.read()) if int(found[2]) == inode), None)
    return None


def _is_stopped(process: int) -> bool:
    """Whether a signal or a debugger has stopped the process."""
    with suppress(OSError), open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as stat:
        states = _STATE.findall(stat.read())
        return bool(states) and states[-1] in "Tt"
    return False
