"""A child that answers one call after the other: a service does not start an interpreter for every question.

NVIDIA's driver has one of its own. So no process of a service has the driver open but that one, which `linkgauge
release` ends, and a driver that hangs keeps nobody waiting but who asks for it.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

from ...models.facts.jsonl import decode
from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked, Record
from .child import MODULE, TO_END, Children, unanswered
from .hold import RELEASE, asked
from .registry import CALLS
from .timeouts import hung, no_answer, stuck

SERVE = "--serve"
DONE, FAILED = b".", b"!"  # the last line of an answer; no line of said_lines.py begins so
_DRIVER, _OTHERS = "nvml", "others"
_GLANCE = 0.2  # seconds between two looks whether somebody wants the driver closed


class Workers(Children):
    """The children of one host, of which two stay. What measures still has one of its own, which it ends with."""

    def __init__(self, command: Sequence[str] = (sys.executable, "-m", MODULE)) -> None:
        super().__init__(command)
        self._serving: dict[str, subprocess.Popen[bytes]] = {}

    def ask(self, what: str, args: Sequence[str], deadline: float) -> Iterator[Record]:
        """What the worker says within `deadline` seconds; if it hangs, that too, and it is killed."""
        call = CALLS.get(what)
        if call and call.measures:
            yield from super().ask(what, args, deadline)
            return
        group = _DRIVER if call and call.opens_driver else _OTHERS
        # All questions hang in the same driver; of others each may hang in something else.
        key = group if group == _DRIVER else what
        barred = self._barred(group, key)
        if barred:
            yield unanswered(what, *barred)
            return
        try:
            worker = self._worker(group)
            assert worker.stdin
            worker.stdin.write(json.dumps([what, *args]).encode() + b"\n")
            worker.stdin.flush()
        except OSError as error:
            self._drop(group, key)
            yield unanswered(what, Reason.OTHER, f"its process ended: {error.strerror}")
            return
        whole, hangs = False, False
        try:
            for said in self._answer(group, worker, what, deadline):
                whole = said is None
                if said is not None:
                    hangs = hangs or hung(said)
                    yield said
        finally:
            # It hangs or has ended, or whoever asked does not listen any more; or a thread of it waits for a GPU.
            if hangs or not whole:
                self._drop(group, key)

    def release(self) -> str | None:
        """Close the driver where somebody asks for that; who, in words."""
        who = asked(RELEASE)
        if who:
            self._drop(_DRIVER, _DRIVER)
        return who

    def close(self) -> None:
        """End all of them, one waiting for no other."""
        for worker in list(self._serving.values()):  # a thread may be asking yet
            _kill(worker)
        for group in list(self._serving):
            self._drop(group, group)

    def _barred(self, group: str, key: str) -> tuple[Reason, str] | None:
        if group == _DRIVER and (who := self.release()):
            return Reason.DRIVER, f"the driver is {who}"
        before = self._stuck.get(key)
        if before is None or before.poll() is not None:
            return None
        return Reason.NO_ANSWER, stuck(f"process {before.pid}")

    def _worker(self, group: str) -> subprocess.Popen[bytes]:
        worker = self._serving.get(group)
        if worker is None or worker.poll() is not None:
            self._drop(group, group)
            self._serving[group] = worker = self.start([SERVE, group], stdin=subprocess.PIPE, stderr=None, apart=True)
        return worker

    def _drop(self, group: str, key: str) -> None:
        """End it; should it hang in the kernel, it is remembered by what it was asked."""
        if worker := self._serving.pop(group, None):
            with suppress(OSError):  # a pipe that nobody reads has still something to be written
                assert worker.stdin
                worker.stdin.close()
            _kill(worker)
            self.end(worker, key)

    def _answer(
        self, group: str, worker: subprocess.Popen[bytes], what: str, deadline: float
    ) -> Iterator[Record | None]:
        """What it says; None at the end where the answer is whole."""
        until, waiting = time.monotonic() + deadline, b""
        assert worker.stdout
        with selectors.DefaultSelector() as ready:
            ready.register(worker.stdout, selectors.EVENT_READ)
            while (left := until - time.monotonic()) > 0:
                if not ready.select(min(left, _GLANCE)):
                    who = self.release()  # who waits for that need not wait for an answer first
                    if who and group == _DRIVER:
                        yield unanswered(what, Reason.DRIVER, f"the driver is {who}")
                        return
                    continue
                part = os.read(worker.stdout.fileno(), 1 << 16)
                *lines, waiting = (waiting + part).split(b"\n")
                for line in lines:
                    if line[:1] == FAILED:
                        fault = line[1:].decode("utf-8", "replace").strip() or "it failed"
                        yield unanswered(what, Reason.FAULT, fault)
                    if line[:1] in (FAILED, DONE):
                        yield None
                        return
                    yield _decoded(line, what)
                if not part:
                    yield unanswered(what, Reason.OTHER, f"its process ended with {_code(worker)}")
                    return
        yield unanswered(what, Reason.NO_ANSWER, no_answer(deadline))


def _kill(worker: subprocess.Popen[bytes]) -> None:
    """It, and the programs that it has started."""
    if worker.poll() is None:
        with suppress(OSError):
            os.killpg(worker.pid, signal.SIGKILL)


def _code(worker: subprocess.Popen[bytes]) -> int | str:
    try:
        return worker.wait(TO_END)
    except subprocess.TimeoutExpired:
        return "nobody knows what"


def _decoded(line: bytes, what: str) -> Record | NotChecked:
    try:
        return decode(line)
    except ValueError as wrong:
        return unanswered(what, Reason.FAULT, f"an answer that makes no sense: {wrong}")
