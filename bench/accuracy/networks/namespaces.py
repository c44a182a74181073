"""Two network namespaces joined by a wire whose rate tc limits: a NIC that is slower than its nominal rate.

Needs root and iproute2.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

NEAR, FAR = f"lg-a{os.getpid()}", f"lg-b{os.getpid()}"
ADDRESS, PEER = "192.168.213.1", "192.168.213.2"


class Unavailable(Exception):
    """The reason why the namespaces are not available."""


@contextmanager
def joined() -> Iterator[None]:
    """veth-a in NEAR, veth-b in FAR with an iperf3 server. Raises Unavailable."""
    if os.geteuid() or not all(map(shutil.which, ("ip", "tc", "iperf3"))):
        raise Unavailable("needs root, iproute2 and iperf3")
    server = None
    try:
        for name in (NEAR, FAR):
            if refused := subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True).stderr:
                raise Unavailable(f"no network namespaces: {refused.strip()}")
        _run("ip", "link", "add", "veth-a", "netns", NEAR, "type", "veth", "peer", "name", "veth-b", "netns", FAR)
        for name, device, address in ((NEAR, "veth-a", ADDRESS), (FAR, "veth-b", PEER)):
            _run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", device)
            _run("ip", "-n", name, "link", "set", device, "up")
        server = subprocess.Popen(["ip", "netns", "exec", FAR, "iperf3", "-s"], stdout=subprocess.DEVNULL)
        yield
    finally:
        if server:
            server.kill()
            server.wait()
        for name in (NEAR, FAR):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def cap(rate: str | None) -> None:
    """Limit the send rate of NEAR, in tc's format ("200mbit"). None: no limit."""
    device = ("dev", "veth-a", "root")
    if rate is None:
        subprocess.run([*inside("tc", "qdisc", "del"), *device], capture_output=True)
    else:
        _run(*inside("tc", "qdisc", "replace"), *device, "tbf", "rate", rate, "burst", "256kb", "latency", "50ms")


def inside(*command: str) -> list[str]:
    """The command, run in NEAR."""
    return ["ip", "netns", "exec", NEAR, *command]


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
