"""What runs in a child: `python -m linkgauge.probes.calls.entrypoint NAME ARGS` answers in lines of said_lines.py."""

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
from .driver_lock import keep
from .registry import CALLS
from .targets import load
from .worker import DONE, FAILED, SERVE

_PR_SET_PDEATHSIG = 1  # include/uapi/linux/prctl.h
# A tenth of what others get where they want it, and 6 of 7 at disks: without a priority of its own a process has
# (nice + 20) / 5 there (ionice(1)).
_NICE = 10


def main() -> None:
    """Answer one call on standard output, and end: also where a thread of the call still waits for a driver.

    Or, with `--serve`, one call after the other, until nobody asks any more (worker.py).
    """
    code = 0
    try:
        if sys.argv[1] == SERVE:
            serve()
        else:
            answer(*sys.argv[1:])
    except (Exception, KeyboardInterrupt):
        traceback.print_exc()
        code = 1
    # Leaving as usual would wait for that thread, or for locks that it holds; and while it is in the kernel, the
    # process stays, and would keep open what its parent reads to the end.
    sys.stderr.flush()
    os.close(1)
    os.close(2)
    os._exit(code)


def serve() -> None:
    """Calls as JSON lines on standard input; behind the answer to each, a line that says so."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the service, which ends its children
    for line in sys.stdin:
        try:
            answer(*json.loads(line))
        except Exception as bug:
            traceback.print_exc()
            print(FAILED.decode(), f"{type(bug).__name__}: {bug}".replace("\n", " "), flush=True)
        else:
            print(DONE.decode(), flush=True)


def answer(name: str, *args: str) -> None:
    """Print what the call says, as it comes. The modules of the others, which take as long as an answer, stay out."""
    call = CALLS[name]
    if call.measures:
        end_with_parent()
        os.nice(_NICE)
    if call.opens_driver and (who := keep()):
        print(encode(unanswered(name, Reason.DRIVER, f"the driver is {who}")), flush=True)
        return
    answers: Callable[..., Iterator[Record]] = load(call.target)
    for said in answers(*args):
        print(encode(said), flush=True)


def end_with_parent() -> None:
    """Nothing measures unwatched, and no service leaves somebody behind who has the driver open."""
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    listener = select.poll()
    listener.register(1, 0)
    if listener.poll(0):  # it ended before that could be asked for
        os._exit(1)


if __name__ == "__main__":
    main()
