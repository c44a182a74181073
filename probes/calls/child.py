"""Runs a call that can hang in a child process. The child streams records until it ends or its deadline passes."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
from collections.abc import Iterator, Sequence

from ...models.facts.jsonl import decode
from ...models.facts.reason import Reason, is_exhausted, reason_of
from ...models.facts.records import NotChecked, Record
from .deadline import READY, Deadline
from .hold import held
from .registry import CALLS
from .timeouts import stuck

MODULE = f"{__package__}.entrypoint"
_POLL = 0.2  # seconds between two checks whether a person holds the machine
TO_END = 1.0  # seconds that a child has to exit after it has closed its output
# Killed children of all hosts of this process that have not exited yet. Python warns if a Popen object is deleted
# before its child has exited. On a busy machine, or in a driver, the exit can take longer than TO_END.
_ENDING: set[subprocess.Popen[bytes]] = set()


class Children:
    """The children of one host. It remembers a child that could not be killed and does not repeat that call."""

    def __init__(self, command: Sequence[str] = (sys.executable, "-m", MODULE)) -> None:
        self._command = command
        self._stuck: dict[str, subprocess.Popen[bytes]] = {}

    def call(self, what: str, args: Sequence[str], deadline: float) -> Iterator[Record]:
        """Run the call `what` in a child and yield its records for at most `deadline` seconds after it is ready.

        A timeout or a failure is a NotChecked.
        """
        before = self._stuck.get(what)
        if before and before.poll() is None:
            yield unanswered(what, Reason.NO_ANSWER, stuck(f"process {before.pid}"))
            return
        try:
            child = self.start([what, *args])
        except OSError as error:  # no memory, process limit reached, or the interpreter is not executable
            if is_exhausted(error):
                raise
            yield unanswered(what, reason_of(error.errno), str(error.strerror), path=self._command[0])
            return
        try:
            yield from _records(child, what, deadline)
        finally:
            self.end(child, what)

    def start(
        self,
        args: Sequence[str],
        stdin: int = subprocess.DEVNULL,
        stderr: int | None = subprocess.PIPE,
        own_group: bool = False,
    ) -> subprocess.Popen[bytes]:
        """Start a child with a pipe for its output. Raises OSError.

        `python -m` imports modules from the working directory first, and any user may own that directory. Therefore
        the child runs in /. It stays in the process group of its parent, so that Ctrl-C ends both. With `own_group`
        the child and the programs that it starts have their own process group.
        """
        path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry)
        return subprocess.Popen(
            [*self._command, *args],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd="/",
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=own_group,
        )

    @property
    def stuck(self) -> int:
        """The number of children that hang in the kernel and cannot be killed."""
        return sum(child.poll() is None for child in self._stuck.values())

    def end(self, child: subprocess.Popen[bytes], what: str) -> None:
        """Kill the child if it still runs. If it hangs in the kernel, it does not exit: remember it under `what`."""
        _ENDING.difference_update([one for one in _ENDING.copy() if one.poll() is not None])
        if child.poll() is None:
            child.kill()
        try:
            child.wait(timeout=TO_END)
        except subprocess.TimeoutExpired:
            self._stuck[what] = child
            _ENDING.add(child)
        for pipe in (child.stdout, child.stderr):
            if pipe:
                pipe.close()


def _records(child: subprocess.Popen[bytes], what: str, deadline: float) -> Iterator[Record]:
    measures = what in CALLS and CALLS[what].measures
    until = Deadline(deadline)
    partial, errors = b"", b""
    with selectors.DefaultSelector() as ready:
        for pipe in (child.stdout, child.stderr):
            assert pipe
            ready.register(pipe, selectors.EVENT_READ)
        while ready.get_map():
            left = until.left
            if left <= 0:
                yield unanswered(what, Reason.NO_ANSWER, until.missed)
                return
            why = held() if measures else None
            if why:
                yield unanswered(what, Reason.NOT_MEASURED, f"stopped: {why}", "run it again when the machine is free")
                return
            for key, _ in ready.select(min(left, _POLL)):
                part = os.read(key.fd, 1 << 16)
                if not part:
                    ready.unregister(key.fileobj)
                elif key.fileobj is child.stderr:
                    errors = (errors + part)[-2000:]
                else:
                    until.start()
                    *lines, partial = (partial + part).split(b"\n")
                    yield from (decoded(line, what) for line in lines if line != READY)
    try:
        code = child.wait(timeout=TO_END)
    except subprocess.TimeoutExpired:
        return  # all records are here; one of its threads hangs in the kernel
    if code:
        last = errors.decode("utf-8", "replace").strip().rpartition("\n")[2]
        yield unanswered(what, Reason.FAULT if last else Reason.OTHER, last or f"its process ended with {code}")


def decoded(line: bytes, what: str) -> Record:
    """The record in a line of a child; for a line without a record, a NotChecked of the call `what`."""
    try:
        return decode(line)
    except ValueError as wrong:
        return unanswered(what, Reason.FAULT, f"an answer that makes no sense: {wrong}")


def unanswered(what: str, reason: Reason, detail: str, how: str | None = None, path: str | None = None) -> NotChecked:
    """The NotChecked of a call that gave no record. It is named after the facts that the call provides."""
    what = CALLS[what].provides if what in CALLS else what
    return NotChecked(what=what, subject="node", reason=reason, detail=detail, path=path, how=how)
