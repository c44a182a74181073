"""Child processes of a node: results, failures, deadlines, and the end of the coordinator."""

from __future__ import annotations

import os
import socket
import time

from linkgauge.agent.fabric.children import Failure, begin, results


def sleeps() -> None:
    time.sleep(60)


def fails() -> None:
    raise ValueError("no such port")


def test_each_child_has_a_result_or_a_reason() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        running = {"good": begin(os.getppid), "bad": begin(fails), "gone": begin(os._exit, 3)}
        assert results(running, 30.0, ours) == {
            "good": os.getpid(),
            "bad": Failure("no such port"),
            "gone": Failure("its process ended without a result"),
        }


def test_a_child_that_hangs_does_not_hold_the_output_of_its_parent_open() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        running = {one: begin(os.readlink, f"/proc/self/fd/{one}") for one in range(3)}
        assert results(running, 30.0, ours) == dict.fromkeys(range(3), os.devnull)


def test_a_late_child_is_killed() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        child = begin(sleeps)
        assert results({"": child}, 0.1, ours) == {"": Failure("no answer within 0.1 s")}
        assert child.process.exitcode == -9


def test_the_end_of_the_coordinator_ends_the_children() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        theirs.close()
        child = begin(sleeps)
        results({"": child}, 60.0, ours)
        assert child.process.exitcode == -9
