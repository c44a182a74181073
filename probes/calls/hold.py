"""`linkgauge hold`: for a given time, no linkgauge process measures on this machine. A running measurement stops.

`linkgauge release`: in addition, no linkgauge process keeps the GPUs' driver open.

The request is a file, because the two processes run as different users and may not signal each other: a prolog (root)
holds, a service measures. A request counts only if its owner may make it: root, the user of this process, the user
`linkgauge`, or a member of the group `linkgauge`. The kernel records the owner. A socket with SO_PEERCRED would need a
service that runs; a file also stops measurements that an operator started.
"""

from __future__ import annotations

import errno
import grp
import math
import os
import pwd
import re
import stat
import time
from contextlib import suppress

from .bounded_read import read_up_to

# The packages create it: only root and the group may write, all users may read. /run is emptied at boot
# (https://refspecs.linuxfoundation.org/FHS_3.0).
_FOLDER = "/run/linkgauge"
_SESSIONS = "/run/user"  # private folders of users: pam_systemd(8)
_TEMPORARY = "/tmp"
_NAME = "linkgauge"  # of the service's user and of the group
_UNMAPPED = 65534  # user_namespaces(7): the owner of a file whose user is not in the namespace of this process
HOLD, RELEASE = "hold", "release"
_MOST = 1000  # bytes
LONGEST = 24 * 3600.0  # seconds: after a clock error, a hold must not last for ever
_PROCESS = re.compile(r"process \d{1,10}")


def folder() -> str:
    """The folder of requests. Where no package is installed, root creates it; other users have one for themselves.

    Raises OSError if the folder of this user belongs to another user.
    """
    named = os.environ.get("LINKGAUGE_LOCK_DIR")
    if named or os.path.isdir(_FOLDER):
        return named or _FOLDER
    if os.geteuid() == 0:
        with suppress(OSError):  # a container with a read-only root
            os.mkdir(_FOLDER, 0o755)
            group = group_id()
            if group is not None:
                os.chown(_FOLDER, -1, group)
                os.chmod(_FOLDER, 0o2775)
            return _FOLDER
    return own_folder()


def own_folder() -> str:
    """A folder for this user alone. Raises OSError if another user made it."""
    user = os.geteuid()
    session = f"{_SESSIONS}/{user}"
    if os.access(session, os.W_OK):
        return session
    path = f"{_TEMPORARY}/linkgauge-{user}"
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != user or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(errno.EACCES, "another user may write there", path)
    return path


def group_id() -> int | None:
    """The number of the group `linkgauge`. None: this machine has no such group."""
    try:
        return grp.getgrnam(_NAME).gr_gid
    except KeyError:
        return None


def held() -> str | None:
    """Why no probe may measure now, as text. None: there is neither a hold nor a release."""
    return active_request(HOLD) or active_request(RELEASE)


def active_request(what: str) -> str | None:
    """Who requested HOLD or RELEASE and how many seconds are left, as text. None: there is no request that counts."""
    try:
        who, text = _content(_path(what))
        until, _, process = text.partition(" ")
        left = float(until) - time.time()
    except (OSError, ValueError):
        return None
    did = "held" if what == HOLD else "released"
    known = _PROCESS.match(process)
    by = f"{who}, {known[0]}," if known else who
    return f"{did} by {by} for another {left:.0f} s" if 0 < left <= LONGEST else None


def _content(path: str) -> tuple[str, str]:
    """The owner and the text of a request. Raises OSError, and ValueError if the request does not count."""
    # The path can be a pipe of another user, which must not block.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        who = owner(os.fstat(descriptor))
        if who is None:
            raise ValueError("made by a user who may not make it")
        return who, read_up_to(descriptor, _MOST)[:_MOST].decode("utf-8", "replace")
    finally:
        os.close(descriptor)


def owner(status: os.stat_result) -> str | None:
    """The name of the file's owner. None: no plain file, or other users may write it or can have put it there.

    A user can give a file only to a group of this user. So a file of the group is of a member (chown(2)).
    """
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        return None
    users, group = {0, os.geteuid()}, group_id()
    with suppress(KeyError):
        users.add(pwd.getpwnam(_NAME).pw_uid)
    others = stat.S_IWOTH if status.st_gid in (0, group) else stat.S_IWOTH | stat.S_IWGRP
    if status.st_mode & others or not (status.st_uid in users or status.st_gid == group):
        return None
    if status.st_uid == _UNMAPPED and status.st_uid not in users:
        return f"a member of the group {_NAME}"
    return user_name(status.st_uid)


def user_name(user: int) -> str:
    """The name of the user. A user of a container may have none."""
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"


def give_to_group(descriptor: int) -> bool:
    """Give the open file to the group `linkgauge`. Returns whether it is possible: only for root and its members.

    A new file in the folder of the packages has this group already, and the filter of system calls of the service
    (deploy/systemd/linkgauge.service, ~@privileged) refuses fchown().
    """
    group = group_id()
    if group is None:
        return False
    if os.fstat(descriptor).st_gid == group:
        return True
    try:
        os.fchown(descriptor, -1, group)
    except OSError:
        return False
    return True


def hold(seconds: float, process: int, what: str = HOLD) -> None:
    """Request HOLD or RELEASE from now on, for the script `process`. It replaces an earlier request. Raises OSError."""
    end(what)
    # Never write through a link or into a file of another user.
    descriptor = os.open(_path(what), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    with os.fdopen(descriptor, "w") as file:
        os.fchmod(descriptor, 0o644)
        give_to_group(descriptor)
        until = math.floor((time.time() + seconds) * 10) / 10  # rounded up, 24 h would be over LONGEST and be ignored
        file.write(f"{until:.1f} process {process}\n")


def end(what: str = HOLD) -> None:
    """Withdraw the request. Raises OSError if this user may not."""
    remove(_path(what))


def remove(path: str) -> None:
    """Remove what has this name. A folder can have content, so it gets another name. Raises OSError."""
    with suppress(FileNotFoundError):
        try:
            os.unlink(path)
        except IsADirectoryError:
            os.rename(path, f"{path}.{os.urandom(8).hex()}")


def _path(what: str) -> str:
    return os.path.join(folder(), f"linkgauge.{what}")
