"""Scrapes of a service that clients flood with connections.

    python -m bench.cost.flood connections [--nofile 1024] [--count 5000] [--seconds 60]
    python -m bench.cost.flood loris --count 200

The service reads the files of a node with a narrow PCIe link. `connections`: half of the clients send nothing, half an
unfinished request, and each opens a new connection as soon as the service closes the old one. `loris`: each client
sends one byte a second. The clients run with nice 19 and use other addresses than the scraper. The output is the number
of scrapes and their time with connect, the memory of the service, the bytes of its log, and the verdicts it showed.
Exits with 1 as flood_passwords does. Run it on a machine without other load: two processors are enough.
"""

from __future__ import annotations

import argparse
import http.client
import os
import re
import resource
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from bench.cost.flood_passwords import MOST_LOG, MOST_MEMORY, MOST_SECONDS
from bench.cost.startup import write
from linkgauge.probes.host.recorded import dump
from linkgauge.probes.synthetic.build import build

TESTS = Path(__file__).parents[2] / "tests"
EVERY, LONGEST = 0.2, 10.0  # seconds between two scrapes; timeout of a scrape
VERDICT = re.compile(rb'^linkgauge_verdict\{verdict="(\w+)"\} 1', re.MULTILINE)
UNFINISHED = b"GET /metrics HTTP/1.1\r\nX-Slow: "


class Flood:
    """Clients that keep a number of connections open."""

    def __init__(self, port: int, drips: bool) -> None:
        self.port, self.drips = port, drips
        self.opened = 0
        self._ready = selectors.DefaultSelector()

    def open(self) -> None:
        """Open a connection. If there is no free port, another connection of the next round is opened instead."""
        self.opened += 1
        one = socket.socket()
        one.setblocking(False)
        with suppress(OSError):
            one.bind((f"127.0.0.{2 + self.opened % 200}", 0))
            with suppress(BlockingIOError):
                one.connect(("127.0.0.1", self.port))
            sends = self.drips or self.opened % 2
            self._ready.register(one, selectors.EVENT_WRITE if sends else selectors.EVENT_READ)

    def run(self, count: int, seconds: float) -> None:
        end, dripped = time.monotonic() + seconds, time.monotonic()
        while time.monotonic() < end:
            for _ in range(count - len(self._ready.get_map())):
                self.open()
            for key, event in self._ready.select(0.1):
                assert isinstance(key.fileobj, socket.socket)
                self._serve(key.fileobj, event)
            if self.drips and time.monotonic() - dripped > 1:
                dripped = time.monotonic()
                for key in list(self._ready.get_map().values()):
                    assert isinstance(key.fileobj, socket.socket)
                    with suppress(OSError):
                        key.fileobj.send(b"x")

    def _serve(self, one: socket.socket, event: int) -> None:
        try:
            if event & selectors.EVENT_WRITE:
                one.send(UNFINISHED)
                self._ready.modify(one, selectors.EVENT_READ)
                return
            closed = not one.recv(1)
        except BlockingIOError:
            return
        except OSError:
            closed = True
        if closed:
            self._ready.unregister(one)
            one.close()


def flood(kind: str, port: int, count: int, seconds: float) -> None:
    """The process of the clients."""
    os.nice(19)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    clients = Flood(port, kind == "loris")
    clients.run(count, seconds)
    print(f"{clients.opened} connections opened by {count} clients", flush=True)


def scrape(port: int) -> tuple[float, bytes]:
    """One scrape on a new connection: seconds and verdict. Raises OSError, HTTPException."""
    began = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LONGEST)
    try:
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status == 200
        return time.monotonic() - began, (VERDICT.findall(text) or [b"none"])[0]
    finally:
        connection.close()


def scrapes(port: int, seconds: float) -> tuple[list[float], Counter[str]]:
    """Scrape at intervals. Failed scrapes are infinitely slow."""
    times, verdicts = list[float](), Counter[str]()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            took, verdict = scrape(port)
            verdicts[verdict.decode()] += 1
        except (OSError, http.client.HTTPException):
            took = float("inf")
        times.append(took)
        time.sleep(EVERY)
    return times, verdicts


def service(folder: Path, port: int, nofile: int) -> subprocess.Popen[bytes]:
    """Start the service on the tree of a node. Its log goes to a file."""
    text = (TESTS / "nodes/hgx-h100.toml").read_text() + "\n[device.gpu3]\nwidth = 8\n"
    write(dump(build(text)), folder / "root")
    (folder / "linkgauge.toml").write_text('cycle = "2s"\ncycle_busy = "2s"\n')
    command = [sys.executable, "-m", "linkgauge", "serve", "--root", str(folder / "root"), "--listen"]
    options = [f"127.0.0.1:{port}", "--config", str(folder / "linkgauge.toml"), "--state-dir", str(folder / "state")]
    limited = ["prlimit", f"--nofile={nofile}:{nofile}", *command, *options]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(limited, stdout=log, stderr=log)


def free_port() -> int:
    """A port that nothing uses."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


def measure(kind: str, count: int, nofile: int, seconds: float) -> bool:
    """Flood a new service and print the result. Returns whether every limit holds."""
    port = free_port()
    nofile = min(nofile, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    with tempfile.TemporaryDirectory() as folder, service(Path(folder), port, nofile) as process:
        try:
            until = time.monotonic() + 60
            while time.monotonic() < until:
                with suppress(OSError, http.client.HTTPException):
                    if scrape(port)[1] == b"failed":
                        break
                time.sleep(0.5)
            command = [sys.executable, "-m", "bench.cost.flood", kind, "--count", str(count), "--port", str(port)]
            with subprocess.Popen([*command, "--seconds", str(seconds + 2)]):
                time.sleep(2)
                times, verdicts = scrapes(port, seconds)
            (most,) = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
            log = (Path(folder) / "log").read_bytes()
        finally:
            process.terminate()
            process.wait(30)
    times.sort()
    p50, p99 = (times[int(share * (len(times) - 1))] * 1e3 for share in (0.5, 0.99))
    failed = sum(one == float("inf") for one in times)
    print(f"{kind} {count}, nofile {nofile}, {seconds:g} s: {len(times)} scrapes, {failed} failed,", end=" ")
    print(f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, longest {times[-1] * 1e3:.1f} ms; ", end="")
    print(f"{int(most) / 1024:.1f} MiB of memory, {len(log)} bytes of log, verdicts {dict(verdicts)}")
    return not failed and p99 < MOST_SECONDS * 1e3 and int(most) * 1024 < MOST_MEMORY and len(log) < MOST_LOG


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["connections", "loris"])
    parser.add_argument("--nofile", type=int, default=1024)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.port:
        flood(given.kind, given.port, given.count, given.seconds)
        return 0
    return 0 if measure(given.kind, given.count, given.nofile, given.seconds) else 1


if __name__ == "__main__":
    sys.exit(main())
