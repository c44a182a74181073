"""A data-parallel job over TCP in network namespaces: each rank has a port of its own, and the rate of one is lower."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from linkgauge.agent.cli.main import main

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

NODES, PORTS, STEPS, SIZE = 3, 2, 3, 16 << 20
RANKS = range(NODES * PORTS)
MBIT = 1e6 / 8
USUAL, LOW = 400, 200  # Mbit/s of a port
RANK = Path(__file__).with_name("ring_rank.py")
SWITCH = f"lg-sw{os.getpid()}"


def namespace(rank: int) -> str:
    return f"lg-r{rank}-{os.getpid()}"


def ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode:
        raise OSError(done.stderr.strip())


@pytest.fixture(scope="module")
def network() -> Iterator[None]:
    """A switch, and a namespace with one port for each rank."""
    if os.geteuid() or not all(map(shutil.which, ("ip", "tc"))):
        pytest.skip("needs root and iproute2")
    with ExitStack() as stack:
        try:
            for name in (SWITCH, *map(namespace, RANKS)):
                ip("netns", "add", name)
                stack.callback(subprocess.run, ["ip", "netns", "del", name], capture_output=True)
            ip("-n", SWITCH, "link", "add", "bridge", "type", "bridge")
            ip("-n", SWITCH, "link", "set", "bridge", "up")
            for rank in RANKS:
                connect(namespace(rank), rank)
        except OSError as refused:
            pytest.skip(f"no network namespaces: {refused}")
        yield


def connect(name: str, rank: int) -> None:
    ip("link", "add", "port", "netns", name, "type", "veth", "peer", "name", f"switch{rank}", "netns", SWITCH)
    ip("-n", name, "addr", "add", f"192.168.214.{rank + 1}/24", "dev", "port")
    ip("-n", name, "link", "set", "port", "up")
    ip("-n", SWITCH, "link", "set", f"switch{rank}", "master", "bridge", "up")


def limit(rank: int, rate: int) -> None:
    """Limit the rate at which a rank sends, in Mbit/s."""
    command = ["tc", "-n", namespace(rank), "qdisc", "replace", "dev", "port", "root", "tbf"]
    subprocess.run([*command, "rate", f"{rate}mbit", "burst", "256kb", "latency", "50ms"], check=True)


def run_job(folder: Path) -> Any:
    """The report of the job, from the files that its ranks write."""
    folder.mkdir()
    words = [*map(str, (NODES, PORTS, STEPS, SIZE)), str(folder)]
    with ExitStack() as stack:
        started = []
        for rank in RANKS:
            command = ["ip", "netns", "exec", namespace(rank), sys.executable, str(RANK), str(rank), *words]
            started.append(stack.enter_context(subprocess.Popen(command)))
            stack.callback(started[-1].kill)
        assert [one.wait(timeout=60) for one in started] == [0] * len(RANKS)
    return json.loads(CliRunner().invoke(main, ["diagnose", "--from", str(folder), "--format", "json"]).output)


def rates(report: Any) -> dict[str, float]:
    return {one["communicator"]: one["observed"] for one in report["job"]["rates"]}


def usable(folder: Path, low: frozenset[int]) -> Any:
    """The report of a job whose ports reached their limits. Other processes can take the processors from a job."""
    for attempt in range(3):
        report = run_job(folder / str(attempt))
        seen = {name: frozenset(map(int, name.split("-"))) for name in rates(report)}
        shares = [rate / MBIT / (LOW if low & seen[name] else USUAL) for name, rate in rates(report).items()]
        assert len(shares) == len(RANKS)
        if min(shares) > 0.9 and max(shares) < 1.05:  # a rank that is late to look at its clock seems fast
            return report
    pytest.skip(f"the processors are too busy: the ports reach {min(shares):.0%} to {max(shares):.0%} of their limits")


def test_the_slow_port_of_a_job_is_named(network: None, tmp_path: Path) -> None:
    for rank in RANKS:
        limit(rank, LOW if rank == 3 else USUAL)
    report = usable(tmp_path, frozenset({3}))
    assert [(one["code"], one["confidence"], one["subject"]) for one in report["findings"]] == [
        ("bandwidth-low", "likely", "node1/nic1")
    ]
    assert report["findings"][0]["explains"] == ["bandwidth-low:1-3", "bandwidth-low:3-5"]
    assert [one["communicator"] for one in report["job"]["rates"] if one["low"]] == ["1-3", "3-5"]


def test_equal_ports_are_no_finding(network: None, tmp_path: Path) -> None:
    for rank in RANKS:
        limit(rank, USUAL)
    report = usable(tmp_path, frozenset())
    assert (report["findings"], len(report["job"]["rates"])) == ([], 6)
