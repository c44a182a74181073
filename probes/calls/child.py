"""Questions that can hang are asked in a child, whose answers come one by one until its deadline ends it."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from ...models.facts.jsonl import decode
from ...models.facts.reason import Reason, reason_of
from ...models.facts.records import NotChecked, Record
from .hold import held
from .registry import CALLS
from .timeouts import no_answer, stuck

MODULE = f"{__package__}.entrypoint"
_GLANCE = 0.2  # seconds between two looks whether somebody holds the machine
TO_END = 1.0  # seconds that a child has to end once it has closed what it writes to
# Children that were killed and have not ended yet, of all hosts of this process. Python warns of a child that it
# forgets before the child has ended, and a busy machine or a driver can take longer than TO_END to end one.
_ENDING: set[subprocess.Popen[bytes]] = set()


class Children:
    """The children of one host. One that could not be killed is remembered, so that nothing hangs twice at once."""

    def __init__(self, command: Sequence[str] = (sys.executable, "-m", MODULE)) -> None:
        self._command = command
        self._stuck: dict[str, subprocess.Popen[bytes]] = {}

    def ask(self, what: str, args: Sequence[str], deadline: float) -> Iterator[Record]:
        """What a child that runs the call `what` says within `deadline` seconds; if it hangs, that too."""
        before = self._stuck.get(what)
        if before and before.poll() is None:
            yield unanswered(what, Reason.NO_ANSWER, stuck(f"process {before.pid}"))
            return
        try:
            child = self.start([what, *args])
        except OSError as error:  # no memory, no process left, the interpreter may not be run
            yield unanswered(what, reason_of(error.errno), str(error.strerror), path=self._command[0])
            return
        try:
            yield from _said(child, what, deadline)
        finally:
            self.end(child, what)

    def start(
        self,
        args: Sequence[str],
        stdin: int = subprocess.DEVNULL,
        stderr: int | None = subprocess.PIPE,
        apart: bool = False,
    ) -> subprocess.Popen[bytes]:
        """A child with a pipe for what it says. Raises OSError.

        `python -m` takes modules from the current folder first, and that may be anybody's: the child stands in /. It
        stays in the group of its parent, whose threads wait for it: Ctrl-C ends both. One that stands `apart` has a
        group of its own, with the programs that it starts.
        """
        path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry)
        return subprocess.Popen(
            [*self._command, *args],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd="/",
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=apart,
        )

    @property
    def stuck(self) -> int:
        """How many hang in the kernel, and cannot be ended."""
        return sum(child.poll() is None for child in self._stuck.values())

    def end(self, child: subprocess.Popen[bytes], what: str) -> None:
        """Kill what still runs. A process that hangs in the kernel does not die; it is left behind and remembered."""
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


def _said(child: subprocess.Popen[bytes], what: str, deadline: float) -> Iterator[Record]:
    measures = what in CALLS and CALLS[what].measures
    end = time.monotonic() + deadline
    waiting, errors = b"", b""
    with selectors.DefaultSelector() as ready:
        for pipe in (child.stdout, child.stderr):
            assert pipe
            ready.register(pipe, selectors.EVENT_READ)
        while ready.get_map():
            left = end - time.monotonic()
            if left <= 0:
                yield unanswered(what, Reason.NO_ANSWER, no_answer(deadline))
                return
            why = held() if measures else None
            if why:
                yield unanswered(what, Reason.NOT_MEASURED, f"stopped: {why}", "run it again when the machine is free")
                return
            for key, _ in ready.select(min(left, _GLANCE)):
                part = os.read(key.fd, 1 << 16)
                if not part:
                    ready.unregister(key.fileobj)
                elif key.fileobj is child.stderr:
                    errors = (errors + part)[-2000:]
                else:
                    *lines, waiting = (waiting + part).split(b"\n")
                    yield from (_decoded(line, what) for line in lines)
    try:
        code = child.wait(timeout=TO_END)
    except subprocess.TimeoutExpired:
        return  # it has said all; a thread of it hangs in the kernel
    if code:
        last = errors.decode("utf-8", "replace").strip().rpartition("\n")[2]
        yield unanswered(what, Reason.FAULT if last else Reason.OTHER, last or f"its process ended with {code}")


def _decoded(line: bytes, what: str) -> Record:
    try:
        return decode(line)
    except ValueError as wrong:
        return unanswered(what, Reason.FAULT, f"an answer that makes no sense: {wrong}")


def unanswered(what: str, reason: Reason, detail: str, how: str | None = None, path: str | None = None) -> NotChecked:
    """What a call did not say, named after the facts that it gives."""
    what = CALLS[what].provides if what in CALLS else what
    return NotChecked(what=what, subject="node", reason=reason, detail=detail, path=path, how=how)
