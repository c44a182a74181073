"""The child process: `python -m linkgauge.probes.calls.entrypoint NAME ARGS` prints records (models/facts/jsonl.py)."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable, Iterator

from ...models.facts.jsonl import encode
from ...models.facts.reason import Reason
from ...models.facts.records import Record
from .child import unanswered
from .deadline import READY
from .driver_lock import keep
from .registry import CALLS
from .targets import load
from .worker import DONE, FAILED, SERVE, SHARED

_PR_SET_PDEATHSIG = 1  # include/uapi/linux/prctl.h
# Nice 10 gives a tenth of the processor time of a normal process. The disk priority follows: (nice + 20) / 5, so 6 of
# 7 (ionice(1)).
_NICE = 10


def main() -> None:
    """Run one call, print its records, and exit, even if a thread of the call still waits for a driver.

    With `--serve` or `--shared`, run one call after the other until standard input is closed (worker.py, shared.py).
    """
    code = 0
    try:
        if sys.argv[1] == SERVE:
            end_with_parent()
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the service, which ends its children
            serve()
        elif sys.argv[1] == SHARED:
            serve()
        else:
            answer(*sys.argv[1:])
    except (Exception, KeyboardInterrupt):
        traceback.print_exc()
        code = 1
    # A normal exit waits for that thread or for its locks. While the thread is in the kernel, the process stays. So
    # close the pipes here: the parent reads them to the end.
    sys.stderr.flush()
    os.close(1)
    os.close(2)
    os._exit(code)


def serve() -> None:
    """Read calls as JSON lines from standard input. The last line of each answer is DONE or FAILED."""
    for line in sys.stdin:
        try:
            answer(*json.loads(line))
        except Exception as bug:
            traceback.print_exc()
            print(FAILED.decode(), f"{type(bug).__name__}: {bug}".replace("\n", " "), flush=True)
        else:
            print(DONE.decode(), flush=True)


def answer(name: str, *args: str) -> None:
    """Print each record as soon as the call yields it. Import only the module of this call: imports are slow."""
    call = CALLS[name]
    if call.measures:
        end_with_parent()
        os.nice(_NICE)
    if call.opens_driver and (who := keep()):
        print(encode(unanswered(name, Reason.DRIVER, f"the driver is {who}")), flush=True)
        return
    answers: Callable[..., Iterator[Record]] = load(call.target)
    print(READY.decode(), flush=True)
    for record in answers(*args):
        print(encode(record), flush=True)


def end_with_parent() -> None:
    """Kill this process when its parent ends: no probe measures alone, and no orphan keeps the driver open."""
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    listener = select.poll()
    listener.register(1, 0)
    if listener.poll(0):  # the parent ended before prctl
        os._exit(1)


if __name__ == "__main__":
    main()
