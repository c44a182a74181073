"""`linkgauge hold`: for a given time, no linkgauge process measures on this machine. A running measurement stops.

`linkgauge release`: in addition, no linkgauge process keeps the GPUs' driver open.

The request is a file, because the two processes run as different users and may not signal each other: a prolog (root)
holds, a service measures. A request inside a container reaches only the processes that share the folder.
"""

from __future__ import annotations

import math
import os
import stat
import time
from contextlib import suppress

from .bounded_read import bounded_read

# Writable by all users, and emptied at boot: https://refspecs.linuxfoundation.org/FHS_3.0, /run, /tmp. The linkgauge
# packages create the first folder, because a service with a private /tmp does not see the shared /tmp.
_FOLDERS = ("/run/linkgauge", "/run/lock", "/tmp")
HOLD, RELEASE = "hold", "release"
_MOST = 1000  # bytes
LONGEST = 24 * 3600.0  # seconds: after a clock error, a hold must not last for ever


def folder() -> str:
    """The folder of the files through which linkgauge processes on one machine see each other."""
    named = os.environ.get("LINKGAUGE_LOCK_DIR")
    return named or next((path for path in _FOLDERS if _is_shared(path)), _FOLDERS[-1])


def _is_shared(path: str) -> bool:
    """Whether all users may write here. On Fedora and Arch only root may write to /run/lock."""
    try:
        return bool(os.stat(path).st_mode & stat.S_IWOTH) and os.access(path, os.W_OK)
    except OSError:
        return False


def held() -> str | None:
    """Why no probe may measure now, as text. None: there is neither a hold nor a release."""
    return active_request(HOLD) or active_request(RELEASE)


def active_request(what: str) -> str | None:
    """Who requested HOLD or RELEASE and how many seconds are left, as text. None: there is no request."""
    try:
        text = bounded_read(_path(what), _MOST, os.O_NOFOLLOW)
        until, _, who = text.decode("utf-8", "replace").partition(" ")
        left = float(until) - time.time()
    except (OSError, ValueError):
        return None
    did = "held" if what == HOLD else "released"
    return f"{did} by {who.strip() or 'somebody'} for another {left:.0f} s" if 0 < left <= LONGEST else None


def hold(seconds: float, who: str, what: str = HOLD) -> None:
    """Request HOLD or RELEASE from now on. This replaces an earlier request. Raises OSError."""
    end(what)
    # Never write through a link or into a file of another user (fs.protected_regular).
    descriptor = os.open(_path(what), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    with os.fdopen(descriptor, "w") as file:
        os.fchmod(descriptor, 0o644)
        until = math.floor((time.time() + seconds) * 10) / 10  # rounded up, 24 h would be over LONGEST and be ignored
        file.write(f"{until:.1f} {who}\n")


def end(what: str = HOLD) -> None:
    """Withdraw the request. Raises OSError if another user made it."""
    with suppress(FileNotFoundError):
        os.unlink(_path(what))


def _path(what: str) -> str:
    return os.path.join(folder(), f"linkgauge.{what}")
