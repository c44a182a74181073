"""Why something was not checked, as one word of a fixed list."""

from __future__ import annotations

import errno
from enum import Enum


class Reason(str, Enum):
    """The value is the `reason` label of the metric `linkgauge_not_checked`. The code that catches an error sets the
    reason.
    """

    FAULT = "fault"  # linkgauge failed because of its own bug: report it
    STOPPED = "stopped"  # the service has not completed a cycle
    NOT_MEASURED = "not-measured"  # a measurement did not run or did not finish
    AT_REST = "at-rest"  # an idle link is slower by design; only a link under load can be checked
    OTHER_CONTEXT = "other-context"  # the value belongs to another machine, job, container or cpuset
    NO_EXPECTATION = "no-expectation"  # the value is known, but no expected value
    HIDDEN = "hidden"  # a hypervisor or a container hides the hardware
    PERMISSION = "permission"  # this user may not read the value
    NO_ANSWER = "no-answer"  # no answer came before our deadline
    LOST = "lost"  # the device no longer answers on its bus
    NOT_INSTALLED = "not-installed"  # a file, a program or a library is absent
    DRIVER = "driver"  # a driver gave an error
    NOT_SUPPORTED = "not-supported"  # the kernel, the driver or the device has no such function
    UNREADABLE = "unreadable"  # a read failed, or the text makes no sense
    EXHAUSTED = "exhausted"  # linkgauge or the machine has no free file descriptor; that says nothing about the node
    INCOMPLETE = "incomplete"  # a part of the input is missing, cut off or was not read
    CONTRADICTED = "contradicted"  # two sources disagree on a state
    OTHER = "other"  # none of the above; also records of versions without a reason


_REASONS = {
    # Resources of this machine or process are used up. The file or program may be good.
    errno.EAGAIN: Reason.OTHER,
    errno.EMFILE: Reason.EXHAUSTED,
    errno.ENFILE: Reason.EXHAUSTED,
    errno.ENOMEM: Reason.OTHER,
    errno.EACCES: Reason.PERMISSION,
    errno.EPERM: Reason.PERMISSION,
    errno.ENOENT: Reason.NOT_INSTALLED,
    errno.ENOTDIR: Reason.NOT_INSTALLED,
    errno.ENODEV: Reason.LOST,
    errno.ENXIO: Reason.LOST,
    # The kernel did answer. NO_ANSWER is for our deadlines: after one, the service reads the whole source less often.
    errno.ETIMEDOUT: Reason.DRIVER,
    errno.ENOSYS: Reason.NOT_SUPPORTED,
    errno.ENOTTY: Reason.NOT_SUPPORTED,
    errno.EOPNOTSUPP: Reason.NOT_SUPPORTED,
}


def reason_of(code: int | None) -> Reason:
    """The reason for an error number of the kernel. Without a number: OTHER."""
    return Reason.OTHER if code is None else _REASONS.get(code, Reason.UNREADABLE)


def is_exhausted(error: BaseException) -> bool:
    """Whether the process, or the machine, has no free file descriptor."""
    return isinstance(error, OSError) and reason_of(error.errno) is Reason.EXHAUSTED
