"""The start of the program: a clean environment, and a process of its own for commands that read the machine.

A thread that waits for a hung file system or driver cannot be killed, and a process with such a thread does not end
(Documentation/filesystems/fuse.rst, "Interrupting filesystem operations"). So these commands run in a child. The parent
reads no file of the machine: it ends when the command is complete, and leaves the child to the kernel.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

from ..inputs.environment import clean

_READERS = {"accept", "capture", "diagnose", "expect", "gate", "ticket", "topology"}
_FORWARDED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
_DONE = signal.SIGUSR1  # from the child: the command is complete, and the pipe has its exit code
_PATIENCE = 1.0  # seconds that a child has to end
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
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    try:
        _main()
    except SystemExit as leave:
        _tell(parent, result, leave.code if isinstance(leave.code, int) else 0)
        raise


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
    """Forward signals to the child until it ends or its command is complete. Then end as it ended."""
    while True:
        got = signal.sigwaitinfo(watched)
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
