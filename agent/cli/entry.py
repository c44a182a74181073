"""The start of the program: a clean environment, and a process of its own for commands that read the machine.

A thread that waits for a hung file system or driver cannot be killed, and a process with such a thread does not end
(Documentation/filesystems/fuse.rst, "Interrupting filesystem operations"). So these commands run in a child. The parent
reads no file of the machine: it ends when the command is complete, and leaves the child to the kernel.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from math import inf
from typing import NoReturn

from ..inputs.environment import clean

_READERS = {
    *("accept", "capture", "collective", "compare", "diagnose", "expect", "gate", "plan", "status", "ticket"),
    *("fabric", "fleet", "history", "top", "topology"),
}
_FORWARDED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
_DONE = signal.SIGUSR1  # from the child: the command is complete, and the pipe has its exit code
_PATIENCE = 1.0  # seconds that a child has to end
_LAST_REPORT = 5.0  # seconds that an interrupted child has to write what it has read
_SI_KERNEL = 0x80  # include/uapi/asm-generic/siginfo.h: the terminal sent the signal, and the child has it, too
_PR_SET_PDEATHSIG = 1  # include/uapi/linux/prctl.h


def run() -> None:
    """Run the command line of this process."""
    if "_LINKGAUGE_COMPLETE" in os.environ:  # click's completion passes the words in variables
        _main()
        return
    clean(os.environ, os.geteuid() == 0)
    command = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    if command in _READERS:
        _in_child()
    else:
        _main()


def _main() -> None:
    from .main import main

    main(prog_name="linkgauge")


def _in_child() -> None:
    """Run the command in a child, and end when the child ends or its command is complete."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    forwarded = {number for number in _FORWARDED if signal.getsignal(number) != signal.SIG_IGN}  # nohup(1)
    watched = {*forwarded, signal.SIGCHLD, _DONE}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    code, result = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child:
        os.close(result)
        _wait(child, code, watched)
    os.close(code)
    _end_with(parent)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt_once)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    try:
        _main()
    except SystemExit as leave:
        _tell(parent, result, _exit_code(leave.code))
        raise


def _interrupt_once(number: int, frame: object) -> NoReturn:
    """Raise KeyboardInterrupt at the first signal only. A signal to the process group comes twice: from its sender and
    from the parent, which ends this process at a second Ctrl-C.
    """
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _exit_code(code: object) -> int:
    """The exit code of SystemExit, as Python defines it (https://docs.python.org/3/library/sys.html).

    A non-integer code is printed, and the exit code is 1.
    """
    if code is None or isinstance(code, int):
        return int(code or 0)
    with suppress(OSError, ValueError):
        sys.stderr.write(f"{code}\n")
    return 1


def _end_with(parent: int) -> None:
    """Let the kernel kill this process when the parent ends."""
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before prctl()
        os._exit(1)


def _tell(parent: int, result: int, code: int) -> None:
    """Tell the parent the exit code, and close the output: this process may stay, but its reader must see the end."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return  # Python reports it at the exit
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.write(result, bytes([code & 0xFF]))
    os.kill(parent, _DONE)


def _wait(child: int, code: int, watched: set[signal.Signals]) -> NoReturn:
    """Forward signals to the child until it ends or its command is complete. Then end as it ended.

    After Ctrl-C the child has some seconds to write its report. A second Ctrl-C does not wait for it.
    """
    interrupt, until = 0, inf
    while (got := _next(watched, until)) is not None:
        if got.si_signo == _DONE and got.si_pid == child:
            _ended(child)
            _leave(os.read(code, 1)[0])
        if got.si_signo == signal.SIGCHLD and (status := _status(child)) is not None:
            _leave(status)
        if got.si_signo in _FORWARDED and got.si_code != _SI_KERNEL:
            os.kill(child, got.si_signo)
        if got.si_signo in (signal.SIGHUP, signal.SIGTERM):
            status = _ended(child)
            _leave(-got.si_signo if status is None else status)
        if got.si_signo in (signal.SIGINT, signal.SIGQUIT):
            until = 0 if interrupt else time.monotonic() + _LAST_REPORT
            interrupt = got.si_signo
    os.kill(child, signal.SIGKILL)
    _leave(-interrupt)


def _next(watched: set[signal.Signals], until: float) -> signal.struct_siginfo | None:
    """The next signal. None: there is none until this time."""
    if until == inf:
        return signal.sigwaitinfo(watched)
    return signal.sigtimedwait(watched, max(0.0, until - time.monotonic()))


def _ended(child: int) -> int | None:
    """Wait for the end of the child, and kill it after some time. Returns its status; None if it does not end."""
    while (status := _status(child)) is None:
        if signal.sigtimedwait({signal.SIGCHLD}, _PATIENCE) is None:
            os.kill(child, signal.SIGKILL)
            return None
    return status


def _status(child: int) -> int | None:
    """The exit code of the child, negative for a signal; None while it runs."""
    ended, status = os.waitpid(child, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def _leave(status: int) -> NoReturn:
    """End with an exit code, or by a signal as the child did."""
    if status < 0:
        if -status not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-status, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {-status})
        os.kill(os.getpid(), -status)
    os._exit(status & 0xFF)
