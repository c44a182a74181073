"""`linkgauge hold`: for a while nothing is measured on this machine, and what is being measured lets go at once.

`linkgauge release`: nor does anything of ours keep the GPUs' driver open.

A file, because who holds (a prolog, as root) and who measures (a service's own user) may not signal each other. In a
container it reaches only those who share the folder.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress

from .bounded_read import bounded_read

# Emptied when the machine starts, and meant for everybody: https://refspecs.linuxfoundation.org/FHS_3.0, /run, /tmp.
# The first is what our packages make: a service in a /tmp of its own sees nothing of what lies there.
_FOLDERS = ("/run/linkgauge", "/run/lock", "/tmp")
HOLD, RELEASE = "hold", "release"
_MOST = 1000  # bytes
LONGEST = 24 * 3600.0  # seconds: a clock that was wrong must not stop measuring for good


def folder() -> str:
    """Where the files lie by which runs on one machine know of each other."""
    named = os.environ.get("LINKGAUGE_LOCK_DIR")
    return named or next((path for path in _FOLDERS if _is_everybodys(path)), _FOLDERS[-1])


def _is_everybodys(path: str) -> bool:
    """Not the /run/lock of Fedora and Arch, which is root's alone: root and others would not know of each other."""
    try:
        return bool(os.stat(path).st_mode & stat.S_IWOTH) and os.access(path, os.W_OK)
    except OSError:
        return False


def held() -> str | None:
    """Why nothing may be measured now, in words; None where nobody holds the machine, or has released its driver."""
    return asked(HOLD) or asked(RELEASE)


def asked(what: str) -> str | None:
    """Who asked for HOLD or RELEASE, and for how long yet, in words; None where nobody does."""
    try:
        text = bounded_read(_path(what), _MOST, os.O_NOFOLLOW)
        until, _, who = text.decode("utf-8", "replace").partition(" ")
        left = float(until) - time.time()
    except (OSError, ValueError):
        return None
    did = "held" if what == HOLD else "released"
    return f"{did} by {who.strip() or 'somebody'} for another {left:.0f} s" if 0 < left <= LONGEST else None


def hold(seconds: float, who: str, what: str = HOLD) -> None:
    """Ask for it from now on, in the place of who asked earlier. Raises OSError."""
    end(what)
    # Never through a link that somebody has put there, and never into another's file (fs.protected_regular).
    descriptor = os.open(_path(what), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    with os.fdopen(descriptor, "w") as file:
        os.fchmod(descriptor, 0o644)
        file.write(f"{time.time() + seconds:.1f} {who}\n")


def end(what: str = HOLD) -> None:
    """Ask for it no longer. Raises OSError where another user does."""
    with suppress(FileNotFoundError):
        os.unlink(_path(what))


def _path(what: str) -> str:
    return os.path.join(folder(), f"linkgauge.{what}")
