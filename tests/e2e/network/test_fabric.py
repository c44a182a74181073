"""`linkgauge fabric` on eight nodes below two leaves: network namespaces on two bridges, with links that tc limits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.accuracy.networks.leaves import Unavailable, leaves, locks, namespace, started, subjects, topology
from linkgauge.models.fabric.fabric_localization import Part
from tests.support.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

NODES = 8
OPTIONS = ("--seconds", "0.3", "--wait", "120")


def finished(nodes: Sequence[subprocess.Popen[str]]) -> Any:
    """The report of rank 0, after all nodes ended."""
    output, errors = nodes[0].communicate(timeout=120)
    for node in nodes[1:]:
        node.communicate(timeout=30)
    assert output, errors
    return json.loads(output)


def test_a_slow_port_and_a_slow_uplink_are_named(tmp_path: Path) -> None:
    """bench/accuracy/networks/leaves.py has each of them alone, and two ports."""
    slow = {Part("uplink", "leaf0", "send"): 0.5, Part("uplink", "leaf0", "receive"): 0.5}
    slow |= {Part("port", "node5", "send"): 0.4, Part("port", "node5", "receive"): 0.4}
    try:
        with leaves(NODES, slow):
            where = str(topology(tmp_path, NODES))
            report = finished(started(NODES, *OPTIONS, "--patience", "60", "--topology", where))
    except Unavailable as why:
        pytest.skip(str(why))
    assert subjects(report) == {("port", "node5"), ("uplink", "leaf0-leaf1")}
    assert all(cause["alone"] < 0.7 * cause["usual"] for cause in report["causes"])
    assert [one["lost"] for one in report["members"]] == [None] * NODES
    assert report["places"] == {"node5": "leaf1", "leaf0": "below spine", "leaf1": "below spine"}


def test_a_killed_a_stopped_and_a_held_node_are_named_and_the_others_report(tmp_path: Path) -> None:
    try:
        with leaves(NODES, {}):
            hold(7)
            nodes = started(NODES, *OPTIONS, "--patience", "15")
            try:
                ready = nodes[0].stderr
                assert ready
                until(lambda: ready.readline().startswith("plan: 7 nodes"))
                for number, how in ((3, signal.SIGKILL), (6, signal.SIGSTOP)):
                    stop(nodes[number].pid, how)
                report = finished([one for number, one in enumerate(nodes) if number != 6])
            finally:
                stop(nodes[6].pid, signal.SIGKILL)
                nodes[6].communicate()
    except Unavailable as why:
        pytest.skip(str(why))
    lost = {one["node"]: one["lost"] for one in report["members"] if one["lost"]}
    assert {*lost} == {"node3", "node6", "node7"}
    assert lost["node3"] == "it ended"
    assert lost["node6"] in ("no answer within 15 s", "no answer within 15.3 s")  # as a receiver, as a sender
    assert lost["node7"].startswith("not measured: held by root")
    others = {f"node{number}" for number in range(NODES) if number not in (3, 6, 7)}
    pairs = {(one["sender"], one["receiver"]) for one in report["rates"]}
    assert {(a, b) for a in others for b in others if a != b} <= pairs
    assert report["causes"] == []


def hold(number: int) -> None:
    """An operator holds the node."""
    command = [sys.executable, "-m", "linkgauge", "hold", "--for", "10m"]
    variables = {**os.environ, "LINKGAUGE_LOCK_DIR": str(locks(namespace(number)))}
    subprocess.run(command, check=True, capture_output=True, env=variables)


def stop(pid: int, how: signal.Signals) -> None:
    """Send the signal to a process and to all that it started."""
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout.split()
    subprocess.run(["kill", f"-{how.name[3:]}", str(pid)], capture_output=True)
    for child in map(int, listed):
        stop(child, how)
