"""Child processes of a node: each measures one flow or diagnoses the node, and can be killed."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from msgspec import Struct

from ...probes.calls.timeouts import no_answer

K = TypeVar("K")
_FORK = multiprocessing.get_context("fork")  # the node has no threads
_PR_SET_PDEATHSIG = 1  # include/uapi/linux/prctl.h
_TO_END = 1.0  # seconds that a killed child has to exit; in a driver it can take longer


class Failure(Struct, frozen=True):
    """Why a child has no result."""

    why: str


class Child(Struct, frozen=True):
    """A running function. `result` gives its result, or a Failure."""

    process: multiprocessing.process.BaseProcess
    result: Connection

    def end(self) -> None:
        """Kill it. A child that hangs in the kernel stays."""
        self.process.kill()
        self.process.join(_TO_END)
        self.result.close()


def begin(function: Callable[..., Any], *args: Any) -> Child:
    """Run the function in a child of this process, which ends with it."""
    result, sender = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=_run, args=(os.getpid(), sender, function, args))
    process.start()
    sender.close()
    return Child(process, result)


def results(children: Mapping[K, Child], deadline: float, control: socket.socket) -> dict[K, Any]:
    """The result of each child after at most `deadline` seconds; a Failure for one that failed or is late.

    A message on `control` ends the wait, because the coordinator does not wait for the results any more.
    """
    found: dict[K, Any] = {}
    until = time.monotonic() + deadline
    try:
        while len(found) < len(children):
            open_results = {child.result: key for key, child in children.items() if key not in found}
            ready = wait([*open_results, control], max(0.0, until - time.monotonic()))
            for one in ready:
                if isinstance(one, Connection):
                    found[open_results[one]] = _received(one)
            if not ready or control in ready:
                break
    finally:
        for child in children.values():
            child.end()
    return {key: found.get(key, Failure(no_answer(deadline))) for key in children}


def _received(result: Connection) -> Any:
    try:
        return result.recv()
    except (EOFError, OSError):
        return Failure("its process ended without a result")


def _run(parent: int, sender: Connection, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    if os.getppid() != parent:  # it ended before prctl()
        os._exit(1)
    _close_output()
    try:
        sender.send(function(*args))
    except Exception as error:
        sender.send(Failure(str(error) or type(error).__name__))
    os._exit(0)  # a thread that waits for a driver does not end


def _close_output() -> None:
    """A child that hangs in the kernel stays. srun waits 60 s for the end of the output, so it holds none."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for one in (0, 1, 2):
        os.dup2(nowhere, one)
    os.close(nowhere)
