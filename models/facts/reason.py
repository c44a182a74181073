"""Why something was not checked, in one word of a fixed list."""

from __future__ import annotations

import errno
from enum import Enum


class Reason(str, Enum):
    """The value is the label of the metric `linkgauge_not_checked`. The code that catches an error sets the reason."""

    FAULT = "fault"  # linkgauge itself broke: report it
    STOPPED = "stopped"  # the service has not completed a cycle
    NOT_MEASURED = "not-measured"  # a measurement did not run, or did not run to its end
    AT_REST = "at-rest"  # a link at rest is slower by design: only a link under load can be judged
    OTHER_CONTEXT = "other-context"  # the answer is true of another machine, job, container or cpuset
    NO_EXPECTATION = "no-expectation"  # the value is known, and no expected value is known
    HIDDEN = "hidden"  # a hypervisor or a container hides the hardware
    PERMISSION = "permission"  # this user may not read it
    NO_ANSWER = "no-answer"  # no answer came in time
    LOST = "lost"  # the device no longer answers on its bus
    NOT_INSTALLED = "not-installed"  # a file, a program or a library is absent
    DRIVER = "driver"  # a driver gave an error
    NOT_SUPPORTED = "not-supported"  # the kernel, the driver or the device has no such function
    UNREADABLE = "unreadable"  # the text was refused or makes no sense
    OTHER = "other"  # none of the above; also records of versions that had no reason


_REASONS = {
    errno.EACCES: Reason.PERMISSION,
    errno.EPERM: Reason.PERMISSION,
    errno.ENOENT: Reason.NOT_INSTALLED,
    errno.ENOTDIR: Reason.NOT_INSTALLED,
    errno.ENODEV: Reason.LOST,
    errno.ENXIO: Reason.LOST,
    errno.ETIMEDOUT: Reason.NO_ANSWER,
    errno.ENOSYS: Reason.NOT_SUPPORTED,
    errno.ENOTTY: Reason.NOT_SUPPORTED,
    errno.EOPNOTSUPP: Reason.NOT_SUPPORTED,
}


def reason_of(code: int | None) -> Reason:
    """The reason for an error number of the kernel; OTHER without a number."""
    return Reason.OTHER if code is None else _REASONS.get(code, Reason.UNREADABLE)
