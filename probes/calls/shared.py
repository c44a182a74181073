"""The children of a one-shot run. Short calls share a process, because each interpreter takes time to start."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from threading import Lock
from weakref import finalize

from ...models.facts.reason import Reason
from ...models.facts.records import Record
from .child import MODULE, TO_END, Children, unanswered
from .registry import CALLS
from .timeouts import hung, stuck
from .worker import DRIVER, SHARED, Workers, group_of


class SharedChildren(Workers):
    """Sources run in parallel threads. Calls of one group run one after the other in one process.

    A call that takes long by design (`alone`), and a call that measures, has a process of its own.
    """

    def __init__(self, command: Sequence[str] = (sys.executable, "-m", MODULE)) -> None:
        super().__init__(command)
        self._locks: defaultdict[str, Lock] = defaultdict(Lock)
        self._driver_hangs = False
        finalize(self, _end, self._serving)

    def call(self, what: str, args: Sequence[str], deadline: float) -> Iterator[Record]:
        """Run the call `what` and yield its records. Its deadline of `deadline` seconds starts when it runs."""
        call = CALLS.get(what)
        if call is None or call.alone or call.measures:
            yield from Children.call(self, what, args, deadline)
            return
        group = group_of(what)
        with self._locks[group]:  # released before the first record: a source may stop reading
            if group == DRIVER and self._driver_hangs:
                yield unanswered(what, Reason.NO_ANSWER, stuck("the driver"))
                return
            records = list(super().call(what, args, deadline))
            self._driver_hangs = self._driver_hangs or (group == DRIVER and any(map(hung, records)))
        yield from records

    def start_worker(self, group: str) -> subprocess.Popen[bytes]:
        """Start a process that ends with its input, not with the thread that starts it: that is the thread of one
        source.
        """
        return self.start([SHARED, group], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)


def _end(serving: Mapping[str, subprocess.Popen[bytes]]) -> None:
    """Kill the processes when the run ends, and close their pipes."""
    for process in serving.values():
        process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=TO_END)
        for pipe in (process.stdin, process.stdout):
            if pipe:
                with suppress(OSError):
                    pipe.close()
