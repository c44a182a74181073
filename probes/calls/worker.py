"""Worker processes that run one call after the other, so that a service starts no interpreter for each call.

Calls to NVIDIA's driver have their own worker. It is the only process of a service that has the driver open, and
`linkgauge release` ends it. If the driver hangs, other calls do not wait.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress

from ...models.facts.reason import Reason, is_exhausted
from ...models.facts.records import Record
from .child import MODULE, TO_END, Children, decoded, unanswered
from .deadline import READY, Deadline
from .hold import RELEASE, active_request
from .registry import CALLS
from .timeouts import hung, stuck

SERVE = "--serve"
DONE, FAILED = b".", b"!"  # start of the last line of an answer; no encoded record starts so (models/facts/jsonl.py)
SHARED = "--shared"  # the same in a one-shot run
DRIVER, _OTHERS = "nvml", "others"
_POLL = 0.2  # seconds between two checks for a release request


class Workers(Children):
    """The children of one host: two permanent workers, and one child for each call that measures."""

    def __init__(self, command: Sequence[str] = (sys.executable, "-m", MODULE)) -> None:
        super().__init__(command)
        self._serving: dict[str, subprocess.Popen[bytes]] = {}

    def call(self, what: str, args: Sequence[str], deadline: float) -> Iterator[Record]:
        """Run the call `what` in a worker and yield its records for at most `deadline` seconds after it is ready.

        A timeout or a failure is a NotChecked. A worker that hangs is killed.
        """
        call = CALLS.get(what)
        if call and call.measures:
            yield from super().call(what, args, deadline)
            return
        group = group_of(what)
        # All calls to NVIDIA's driver hang together. Other calls can hang in different drivers.
        key = group if group == DRIVER else what
        refusal = self._refusal(group, key)
        if refusal:
            yield unanswered(what, *refusal)
            return
        try:
            worker = self._worker(group)
            assert worker.stdin
            import json  # not msgspec: a name of a file may not be UTF-8

            worker.stdin.write(json.dumps([what, *args]).encode() + b"\n")
            worker.stdin.flush()
        except OSError as error:
            if is_exhausted(error):
                raise
            self._drop(group, key)
            yield unanswered(what, Reason.OTHER, f"its process ended: {error.strerror}")
            return
        complete, hangs = False, False
        try:
            for record in self._answer(group, worker, what, deadline):
                complete = record is None
                if record is not None:
                    hangs = hangs or hung(record)
                    yield record
        finally:
            # The worker hangs or has ended, the caller has stopped reading, or a thread of the worker waits for a GPU.
            if hangs or not complete:
                self._drop(group, key)

    def release(self) -> str | None:
        """Close the driver if there is a release request. Returns who made it, as text."""
        who = active_request(RELEASE)
        if who:
            self._drop(DRIVER, DRIVER)
        return who

    def close(self) -> None:
        """Kill all workers, then wait for each."""
        for worker in list(self._serving.values()):  # a copy: another thread may still run a call
            _kill(worker)
        for group in list(self._serving):
            self._drop(group, group)

    def _refusal(self, group: str, key: str) -> tuple[Reason, str] | None:
        """Why the call cannot run now: a release request, or an earlier worker that still hangs."""
        if group == DRIVER and (who := self.release()):
            return Reason.DRIVER, f"the driver is {who}"
        before = self._stuck.get(key)
        if before is None or before.poll() is not None:
            return None
        return Reason.NO_ANSWER, stuck(f"process {before.pid}")

    def _worker(self, group: str) -> subprocess.Popen[bytes]:
        worker = self._serving.get(group)
        if worker is None or worker.poll() is not None:
            self._drop(group, group)
            self._serving[group] = worker = self.start_worker(group)
        return worker

    def start_worker(self, group: str) -> subprocess.Popen[bytes]:
        """Start a worker. It ends with the thread that starts it, and its programs end with it. Raises OSError."""
        return self.start([SERVE, group], stdin=subprocess.PIPE, stderr=None, own_group=True)

    def _drop(self, group: str, key: str) -> None:
        """End the worker of the group. If it hangs in the kernel, remember it under `key`."""
        if worker := self._serving.pop(group, None):
            with suppress(OSError):  # the worker has ended and buffered bytes cannot be written
                assert worker.stdin
                worker.stdin.close()
            _kill(worker)
            self.end(worker, key)

    def _answer(
        self, group: str, worker: subprocess.Popen[bytes], what: str, deadline: float
    ) -> Iterator[Record | None]:
        """The records of one call, then None if the answer is complete."""
        until, partial = Deadline(deadline), b""
        assert worker.stdout
        with selectors.DefaultSelector() as ready:
            ready.register(worker.stdout, selectors.EVENT_READ)
            while (left := until.left) > 0:
                if not ready.select(min(left, _POLL)):
                    who = self.release()  # `linkgauge release` does not wait for this call
                    if who and group == DRIVER:
                        yield unanswered(what, Reason.DRIVER, f"the driver is {who}")
                        return
                    continue
                part = os.read(worker.stdout.fileno(), 1 << 16)
                *lines, partial = (partial + part).split(b"\n")
                if lines:
                    until.start()
                for line in (line for line in lines if line != READY):
                    if line[:1] == FAILED:
                        fault = line[1:].decode("utf-8", "replace").strip() or "it failed"
                        yield unanswered(what, Reason.FAULT, fault)
                    if line[:1] in (FAILED, DONE):
                        yield None
                        return
                    yield decoded(line, what)
                if not part:
                    yield unanswered(what, Reason.OTHER, f"its process ended with {_code(worker)}")
                    return
        yield unanswered(what, Reason.NO_ANSWER, until.missed)


def group_of(what: str) -> str:
    """The worker of a call."""
    return DRIVER if what in CALLS and CALLS[what].opens_driver else _OTHERS


def _kill(worker: subprocess.Popen[bytes]) -> None:
    """Kill the worker and the programs that it has started."""
    if worker.poll() is None:
        with suppress(OSError):
            os.killpg(worker.pid, signal.SIGKILL)


def _code(worker: subprocess.Popen[bytes]) -> int | str:
    try:
        return worker.wait(TO_END)
    except subprocess.TimeoutExpired:
        return "an unknown code"
